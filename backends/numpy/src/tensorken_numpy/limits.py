"""Limits: the larger or smaller of elements and a number, for which numpy takes five times as long as for arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensorken_numpy.contraction import Array

FEW = 256
"""Elements up to which that does not matter."""

_SHORTEST, _LONGEST = 16, 1 << 16
"""Which last axes are worth a row of the number: rows that fit in a cache, and are long enough to fill registers."""


def slow_on_numbers(ufunc: Any, dtype: np.dtype[Any]) -> bool:
    """Whether it is worth having an array of a number for this ufunc."""
    return ufunc in (np.maximum, np.minimum) and dtype in (np.float32, np.float64)


def limited(ufunc: Any, x: Array, number: float) -> Array:
    """np.maximum or np.minimum of each element and a number, which becomes one of the dtype of x."""
    dtype = x.dtype
    if x.size > FEW and slow_on_numbers(ufunc, dtype) and _SHORTEST <= x.shape[-1] <= _LONGEST:
        y: Array = ufunc(x, _row(x.shape[-1], number, dtype))
        return y
    y = ufunc(x, dtype.type(number))
    return y


@functools.lru_cache(maxsize=64)
def _row(length: int, number: float, dtype: np.dtype[Any]) -> Array:
    return np.full(length, number, dtype)
