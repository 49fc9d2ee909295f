"""Reductions: ops whose result elements combine many elements of the operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.element_indices import ElementIndex
from tensorken_wgpu.index_expressions import IndexExpression
from tensorken_wgpu.wgsl import Accumulator, as_index, maxima, sums

if TYPE_CHECKING:
    from tensorken_core.language.shapes import Axes, Shape
    from tensorken_core.program.program import Equation
    from tensorken_wgpu.writer import Writer


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

    def element(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> ElementIndex:
        """The index of element i of a row."""
        indices = list(writer.element(self.outer, row).indices)
        inside = writer.element(self.inner, i).indices
        for axis, index in zip(self.axes, inside, strict=True):
            indices[axis] = index
        return ElementIndex(self.shape, writer.index, indices)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction.

    Attributes:
        count: how many elements are combined.
        accumulator: how they are combined.
        elements: writes some elements, each given by its row and its index in the row, and returns their names.
    """

    count: int
    accumulator: Accumulator
    elements: Callable[[Writer, Sequence[tuple[IndexExpression, IndexExpression]]], list[str]]


def rows_of(equation: Equation) -> Rows:
    """The rows that an op reduces; equal for ops that reduce the same elements, whatever their axes."""
    name, (x, *others) = equation.op.name, equation.operands
    if name == "scatter_add":
        (v,) = equation.results
        return Rows((*v.shape, others[0].shape[0]), (len(v.shape),), v)
    axes = tuple(equation.params[0])
    shape = _unreduced_shape(equation)
    if name == "fused_multiply_add" and shape not in (x.shape, others[0].shape):
        return Rows(shape, axes, equation.results[0])
    return _merged(shape, axes)


def _unreduced_shape(equation: Equation) -> Shape:
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
    folded = tuple([i for i, (_, is_folded) in enumerate(merged) if is_folded])
    return Rows(tuple([n for n, _ in merged]), folded)


def reduction_of(equation: Equation) -> Reduction:
    """The reduction of an op."""
    return _REDUCTIONS[equation.op.name](equation)


def _reduction(equation: Equation) -> Reduction:
    (x,) = equation.operands
    rows = rows_of(equation)

    def elements(writer: Writer, indices: Sequence[tuple[IndexExpression, IndexExpression]]) -> list[str]:
        return writer.values(
            x, [writer.element(x.shape, rows.element(writer, row, i).linear) for row, i in indices]
        )

    accumulator = sums(x.dtype.name) if equation.op.name == "sum" else maxima(x.dtype.name)
    return Reduction(rows.length, accumulator, elements)


def _contraction(equation: Equation) -> Reduction:
    a, b = equation.operands
    rows, shape = rows_of(equation), _unreduced_shape(equation)

    def elements(writer: Writer, indices: Sequence[tuple[IndexExpression, IndexExpression]]) -> list[str]:
        elements_at = [rows.element(writer, row, i) for row, i in indices]
        if rows.shape != shape:
            elements_at = [writer.element(shape, element_index.linear) for element_index in elements_at]
        factors = [
            writer.values(v, [element_index.before_expand(v.shape) for element_index in elements_at])
            for v in (a, b)
        ]
        return [f"{x} * {y}" for x, y in zip(*factors, strict=True)]

    return Reduction(rows.length, sums(a.dtype.name), elements)


def _scatter(equation: Equation) -> Reduction:
    """Each result element reduces, in order, all slices whose index selects it."""
    (x, indices), (axis, _), (v,) = equation.operands, equation.params, equation.results
    accumulator = sums(x.dtype.name)

    def element(writer: Writer, row: IndexExpression, i: IndexExpression) -> str:
        result_index = writer.element(v.shape, row).indices
        target_index = as_index(indices.dtype.name, writer.value(indices, writer.element(indices.shape, i)))
        value = writer.value(
            x,
            ElementIndex(x.shape, writer.index, [*result_index[:axis], i, *result_index[axis + 1 :]]),
        )
        return f"select({accumulator.start}, {value}, {target_index} == {result_index[axis]})"

    def elements(writer: Writer, indices: Sequence[tuple[IndexExpression, IndexExpression]]) -> list[str]:
        return [element(writer, row, i) for row, i in indices]

    return Reduction(indices.shape[0] if prod(x.shape) else 0, accumulator, elements)


_REDUCTIONS: dict[str, Callable[[Equation], Reduction]] = {
    "sum": _reduction,
    "max": _reduction,
    "scatter_add": _scatter,
    "fused_multiply_add": _contraction,
}
