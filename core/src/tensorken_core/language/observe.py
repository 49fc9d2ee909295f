"""Observers: functions that see every call of `run`, in every thread, such as a profiler or a check for NaN.

While `OBSERVERS` is empty, the only cost is that `run` tests it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

Observer = Callable[[Callable[..., Any], Any, Any, Sequence[Any], tuple[Any, ...]], Any]
"""`(proceed, interpreter, op, operands, params) -> result`: `proceed` runs the op; the observer returns the result."""

OBSERVERS: list[Observer] = []
"""The observers, the outermost first."""

UNOBSERVED: ContextVar[bool] = ContextVar("tensorken_unobserved", default=False)
"""Whether the ops that run in this context are hidden from all observers."""

_lock = threading.Lock()


def observe(observer: Observer) -> None:
    """Pass every call of `run`, in every thread, to an observer, until `unobserve`."""
    with _lock:
        OBSERVERS.append(observer)


def unobserve(observer: Observer) -> None:
    """Remove an observer that `observe` added; the others stay.  No effect if there is none."""
    with _lock:
        OBSERVERS[:] = [other for other in OBSERVERS if other is not observer]


def notify(
    proceed: Callable[..., Any], interpreter: Any, op: Any, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run `proceed(interpreter, op, operands, params)` through the observers, as a call of `run` would be."""
    if not UNOBSERVED.get():
        for observer in OBSERVERS[::-1]:
            proceed = functools.partial(observer, proceed)
    return proceed(interpreter, op, operands, params)
