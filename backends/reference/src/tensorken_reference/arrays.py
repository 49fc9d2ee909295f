"""Array, the representation of a tensor, with elementwise functions, movements and rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Shape
from tensorken_core.rewriting.view import View
from tensorken_reference.conversion import fit


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor: its elements, as Python bool, int or float, in row-major order."""

    shape: Shape
    data: tuple[Any, ...]
    dtype: DType


def map_elements(function: Callable[..., Any], *operands: Array) -> Array:
    """Apply a function to each element; results are rounded or wrapped to the operands' dtype."""
    x = operands[0]
    return Array(x.shape, tuple(fit(map(function, *[y.data for y in operands]), x.dtype)), x.dtype)


def map_arrays(function: Callable[..., list[float]], *operands: Array) -> Array:
    """Apply `function(dtype, *data)`, which rounds its own results."""
    x = operands[0]
    return Array(x.shape, tuple(function(x.dtype, *[y.data for y in operands])), x.dtype)


def take_view(x: Array, view: View) -> Array:
    """The elements that a view of x selects."""
    return Array(view.shape, tuple(map(x.data.__getitem__, view.indices())), x.dtype)


def rows_over(x: Array, axes: Axes) -> list[tuple[Any, ...]]:
    """The elements along `axes`, one row for each index along the other axes, in row-major order."""
    kept = [i for i in range(len(x.shape)) if i not in axes]
    data = take_view(x, View.contiguous(x.shape).permute((*kept, *axes))).data
    count, length = prod([x.shape[i] for i in kept]), prod([x.shape[i] for i in axes])
    return [data[t * length : (t + 1) * length] for t in range(count)]


def map_rows(x: Array, axis: int, function: Callable[[tuple[Any, ...]], list[Any]], dtype: DType) -> Array:
    """Apply a function to each row along an axis; it returns rows of equal length."""
    rows = [function(row) for row in rows_over(x, (axis,))]
    last = Array((*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis]), tuple(chain(*rows)), dtype)
    rank = len(x.shape)
    return take_view(
        last, View.contiguous(last.shape).permute((*range(axis), rank - 1, *range(axis, rank - 1)))
    )


def expand_axes(x: Array, axes: Axes, shape: Shape) -> Array:
    """Expand these axes to their sizes in shape, where they have size 1."""
    target = tuple([n if i in axes else m for i, (m, n) in enumerate(zip(x.shape, shape, strict=True))])
    return x if target == x.shape else take_view(x, View.contiguous(x.shape).expand(target))


def row_indices(x: Shape, axes: Axes, shape: Shape) -> list[int]:
    """For each element of a result, the index of the operand's row over `axes`; axes of size 1 repeat."""
    kept = [i for i in range(len(x)) if i not in axes]
    rows = View.contiguous([x[i] for i in kept])
    return list(rows.expand([shape[i] for i in kept]).indices())
