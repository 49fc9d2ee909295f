"""Results: arrays to hand out, the one of an earlier call again once nobody else holds it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tensorken_numpy.contraction import Array, Sizes

SMALLEST, LARGEST = 1 << 16, 1 << 26
"""Bytes of arrays that are worth keeping: smaller ones malloc has at hand, larger ones are not ours to keep."""

KEPT = 2
"""How many are kept: a loop holds the results of one call until it has those of the next."""


class Results:
    """Makes arrays of one shape and dtype for one function that runs once at a time.

    New memory comes to a process page by page, which costs more than what is computed there.  An array that only this
    object refers to has been dropped by all others, views of it included, as these refer to it.

    >>> results = Results((4,), np.dtype("float32"))
    >>> first = results.take()
    >>> results.take() is first
    False
    >>> place = id(first)
    >>> del first
    >>> id(results.take()) == place
    True
    """

    def __init__(self, shape: Sizes, dtype: np.dtype[Any]) -> None:
        self._facts = (shape, dtype)
        self._arrays: list[Array] = [np.empty(0)]
        self._alone = self._references(0)  # as this Python counts
        self._arrays.clear()

    def take(self) -> Array:
        """An array that nobody has."""
        for i in range(len(self._arrays)):
            if self._references(i) == self._alone:
                return self._arrays[i]
        made: Array = np.empty(*self._facts)
        if len(self._arrays) == KEPT:
            del self._arrays[0]
        self._arrays.append(made)
        return made

    def _references(self, i: int) -> int:
        return sys.getrefcount(self._arrays[i])


def counts() -> bool:
    """Whether counts of references tell who holds an array: not where threads run without a common lock."""
    enabled: Any = getattr(sys, "_is_gil_enabled", None)
    return hasattr(sys, "getrefcount") and (enabled is None or enabled())
