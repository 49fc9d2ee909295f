"""Array, the representation of a tensor, and what elementwise ops, movements and reductions do to one."""

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


def mapped(function: Callable[..., Any], *operands: Array) -> Array:
    """A function on elements, its results rounded or wrapped to the operands' dtype."""
    x = operands[0]
    return Array(x.shape, tuple(fit(map(function, *[y.data for y in operands]), x.dtype)), x.dtype)


def applied(function: Callable[..., list[float]], *operands: Array) -> Array:
    """A function `(dtype, *operands)` on all elements, which rounds by itself."""
    x = operands[0]
    return Array(x.shape, tuple(function(x.dtype, *[y.data for y in operands])), x.dtype)


def moved(x: Array, view: View) -> Array:
    """The elements that a view of x shows."""
    return Array(view.shape, tuple(map(x.data.__getitem__, view.indices())), x.dtype)


def rows_over(x: Array, axes: Axes) -> list[tuple[Any, ...]]:
    """The elements along `axes`, one row for each index along the other axes, in row-major order."""
    kept = [i for i in range(len(x.shape)) if i not in axes]
    data = moved(x, View.contiguous(x.shape).permute((*kept, *axes))).data
    count, length = prod([x.shape[i] for i in kept]), prod([x.shape[i] for i in axes])
    return [data[t * length : (t + 1) * length] for t in range(count)]


def along(x: Array, axis: int, function: Callable[[tuple[Any, ...]], list[Any]], dtype: DType) -> Array:
    """A function from row to row of one length, on the rows along an axis."""
    rows = [function(row) for row in rows_over(x, (axis,))]
    last = Array((*x.shape[:axis], *x.shape[axis + 1 :], x.shape[axis]), tuple(chain(*rows)), dtype)
    rank = len(x.shape)
    return moved(last, View.contiguous(last.shape).permute((*range(axis), rank - 1, *range(axis, rank - 1))))


def repeated_along(x: Array, axes: Axes, shape: Shape) -> Array:
    """x with the axes named, where they have size 1, repeated to their sizes in shape."""
    target = tuple([n if i in axes else m for i, (m, n) in enumerate(zip(x.shape, shape, strict=True))])
    return x if target == x.shape else moved(x, View.contiguous(x.shape).expand(target))


def row_numbers(x: Shape, axes: Axes, shape: Shape) -> list[int]:
    """For each element of a result, which row over `axes` of an operand it takes; axes of size 1 repeat."""
    kept = [i for i in range(len(x)) if i not in axes]
    rows = View.contiguous([x[i] for i in kept])
    return list(rows.expand([shape[i] for i in kept]).indices())
