"""Contractions as products of matrices: which axes are rows, columns, batch, and inner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.elements import ElementWalk
from tensorken.kernels.index_expressions import IndexExpression, constant_index

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis, or several adjacent ones, of the product of the operands before it is summed.

    Attributes:
        dimension: "batch" if both operands have it, "rows" or "columns" if one does, "inner" if it is summed.
        size: along it.
        present: whether the first and the second operand have it; else its size there is 1.
    """

    dimension: str
    size: int
    present: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction as a product of matrices, or of a batch of them.

    Attributes:
        operands: the operand with rows, and the operand with columns.
        axes: of the operands' product; the last axis that is not batch or inner belongs to the columns.
    """

    operands: tuple[Variable, Variable]
    axes: tuple[Axis, ...]

    def size(self, dimension: str) -> int:
        """The number of elements along all axes of a dimension."""
        return prod([axis.size for axis in self.axes if axis.dimension == dimension])

    def last(self, operand: int) -> str:
        """The dimension along which neighbouring elements of an operand are adjacent in memory."""
        return [axis.dimension for axis in self.axes if axis.present[operand]][-1]

    def element(self, walk: ElementWalk[Any], operand: int, indices: Mapping[str, IndexExpression]) -> Any:
        """An element of an operand, at an index along each dimension."""
        v = self.operands[operand]
        axes = [i for i, axis in enumerate(self.axes) if axis.present[operand]]
        return walk.value(v, walk.element(v.shape, self._linear(walk, axes, indices)))

    def result(self, walk: ElementWalk[Any], indices: Mapping[str, IndexExpression]) -> IndexExpression:
        """The row-major index of an element of the result."""
        axes = [i for i, axis in enumerate(self.axes) if axis.dimension != "inner"]
        return self._linear(walk, axes, indices)

    def _linear(
        self, walk: ElementWalk[Any], axes: Sequence[int], indices: Mapping[str, IndexExpression]
    ) -> IndexExpression:
        """The row-major index in an array that has some of the axes."""
        axis_indices: dict[int, IndexExpression] = {}
        for dimension in {self.axes[i].dimension: None for i in axes}:
            of_dimension = [i for i, axis in enumerate(self.axes) if axis.dimension == dimension]
            element = walk.element([self.axes[i].size for i in of_dimension], indices[dimension])
            axis_indices.update(zip(of_dimension, element.indices, strict=True))
        total, step = constant_index(0), 1
        for i in reversed(axes):
            total, step = total + axis_indices[i].times(step), step * self.axes[i].size
        return total


def product_of(equation: Equation) -> Product:
    """A contraction as a product of matrices."""
    a, b = equation.operands
    axes: list[Axis] = []
    for axis in [x for x in axes_of(equation) if x is not None]:
        if axes and (axes[-1].dimension, axes[-1].present) == (axis.dimension, axis.present):
            axes.append(Axis(axis.dimension, axes.pop().size * axis.size, axis.present))
        else:
            axes.append(axis)
    outer = [axis.dimension for axis in axes if axis.dimension in ("rows", "columns")]
    if outer and outer[-1] == "rows":
        swapped = [Axis(_SWAPPED.get(x.dimension, x.dimension), x.size, x.present[::-1]) for x in axes]
        return Product((b, a), tuple(swapped))
    return Product((a, b), tuple(axes))


def axes_of(equation: Equation) -> list[Axis | None]:
    """The axes of a contraction, one by one; None in place of axes of size 1."""
    (a, b), summed = equation.operands, equation.params[0]
    axes: list[Axis | None] = []
    for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
        present = n != 1, m != 1
        dimension = "inner" if i in summed else _DIMENSIONS.get(present, "")
        axes.append(Axis(dimension, n if present[0] else m, present) if any(present) else None)
    return axes


_DIMENSIONS = {(True, True): "batch", (True, False): "rows", (False, True): "columns"}
_SWAPPED = {"rows": "columns", "columns": "rows"}
