"""Delegation: detect that a backend runs ops on another backend of this project."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorken_core.language.interpreter import Overrides
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

BACKENDS: dict[str, type[RawTensor[Any]]] = {"numpy": Numpy, "reference": Reference}
"""The backends without a device, to which other backends may delegate ops that they lack."""

_PACKAGES = {kind.__module__.partition(".")[0] for kind in BACKENDS.values()}

_BY_NAME = re.compile(r"\b(?:use_backend|backend=|REGISTRY|SELECTION)")
"""Ways to get a backend of the host by its name."""


def may_delegate(backend: RawTensor[Any]) -> bool:
    """Whether a package of the backend names another backend of this project, or gets one by its name.

    The packages are those of its class, of the classes that it inherits from, and of the interpreters below it.  It
    may also delegate if the source of one cannot be read.

    >>> may_delegate(Numpy()), may_delegate(Reference())
    (False, False)
    """
    kinds = [kind for interpreter in _stack(backend) for kind in type(interpreter).__mro__]
    packages = {kind.__module__.partition(".")[0] for kind in kinds}
    return any(_names_others(package) for package in packages - {"builtins", "typing", "tensorken_core"})


def _names_others(package: str) -> bool:
    module = sys.modules[package]
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    inside = [file for folder in folders for file in folder.rglob("*")]
    files = inside or [Path(getattr(module, "__file__", None) or "")]
    sources = [file for file in files if file.suffix == ".py"]
    if not sources or any(file.suffix in (".so", ".pyd") for file in files):
        return True
    others = _PACKAGES - {package}
    for file in sources:
        text = file.read_text("utf-8", "replace")
        if _BY_NAME.search(text) or any(other in text for other in others):
            return True
    return False


@contextmanager
def delegated(backend: RawTensor[Any]) -> Iterator[Counter[str]]:
    """Count the ops that other backends run in the block, except those that this one declares as delegates.

    Methods that a subclass inherits are its own; so are those of the backend below an interpreter like ShapeTracker.

    >>> class Idle(RawTensor[Any]):
    ...     def exp(self, x: Any) -> Any:
    ...         return Numpy().exp(x)
    >>> with delegated(Idle()) as others:
    ...     _ = Idle().exp(0.0)
    >>> list(others)
    ['numpy.exp']
    """
    own = _stack(backend)
    seen: Counter[str] = Counter()
    watched = [
        (name, kind)
        for name, kind in BACKENDS.items()
        if not isinstance(backend, kind) and name not in backend.capabilities.delegates
    ]
    former = [(kind, dict(vars(kind)), kind.overrides) for _, kind in watched]
    try:
        for name, kind in watched:
            for method in [*(op.name for op in OPS.values() if op.method), "new", "full"]:
                found = getattr(kind, method, None)
                # only default methods of the language have an op
                if found is not None and not hasattr(found, "op"):
                    setattr(kind, method, _counted(f"{name}.{method}", found, own, seen))
            kind.overrides = Overrides(kind)
        yield seen
    finally:
        for kind, attributes, overrides in former:
            for method in [attribute for attribute in vars(kind) if attribute not in attributes]:
                delattr(kind, method)
            for method, value in attributes.items():
                if vars(kind)[method] is not value:
                    setattr(kind, method, value)
            kind.overrides = overrides


def _stack(backend: RawTensor[Any]) -> tuple[Any, ...]:
    """The backend, and the interpreters below it."""
    found: list[Any] = []
    below: Any = backend
    while below is not None:
        found.append(below)
        below = getattr(below, "raw", None)
    return tuple(found)


def _counted(name: str, method: Callable[..., Any], own: tuple[Any, ...], seen: Counter[str]) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any) -> Any:
        if not any(self is interpreter for interpreter in own):
            seen[name] += 1
        return method(self, *args)

    return call
