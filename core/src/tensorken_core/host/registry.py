"""The plugin host of this process: its registry of plugins, and its choices of backends."""

from __future__ import annotations

from typing import Any

from tensorken_core.host.backend_choice import Selection
from tensorken_core.host.loading import Registry
from tensorken_core.language.interpreter import Interpreter

REGISTRY = Registry()
"""The plugins of this process."""

SELECTION = Selection(REGISTRY)
"""The choices of this process."""

backends = SELECTION.backends
use_backend = SELECTION.use_backend
default_backend = SELECTION.default_backend
devices = SELECTION.devices
resolve = SELECTION.resolve
name_of = SELECTION.name_of
load_plugins = REGISTRY.load_plugins


def _name_of(interpreter: Any) -> str:
    """The name under which a backend was selected; the backend's repr if it was not selected by name."""
    name = name_of(interpreter)[0]
    return repr(interpreter) if name == type(interpreter).__name__.lower() else name


Interpreter.default = staticmethod(resolve)
Interpreter.name_of = staticmethod(_name_of)
