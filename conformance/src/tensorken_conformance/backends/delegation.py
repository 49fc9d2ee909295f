"""Delegation: detect that a backend runs ops on another backend of this project."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorken_core.language.interpreter import Overrides
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

BACKENDS: dict[str, type[RawTensor[Any]]] = {"numpy": Numpy, "reference": Reference}
"""The backends without a device, to which other backends may delegate ops that they lack."""


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
                if found is not None and not hasattr(
                    found, "op"
                ):  # only default methods of the language have an op
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
