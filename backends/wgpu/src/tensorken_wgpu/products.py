"""Products: contractions as products of matrices: which axes are rows, columns, those of a batch, and those summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorken_wgpu.places import Place, fixed

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.writer import Writer


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of the product of the operands, before it is summed; or several that lie side by side.

    Attributes:
        role: "batch", if both operands have it, "rows" or "columns", if one does, "inner", if it is summed.
        size: along it.
        inside: whether the first operand has it, and the second; else it has size 1 there.
    """

    role: str
    size: int
    inside: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Product:
    """A contraction as a product of matrices, or of a batch of them.

    Attributes:
        operands: the one that has rows, and the one that has columns.
        axes: of the operands' product; the last one that is not summed is of columns, if any is of rows or columns.
    """

    operands: tuple[Variable, Variable]
    axes: tuple[Axis, ...]

    def size(self, role: str) -> int:
        """How many elements there are along all axes of a role."""
        return prod([axis.size for axis in self.axes if axis.role == role])

    def last(self, operand: int) -> str:
        """The role of the axis along which neighbours of an operand lie side by side."""
        return [axis.role for axis in self.axes if axis.inside[operand]][-1]

    def element(self, writer: Writer, operand: int, places: Mapping[str, Place]) -> str:
        """Write an element of an operand, at a place along the axes of each role."""
        v = self.operands[operand]
        axes = [i for i, axis in enumerate(self.axes) if axis.inside[operand]]
        return writer.value(v, writer.point(v.shape, self._linear(writer, axes, places)))

    def result(self, writer: Writer, places: Mapping[str, Place]) -> Place:
        """Where an element of the result lies."""
        axes = [i for i, axis in enumerate(self.axes) if axis.role != "inner"]
        return self._linear(writer, axes, places)

    def _linear(self, writer: Writer, axes: Sequence[int], places: Mapping[str, Place]) -> Place:
        """The place in an array that has some of the axes."""
        indices: dict[int, Place] = {}
        for role in {self.axes[i].role: None for i in axes}:
            along = [i for i, axis in enumerate(self.axes) if axis.role == role]
            found = writer.point([self.axes[i].size for i in along], places[role]).indices
            indices.update(zip(along, found, strict=True))
        total, step = fixed(0), 1
        for i in reversed(axes):
            total, step = total + indices[i].times(step), step * self.axes[i].size
        return total


def product_of(equation: Equation) -> Product:
    """A contraction, by the role of each axis."""
    a, b = equation.operands
    summed = frozenset(equation.params[0])
    axes: list[Axis] = []
    for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
        inside = n != 1, m != 1
        if inside == (False, False):
            continue
        role = "inner" if i in summed else _ROLES[inside]
        before = axes[-1] if axes and (axes[-1].role, axes[-1].inside) == (role, inside) else None
        if before:
            axes.pop()
        axes.append(Axis(role, (n if inside[0] else m) * (before.size if before else 1), inside))
    outer = [axis.role for axis in axes if axis.role in ("rows", "columns")]
    if outer and outer[-1] == "rows":
        turned = [Axis(_TURNED.get(x.role, x.role), x.size, x.inside[::-1]) for x in axes]
        return Product((b, a), tuple(turned))
    return Product((a, b), tuple(axes))


_ROLES = {(True, True): "batch", (True, False): "rows", (False, True): "columns"}
_TURNED = {"rows": "columns", "columns": "rows"}
