"""Layouts: shapes and strides of arrays that need not exist, computed by letting numpy make views.

A layout is an array of that shape, dtype and strides whose elements are never read.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorken_numpy.arrays import Array, Sizes

Layout: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def contiguous(shape: Sizes, dtype: Any) -> Layout:
    """The layout of an array in row-major order."""
    strides, step = [], np.dtype(dtype).itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return strided(shape, tuple(reversed(strides)), dtype)


def strided(shape: Sizes, strides: Sizes, dtype: Any) -> Layout:
    """The layout of an array with these strides."""
    element = np.ndarray((), dtype, np.zeros(np.dtype(dtype).itemsize, np.uint8))
    return as_strided(element, shape, strides)


def address(x: Array) -> int:
    """The address of the first element."""
    start: int = x.__array_interface__["data"][0]
    return start


def reshaped(x: Layout, shape: Sizes) -> Layout | None:
    """The view with this shape; None if it needs a copy."""
    try:
        return np.reshape(x, shape, copy=False)
    except ValueError:
        return None


def compact(x: Array) -> Array:
    """The array with size 1 along axes that strides repeat."""
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


def compact_reshape(sizes: Sizes, full: Sizes, shape: Sizes) -> Sizes | None:
    """The compact shape after a reshape from `full` to `shape`; None if repetitions must be copied."""
    if sizes == full:
        return shape
    x = reshaped(np.broadcast_to(contiguous(sizes, np.uint8), full), shape)
    return None if x is None else compact(x).shape
