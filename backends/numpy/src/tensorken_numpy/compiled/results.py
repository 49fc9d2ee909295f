"""Arrays for results, reused once the caller has dropped the result of an earlier call."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array, Sizes

SMALLEST, LARGEST = 1 << 16, 1 << 26
"""Bytes of arrays worth keeping: malloc reuses smaller ones, and larger ones should be returned to the system."""

POOL_SIZE = 2
"""The most arrays kept: a loop holds the results of one call until the next call returns."""


class ResultPool:
    """Arrays of one shape and dtype, for a function that runs once at a time.

    The operating system maps new memory page by page, which costs more than computing its contents.  An array is
    reused if only the pool refers to it; then no views of it exist either, as a view refers to its array.

    >>> pool = ResultPool((4,), np.dtype("float32"))
    >>> first = pool.take()
    >>> pool.take() is first
    False
    >>> address = id(first)
    >>> del first
    >>> id(pool.take()) == address
    True
    """

    def __init__(self, shape: Sizes, dtype: np.dtype[Any]) -> None:
        self._shape_and_dtype = (shape, dtype)
        self._arrays: list[Array] = [np.empty(0)]
        self._unshared = self._references(0)  # depends on the version of Python
        self._arrays.clear()

    def take(self) -> Array:
        """An array that nothing else refers to."""
        for i in range(len(self._arrays)):
            if self._references(i) == self._unshared:
                return self._arrays[i]
        array: Array = np.empty(*self._shape_and_dtype)
        if len(self._arrays) == POOL_SIZE:
            del self._arrays[0]
        self._arrays.append(array)
        return array

    def _references(self, i: int) -> int:
        return sys.getrefcount(self._arrays[i])


def has_reference_counts() -> bool:
    """Whether a reference count shows if an array is shared: not in free-threaded Python."""
    enabled: Any = getattr(sys, "_is_gil_enabled", None)
    return hasattr(sys, "getrefcount") and (enabled is None or enabled())
