"""Fast maximum and minimum of an array and a number.

numpy's loop for a single number takes five times as long as its loop for two arrays, so long rows are compared with
a row that repeats the number.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array

SMALL_SIZE = 256
"""Up to this many elements the plain call is as fast."""

_MIN_LENGTH, _MAX_LENGTH = 16, 1 << 16
"""Lengths of the last axis for which a row of the number pays: it fills registers and fits in the cache."""


def slow_with_scalar(ufunc: Any, dtype: np.dtype[Any]) -> bool:
    """Whether this ufunc is slow when one operand is a single number."""
    return ufunc in (np.maximum, np.minimum) and dtype in (np.float32, np.float64)


def clamp(ufunc: Any, x: Array, number: float) -> Array:
    """np.maximum or np.minimum of each element and a number, which is converted to the dtype of x."""
    dtype = x.dtype
    if x.size > SMALL_SIZE and slow_with_scalar(ufunc, dtype) and _MIN_LENGTH <= x.shape[-1] <= _MAX_LENGTH:
        y: Array = ufunc(x, _row(x.shape[-1], number, dtype))
        return y
    y = ufunc(x, dtype.type(number))
    return y


@functools.lru_cache(maxsize=64)
def _row(length: int, number: float, dtype: np.dtype[Any]) -> Array:
    return np.full(length, number, dtype)
