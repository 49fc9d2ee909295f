"""The versions of the installation, for `tensorken --version`."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

from tensorken_core.host.discovery import Group, core_version
from tensorken_core.host.plugin import SPEC_VERSION
from tensorken_core.host.registry import REGISTRY


def as_line() -> str:
    """The versions of tensorken, core, the language and Python."""
    core = core_version() or "(not installed)"
    python = f"Python {platform.python_version()}"
    return f"tensorken {_tensorken() or '(not installed)'}, tensorken-core {core}, language {SPEC_VERSION}, {python}"


def as_json() -> str:
    """The versions as a JSON object, with those of the distributions of plugins; "schema" counts its changes."""
    plugins = {r.distribution: r.version for group in get_args(Group) for r in REGISTRY.records(group)}
    data: dict[str, Any] = {
        "schema": 1,
        "tensorken": _tensorken(),
        "core": core_version(),
        "language": SPEC_VERSION,
        "plugins": dict(sorted(plugins.items())),
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "platform": platform.platform(),
    }
    return json.dumps(data, indent=2)


def _tensorken() -> str | None:
    """The version of the distribution tensorken; None if it is not installed."""
    try:
        return version("tensorken")
    except PackageNotFoundError:
        return None
