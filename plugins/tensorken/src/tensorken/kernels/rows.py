"""Rows: the index space of a kernel; and the ops whose elements combine the elements of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.elements import E, ElementWalk
from tensorken.kernels.index_expressions import IndexExpression

if TYPE_CHECKING:
    from tensorken_core.language.shapes import Axes, Shape
    from tensorken_core.program.program import Equation

REDUCTIONS = frozenset({"sum", "max", "scatter_add", "fused_multiply_add"})
"""Ops whose elements combine many elements of the operands."""


@dataclass(frozen=True)
class Rows:
    """An array viewed as rows: the elements along some axes, one row for each index along the others.

    Attributes:
        shape: of the array.
        axes: along a row; none if each element is its own row.
        owner: identifies rows that no other reduction shares, such as those of a matrix product.
    """

    shape: Shape
    axes: Axes
    owner: Any = None

    @cached_property
    def outer(self) -> Shape:
        """The shape of a value with one element per row."""
        return tuple([1 if i in self.axes else n for i, n in enumerate(self.shape)])

    @cached_property
    def inner(self) -> Shape:
        """The shape of a row."""
        return tuple([self.shape[axis] for axis in self.axes])

    @cached_property
    def count(self) -> int:
        """The number of rows."""
        return prod(self.outer)

    @cached_property
    def length(self) -> int:
        """The number of elements of a row."""
        return prod(self.inner)

    @cached_property
    def along_the_last(self) -> bool:
        """Whether neighbours in a row are neighbours in memory."""
        long = [i for i, n in enumerate(self.shape) if n > 1]
        return bool(long) and long[-1] in self.axes

    def element(self, walk: ElementWalk[Any], row: IndexExpression, i: IndexExpression) -> ElementIndex:
        """The index of element i of a row."""
        indices = list(walk.element(self.outer, row).indices)
        inside = walk.element(self.inner, i).indices
        for axis, index in zip(self.axes, inside, strict=True):
            indices[axis] = index
        return ElementIndex(self.shape, walk, indices)


def rows_of(equation: Equation) -> Rows:
    """The rows that an op reduces; equal for ops that reduce the same elements, whatever their axes.

    Rows of one element each, of a reduction over axes of size 1, have an owner, as they have no axes.
    """
    name, (x, *others) = equation.op.name, equation.operands
    if name == "scatter_add":
        (v,) = equation.results
        return Rows((*v.shape, others[0].shape[0]), (len(v.shape),), v)
    axes = tuple(equation.params[0])
    shape = unreduced_shape(equation)
    if name == "fused_multiply_add" and shape not in (x.shape, others[0].shape):
        return Rows(shape, axes, equation.results[0])
    rows = _merged(shape, axes)
    return rows if rows.axes else Rows(rows.shape, (), equation.results[0])


def reduced_length(equation: Equation) -> int:
    """The number of elements that an op combines to one."""
    if equation.op.name == "scatter_add":
        x, indices = equation.operands
        return indices.shape[0] if prod(x.shape) else 0
    return rows_of(equation).length


def reduced_elements(
    walk: ElementWalk[E], equation: Equation, positions: Sequence[tuple[IndexExpression, IndexExpression]]
) -> Sequence[E]:
    """Elements that an op combines, for pairs of a row and an index in the row."""
    rows = rows_of(equation)
    if equation.op.name == "scatter_add":
        return [_scattered(walk, equation, row, i) for row, i in positions]
    indices = [rows.element(walk, row, i) for row, i in positions]
    if equation.op.name != "fused_multiply_add":
        (x,) = equation.operands
        return walk.values(x, [walk.element(x.shape, index.linear) for index in indices])
    shape = unreduced_shape(equation)
    if rows.shape != shape:
        indices = [walk.element(shape, index.linear) for index in indices]
    a, b = [walk.values(x, [index.before_expand(x.shape) for index in indices]) for x in equation.operands]
    return [walk.product(x, y, equation.operands[0].dtype) for x, y in zip(a, b, strict=True)]


def _scattered(walk: ElementWalk[E], equation: Equation, row: IndexExpression, i: IndexExpression) -> E:
    """The slice at index i if it is scattered to this element of the result, else zero."""
    (x, indices), (axis, size), (v,) = equation.operands, equation.params, equation.results
    result_indices = walk.element(v.shape, row).indices
    target = walk.as_index(walk.value(indices, walk.element(indices.shape, i)), indices.dtype, size)
    inside = ElementIndex(x.shape, walk, [*result_indices[:axis], i, *result_indices[axis + 1 :]])
    equal = target + result_indices[axis].times(-1), 1
    return walk.guarded(lambda: [walk.value(x, inside)], [[equal]], x.dtype)[0]


def unreduced_shape(equation: Equation) -> Shape:
    """The shape of the elements before the reduction."""
    return tuple(
        [
            max(sizes) if 0 not in sizes else 0
            for sizes in zip(*[x.shape for x in equation.operands], strict=True)
        ]
    )


def _merged(shape: Shape, axes: Axes) -> Rows:
    """Merge adjacent axes that are all reduced or all kept, and drop axes of size 1."""
    merged: list[tuple[int, bool]] = []
    for i, n in enumerate(shape):
        if merged and merged[-1][1] == (i in axes):
            merged[-1] = merged[-1][0] * n, i in axes
        elif n != 1:
            merged.append((n, i in axes))
    reduced = tuple([i for i, (_, is_reduced) in enumerate(merged) if is_reduced])
    return Rows(tuple([n for n, _ in merged]), reduced)
