"""Sums of many elements along the first or the last axes.

They are computed as products with ones, as BLAS is several times as fast as numpy's reduction.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.bfloat16 import BFLOAT16

BLAS_MIN_SIZE = 4096
"""From this many elements on BLAS is faster."""

BLAS_MIN_ROW = 4
"""The shortest row for which BLAS is used."""

BLAS_MAX_ROW = 512
"""The longest row that BLAS adds up in one product, as a simple BLAS adds elements one after the other.

Longer rows are summed in pieces and then the pieces, so rounding errors stay as small as those of numpy's pairwise
sums.
"""

MAX_FLOAT32_SUM = 128
"""How many elements are added in float32 when the rest of a sum is in float64."""

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

NARROW = (np.dtype(np.float16), *([] if BFLOAT16 is None else [BFLOAT16]))
"""The dtypes of floats that are added up in float32."""


def dtype_of_sums(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers of a dtype are added up and multiplied; numpy would widen small integers."""
    return np.dtype(np.float32) if dtype in NARROW else dtype


def sum_axes(x: Array, axes: Sizes, y: Array | None = None) -> Array:
    """The sum along these axes, kept with size 1, in the dtype of x; written into y if given."""
    if sums_rows(x, axes):
        kept = x.shape[: axes[0]]
        total = sum_of_rows(x.reshape(-1, math.prod(x.shape[axes[0] :]))).reshape(*kept, *[1] * len(axes))
        if y is None:
            return total
        np.copyto(y, total)
        return y
    if sums_columns(x, axes):
        total = np.empty((*[1] * len(axes), *x.shape[len(axes) :]), x.dtype) if y is None else y
        sum_of_columns(x.reshape(math.prod(x.shape[: len(axes)]), -1), total.reshape(-1))
        return total
    total = np.add.reduce(x, axes, dtype_of_sums(x.dtype), y, keepdims=True)
    return total.astype(x.dtype, copy=False)


def sums_rows(x: Array, axes: Sizes) -> bool:
    """Whether the axes are the last ones of a large row-major array, so elements of a sum are adjacent."""
    return (
        x.size >= BLAS_MIN_SIZE
        and x.dtype in _FLOATS
        and x.flags.c_contiguous
        and bool(axes)
        and axes[-1] == x.ndim - 1
        and len(axes) == x.ndim - axes[0]
        and math.prod(x.shape[axes[0] :]) >= BLAS_MIN_ROW
    )


def sums_columns(x: Array, axes: Sizes) -> bool:
    """Whether the axes are the first ones of a large row-major array, so adjacent elements belong to different
    sums.
    """
    return (
        x.size >= BLAS_MIN_SIZE
        and x.dtype in _FLOATS
        and x.flags.c_contiguous
        and axes == tuple(range(len(axes)))
        and 0 < len(axes) < x.ndim
    )


def uses_blas(x: Array, axes: Sizes) -> bool:
    """Whether `sum_axes` uses BLAS."""
    return sums_rows(x, axes) or sums_columns(x, axes)


def sum_of_columns(rows: Array, y: Array) -> None:
    """Write the sum of the rows of a row-major matrix of float32 or float64 into y, row after row as numpy does."""
    count, length = rows.shape
    piece = count if count <= BLAS_MAX_ROW else _piece_length(count)
    if piece:
        pieces = rows.reshape(count // piece, piece, length)
        if len(pieces) > 1:
            rows = np.matmul(_ones(piece, rows.dtype), pieces)
            sum_of_columns(rows, y)
        else:
            np.dot(_ones(piece, rows.dtype), rows, y)
    else:
        np.add.reduce(rows, 0, out=y)


def sum_of_rows(rows: Array) -> Array:
    """The sum of each row of a row-major matrix of float32 or float64."""
    count, length = rows.shape
    total: Array
    if length <= BLAS_MAX_ROW:
        total = np.dot(rows, _ones(length, rows.dtype))
    elif piece := _piece_length(length):
        pieces = np.dot(rows.reshape(-1, piece), _ones(piece, rows.dtype))
        total = sum_of_rows(pieces.reshape(count, length // piece))
    elif count == 1:
        end = length - length % BLAS_MAX_ROW
        total = sum_of_rows(rows[:, :end]) + sum_of_rows(rows[:, end:])
    else:
        total = np.add.reduce(rows, 1)
    return total


def wide_sum_of_rows(rows: Array) -> Array:
    """The sum of each row of a float32 matrix in float64, except within pieces of at most MAX_FLOAT32_SUM elements."""
    count, length = rows.shape
    piece = 0
    if rows.size >= BLAS_MIN_SIZE and length >= BLAS_MIN_ROW:
        piece = length if length <= MAX_FLOAT32_SUM else _piece_length(length, MAX_FLOAT32_SUM)
    if piece:
        rows = np.dot(rows.reshape(-1, piece), _ones(piece, rows.dtype)).reshape(count, length // piece)
    total: Array = np.add.reduce(rows, 1, np.float64)
    return total


@functools.lru_cache(maxsize=1024)
def _ones(length: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(length, dtype)


@functools.lru_cache(maxsize=1024)
def _piece_length(length: int, most: int = BLAS_MAX_ROW) -> int:
    """The longest even piece length up to `most` that divides a row; 0 if only short ones do."""
    return next((piece for piece in range(most, most // 8, -1) if length % piece == 0), 0)
