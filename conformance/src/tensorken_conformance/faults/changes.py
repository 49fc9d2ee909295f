"""Changes: functions that change results, and contexts that change the language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tensorken_conformance.subject import Array
from tensorken_core.language.op import OPS, Op


def up(y: Array, where: Any = True, steps: int = 1) -> Array:
    """Floats moved away from zero by some representable numbers, where `where` is True."""
    for _ in range(steps):
        with np.errstate(over="ignore"):
            y = np.where(where, np.nextafter(y, np.copysign(y.dtype.type(np.inf), y)), y)
    return y


def tail(y: Array, width: int) -> Any:
    """Which elements come after the last whole block of `width`, in row-major order."""
    return (np.arange(y.size) >= y.size - y.size % width).reshape(y.shape)


def replaced(y: Array, where: Any, value: Any) -> Array:
    """An array with a value, or the elements of another array, where `where` is True."""
    return np.where(where, np.asarray(value, y.dtype), y)


@contextmanager
def rules(changed: str | Op, **facts: Any) -> Iterator[None]:
    """Change attributes of an op, such as `vjp=(rule,)`; values derived from its rules are cleared before and after."""
    op = OPS[changed] if isinstance(changed, str) else changed
    before = {fact: getattr(op, fact) for fact in facts}
    saves = dict(op.tape_needs)
    op.tape_needs.clear()
    try:
        for fact, value in facts.items():
            object.__setattr__(op, fact, value)
        yield
    finally:
        for fact, value in before.items():
            object.__setattr__(op, fact, value)
        op.tape_needs.clear()
        op.tape_needs.update(saves)


def extreme_weights(name: str, weights: Callable[[Any, Any, Any], Any]) -> AbstractContextManager[None]:
    """`max` or `min` with derivatives that weigh the elements by a function of the result, the operand and the axes."""
    push = (lambda t, y, x, axes: (t * weights(y, x, axes)).sum(axes, keepdims=True),)
    pull = (lambda t, y, x, axes: t.expand(x.shape) * weights(y, x, axes),)
    return rules(name, jvp=push, vjp=pull)


@contextmanager
def attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An object with another attribute."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def entry(table: dict[Any, Any], key: Any, value: Any) -> Iterator[None]:
    """A dict with another value at a key."""
    before = table[key]
    table[key] = value
    try:
        yield
    finally:
        table[key] = before
