"""Folds: ops that make each element of many, as a number of elements and what writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.places import Place
from tensorken_wgpu.points import Point
from tensorken_wgpu.wgsl import Accumulator, as_place, maxima, sums

if TYPE_CHECKING:
    from tensorken_core.language.shapes import Axes, Shape
    from tensorken_core.program.program import Equation
    from tensorken_wgpu.writer import Writer


@dataclass(frozen=True)
class Rows:
    """A way to look at an array: as rows, each of the elements along some axes, for each place along the others.

    Attributes:
        shape: of the array.
        axes: along a row; none, if each element is a row by itself.
        whose: a value that shares them with no other fold: a product of matrices, say.
    """

    shape: Shape
    axes: Axes
    whose: Any = None

    @cached_property
    def outer(self) -> Shape:
        """The shape of what has one element for each row."""
        return tuple([1 if i in self.axes else n for i, n in enumerate(self.shape)])

    @cached_property
    def inner(self) -> Shape:
        """The shape of a row."""
        return tuple([self.shape[axis] for axis in self.axes])

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        return prod(self.outer)

    @cached_property
    def length(self) -> int:
        """How many elements a row has."""
        return prod(self.inner)

    @cached_property
    def along_the_last(self) -> bool:
        """Whether neighbours in a row are neighbours in memory."""
        long = [i for i, n in enumerate(self.shape) if n > 1]
        return bool(long) and long[-1] in self.axes

    def element(self, writer: Writer, row: Place, i: Place) -> Point:
        """An element of a row."""
        indices = list(writer.point(self.outer, row).indices)
        inside = writer.point(self.inner, i).indices
        for axis, index in zip(self.axes, inside, strict=True):
            indices[axis] = index
        return Point(self.shape, writer.place, indices)


@dataclass(frozen=True, slots=True)
class Fold:
    """Many elements that become one.

    Attributes:
        count: how many.
        accumulator: how.
        elements: writes some, each of a row and with a place in it, and gives their names.
    """

    count: int
    accumulator: Accumulator
    elements: Callable[[Writer, Sequence[tuple[Place, Place]]], list[str]]


def rows_of(equation: Equation) -> Rows:
    """The rows that an op folds; equal for ops that fold the same elements, whatever their axes are called."""
    name, (x, *others) = equation.op.name, equation.operands
    if name == "scatter_add":
        (v,) = equation.results
        return Rows((*v.shape, others[0].shape[0]), (len(v.shape),), v)
    axes = tuple(equation.params[0])
    shape = _multiplied(equation)
    if name == "fused_multiply_add" and shape not in (x.shape, others[0].shape):
        return Rows(shape, axes, equation.results[0])
    return _merged(shape, axes)


def _multiplied(equation: Equation) -> Shape:
    """The shape of what is folded, before it is."""
    return tuple(
        [
            max(sizes) if 0 not in sizes else 0
            for sizes in zip(*[x.shape for x in equation.operands], strict=True)
        ]
    )


def _merged(shape: Shape, axes: Axes) -> Rows:
    """Neighbouring axes that are all folded, or all not, are one; those of size 1 are none."""
    merged: list[tuple[int, bool]] = []
    for i, n in enumerate(shape):
        if merged and merged[-1][1] == (i in axes):
            merged[-1] = merged[-1][0] * n, i in axes
        elif n != 1:
            merged.append((n, i in axes))
    folded = tuple([i for i, (_, is_folded) in enumerate(merged) if is_folded])
    return Rows(tuple([n for n, _ in merged]), folded)


def fold_of(equation: Equation) -> Fold:
    """An op as what it does with each of the elements."""
    return _FOLDS[equation.op.name](equation)


def _reduction(equation: Equation) -> Fold:
    (x,) = equation.operands
    rows = rows_of(equation)

    def elements(writer: Writer, places: Sequence[tuple[Place, Place]]) -> list[str]:
        return writer.values(
            x, [writer.point(x.shape, rows.element(writer, row, i).linear) for row, i in places]
        )

    accumulator = sums(x.dtype.name) if equation.op.name == "sum" else maxima(x.dtype.name)
    return Fold(rows.length, accumulator, elements)


def _contraction(equation: Equation) -> Fold:
    a, b = equation.operands
    rows, shape = rows_of(equation), _multiplied(equation)

    def elements(writer: Writer, places: Sequence[tuple[Place, Place]]) -> list[str]:
        points = [rows.element(writer, row, i) for row, i in places]
        if rows.shape != shape:
            points = [writer.point(shape, point.linear) for point in points]
        factors = [writer.values(v, [point.before_expand(v.shape) for point in points]) for v in (a, b)]
        return [f"{x} * {y}" for x, y in zip(*factors, strict=True)]

    return Fold(rows.length, sums(a.dtype.name), elements)


def _scatter(equation: Equation) -> Fold:
    """For each element of the result of all that is added to it, in order."""
    (x, indices), (axis, _), (v,) = equation.operands, equation.params, equation.results
    accumulator = sums(x.dtype.name)

    def element(writer: Writer, row: Place, i: Place) -> str:
        here = writer.point(v.shape, row).indices
        index = as_place(indices.dtype.name, writer.value(indices, writer.point(indices.shape, i)))
        value = writer.value(x, Point(x.shape, writer.place, [*here[:axis], i, *here[axis + 1 :]]))
        return f"select({accumulator.start}, {value}, {index} == {here[axis]})"

    def elements(writer: Writer, places: Sequence[tuple[Place, Place]]) -> list[str]:
        return [element(writer, row, i) for row, i in places]

    return Fold(indices.shape[0] if prod(x.shape) else 0, accumulator, elements)


_FOLDS: dict[str, Callable[[Equation], Fold]] = {
    "sum": _reduction,
    "max": _reduction,
    "scatter_add": _scatter,
    "fused_multiply_add": _contraction,
}
