"""Folds: ops that make each element of many, as a number of elements and what writes each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_wgpu.places import Place
from tensorken_wgpu.points import Point
from tensorken_wgpu.wgsl import Accumulator, maxima, sums

if TYPE_CHECKING:
    from tensorken.programs.program import Equation
    from tensorken.spec.shapes import Axes, Shape
    from tensorken_wgpu.writer import Writer


@dataclass(frozen=True, slots=True)
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

    @property
    def outer(self) -> Shape:
        """The shape of what has one element for each row."""
        return tuple([1 if i in self.axes else n for i, n in enumerate(self.shape)])

    @property
    def inner(self) -> Shape:
        """The shape of a row."""
        return tuple([self.shape[axis] for axis in self.axes])

    @property
    def count(self) -> int:
        """How many rows there are."""
        return prod(self.outer)

    @property
    def length(self) -> int:
        """How many elements a row has."""
        return prod(self.inner)

    @property
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
        element: writes one, and gives its name, in a row.
    """

    count: int
    accumulator: Accumulator
    element: Callable[[Writer, Place, Place], str]


def rows_of(equation: Equation) -> Rows:
    """The rows that an op folds."""
    name, (x, *others) = equation.op.name, equation.operands
    if name == "scatter_add":
        (v,) = equation.results
        return Rows((*v.shape, others[0].shape[0]), (len(v.shape),), v)
    axes = tuple(equation.params[0])
    if name != "fused_multiply_add":
        return Rows(x.shape, axes)
    shape = tuple([m if n == 1 else n for n, m in zip(x.shape, others[0].shape, strict=True)])
    alone = shape not in (x.shape, others[0].shape)
    return Rows(shape, axes, equation.results[0] if alone else None)


def fold_of(equation: Equation) -> Fold:
    """An op as what it does with each of the elements."""
    return _FOLDS[equation.op.name](equation)


def _reduction(equation: Equation) -> Fold:
    (x,) = equation.operands
    rows = rows_of(equation)

    def element(writer: Writer, row: Place, i: Place) -> str:
        return writer.value(x, rows.element(writer, row, i))

    accumulator = sums(x.dtype.name) if equation.op.name == "sum" else maxima(x.dtype.name)
    return Fold(rows.length, accumulator, element)


def _contraction(equation: Equation) -> Fold:
    a, b = equation.operands
    rows = rows_of(equation)

    def element(writer: Writer, row: Place, i: Place) -> str:
        point = rows.element(writer, row, i)
        x, y = [writer.value(v, point.before_expand(v.shape)) for v in (a, b)]
        return f"{x} * {y}"

    return Fold(rows.length, sums(a.dtype.name), element)


def _scatter(equation: Equation) -> Fold:
    """For each element of the result of all that is added to it, in order."""
    (x, indices), (axis, _), (v,) = equation.operands, equation.params, equation.results
    accumulator = sums(x.dtype.name)

    def element(writer: Writer, row: Place, i: Place) -> str:
        here = writer.point(v.shape, row).indices
        index = writer.value(indices, writer.point(indices.shape, i))
        value = writer.value(x, Point(x.shape, writer.place, [*here[:axis], i, *here[axis + 1 :]]))
        return f"select({accumulator.start}, {value}, u32({index}) == {here[axis]})"

    return Fold(indices.shape[0] if prod(x.shape) else 0, accumulator, element)


_FOLDS: dict[str, Callable[[Equation], Fold]] = {
    "sum": _reduction,
    "max": _reduction,
    "scatter_add": _scatter,
    "fused_multiply_add": _contraction,
}
