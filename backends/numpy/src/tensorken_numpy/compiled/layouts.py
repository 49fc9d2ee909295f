"""Layouts: shapes and strides of arrays that need not exist yet, found by letting numpy make views of nothing.

The stand-in for an array has its shape and strides, and elements that are never read.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorken_numpy.contraction import Array, Sizes

StandIn: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def contiguous(shape: Sizes, dtype: Any) -> StandIn:
    """A stand-in for an array in row-major order."""
    strides, step = [], np.dtype(dtype).itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return strided(shape, tuple(reversed(strides)), dtype)


def strided(shape: Sizes, strides: Sizes, dtype: Any) -> StandIn:
    """A stand-in for an array with these strides."""
    nothing = np.ndarray((), dtype, np.zeros(np.dtype(dtype).itemsize, np.uint8))
    return as_strided(nothing, shape, strides)


def address(x: Array) -> int:
    """Where the first element is."""
    place: int = x.__array_interface__["data"][0]
    return place


def reshaped(x: StandIn, shape: Sizes) -> StandIn | None:
    """The view of this shape; None if it takes a copy."""
    try:
        return np.reshape(x, shape, copy=False)
    except ValueError:
        return None


def small(x: Array) -> Array:
    """With size 1 along the axes that strides repeat."""
    if 0 not in x.strides:
        return x
    return x[
        tuple(
            [
                slice(0, 1) if s == 0 and n > 1 else slice(None)
                for s, n in zip(x.strides, x.shape, strict=True)
            ]
        )
    ]


def moved(sizes: Sizes, full: Sizes, shape: Sizes) -> Sizes | None:
    """What size 1 along repeated axes becomes in a reshape from `full` to `shape`; None if repetitions must be made."""
    if sizes == full:
        return shape
    x = reshaped(np.broadcast_to(contiguous(sizes, np.uint8), full), shape)
    return None if x is None else small(x).shape
