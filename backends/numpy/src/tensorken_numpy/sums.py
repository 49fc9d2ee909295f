"""Sums: of many elements along the last or the first axes, as products with ones: BLAS is several times as fast."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorken_numpy.contraction import Array, Sizes

MANY = 4096
"""From how many elements on it pays."""

LEAST = 4
"""How long a row must be."""

LONGEST = 512
"""How many elements BLAS adds up at most: one that knows no better adds them one after the other.

Longer rows are added up in pieces, and then these, so that errors stay as small as those of numpy's sums in pairs.
"""

SHORT = 128
"""How many elements are added up in float32 where the rest is added up in float64."""

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def add_up(x: Array, axes: Sizes, y: Array | None = None) -> Array:
    """The sum along these axes, which stay with size 1, in the dtype of x; into y if there is one."""
    if in_many_rows(x, axes):
        kept = x.shape[: axes[0]]
        total = sum_of_rows(x.reshape(-1, math.prod(x.shape[axes[0] :]))).reshape(*kept, *[1] * len(axes))
        if y is None:
            return total
        np.copyto(y, total)
        return y
    if in_many_columns(x, axes):
        total = np.empty((*[1] * len(axes), *x.shape[len(axes) :]), x.dtype) if y is None else y
        sum_of_columns(x.reshape(math.prod(x.shape[: len(axes)]), -1), total.reshape(-1))
        return total
    return np.add.reduce(x, axes, x.dtype, y, keepdims=True)  # by itself numpy widens int32


def in_many_rows(x: Array, axes: Sizes) -> bool:
    """Whether there are many elements, and those that are to be added lie one after another."""
    return (
        x.size >= MANY
        and x.dtype in _FLOATS
        and x.flags.c_contiguous
        and bool(axes)
        and axes[-1] == x.ndim - 1
        and len(axes) == x.ndim - axes[0]
        and math.prod(x.shape[axes[0] :]) >= LEAST
    )


def in_many_columns(x: Array, axes: Sizes) -> bool:
    """The same of axes that are the first: the elements next to each other belong to as many sums."""
    return (
        x.size >= MANY
        and x.dtype in _FLOATS
        and x.flags.c_contiguous
        and axes == tuple(range(len(axes)))
        and 0 < len(axes) < x.ndim
    )


def by_blas(x: Array, axes: Sizes) -> bool:
    """Whether BLAS adds up."""
    return in_many_rows(x, axes) or in_many_columns(x, axes)


def sum_of_columns(rows: Array, y: Array) -> None:
    """The sum of all rows of a matrix of float32 or float64 in row-major order, into y, row after row as numpy adds."""
    count, length = rows.shape
    width = count if count <= LONGEST else _width(count)
    if width:
        pieces = rows.reshape(count // width, width, length)
        if len(pieces) > 1:
            rows = np.matmul(_ones(width, rows.dtype), pieces)
            sum_of_columns(rows, y)
        else:
            np.dot(_ones(width, rows.dtype), rows, y)
    else:
        np.add.reduce(rows, 0, out=y)


def sum_of_rows(rows: Array) -> Array:
    """The sum of each row of a matrix of float32 or float64 in row-major order."""
    count, length = rows.shape
    total: Array
    if length <= LONGEST:
        total = np.dot(rows, _ones(length, rows.dtype))
    elif width := _width(length):
        pieces = np.dot(rows.reshape(-1, width), _ones(width, rows.dtype))
        total = sum_of_rows(pieces.reshape(count, length // width))
    elif count == 1:
        end = length - length % LONGEST
        total = sum_of_rows(rows[:, :end]) + sum_of_rows(rows[:, end:])
    else:
        total = np.add.reduce(rows, 1)
    return total


def wide_sum_of_rows(rows: Array) -> Array:
    """The sum of each row of a matrix of float32, in float64 but for pieces of at most SHORT elements."""
    count, length = rows.shape
    width = 0
    if rows.size >= MANY and length >= LEAST:
        width = length if length <= SHORT else _width(length, SHORT)
    if width:
        rows = np.dot(rows.reshape(-1, width), _ones(width, rows.dtype)).reshape(count, length // width)
    total: Array = np.add.reduce(rows, 1, np.float64)
    return total


@functools.lru_cache(maxsize=1024)
def _ones(length: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(length, dtype)


@functools.lru_cache(maxsize=1024)
def _width(length: int, most: int = LONGEST) -> int:
    """Into pieces of which length, at most, a longer row is cut evenly; 0 if only into short ones."""
    return next((width for width in range(most, most // 8, -1) if length % width == 0), 0)
