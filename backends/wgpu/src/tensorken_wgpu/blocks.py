"""Blocks: kernels of matrix products whose workgroups share the operands of their tiles in workgroup memory.

A block of the result consists of the tiles of a workgroup.  For some elements of the sum at a time, the workgroup
reads the rows and columns of the block, each element once; then each invocation adds the products that its tile
needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorken.kernels.index_expressions import IndexExpression, variable
from tensorken_wgpu.templates import index_text, integer
from tensorken_wgpu.tiles import Tile, TileKernel

if TYPE_CHECKING:
    from tensorken.kernels.nests import FusionGroup
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector


@dataclass(frozen=True, slots=True)
class Block:
    """The part of the result that a workgroup computes.

    Attributes:
        rows: of an invocation's tile.
        columns: of an invocation's tile, a multiple of 4.
        down: how many tiles are below each other.
        across: how many tiles are side by side.
        depth: how many elements of the sum are shared at a time; this many rows, and columns, are a multiple of
            four times the invocations.
    """

    rows: int
    columns: int
    down: int
    across: int
    depth: int

    def __str__(self) -> str:
        sides = "x".join(map(str, self.sides.values()))
        return f"block {sides} of {self.rows}x{self.columns}, {self.depth} deep"

    @property
    def workgroup_size(self) -> int:
        """The number of invocations."""
        return self.down * self.across

    @property
    def tile(self) -> Tile:
        """The tile of an invocation."""
        return Tile(self.rows, self.columns, self.workgroup_size)

    @property
    def sides(self) -> dict[str, int]:
        """The rows and columns of the block."""
        return {"rows": self.rows * self.down, "columns": self.columns * self.across}


class BlockKernel(TileKernel):
    """Writes the kernel of a fusion group with one contraction, whose workgroups share the elements they read.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        block: of a workgroup.
        target: the device.
        partials: the value that partial sums are written to if the sum is divided into parts; then nothing else is
            computed.
        parts: how many parts, each for other workgroups.
        vectors: the vectors in which values are read and written.
    """

    def __init__(
        self,
        group: FusionGroup,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        block: Block,
        target: Target,
        partials: Variable | None = None,
        parts: int = 1,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        super().__init__(group, producers, kept, block.tile, target, partials, parts, vectors)
        self.block = block
        self.column_step = 4 * block.across  # neighbouring invocations read and write neighbouring vectors
        element_type = self.accumulator.type
        self.shared = [
            f"var<workgroup> {name}: array<{element_type}, {side * block.depth}>;"
            for name, side in zip(_SHARED, block.sides.values(), strict=True)
        ]

    def _length(self, dimension: str) -> int:
        return self.block.sides[dimension]

    def _workgroups(self) -> int:
        return self._count()

    def _start(self) -> dict[str, IndexExpression]:
        writer, count, block = self.writer, self._count(), self.block
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(count)}) {{ return; }}")
        self.corner = self._tile_start(variable("q", count))
        writer.line(f"let down = l / {block.across}u;")
        writer.line(f"let across = l % {block.across}u;")
        rows = self.corner["rows"] + variable("down", block.down).times(block.rows)
        columns = self.corner["columns"] + variable("across", block.across).times(4)
        return {**self.corner, "rows": rows, "columns": columns}

    # ---- the sum -------------------------------------------------------------------------------------------

    def _sum(self, indices: Mapping[str, IndexExpression]) -> None:
        writer, depth = self.writer, self.block.depth
        with self._iterations(-(-self.product.size("inner") // depth)) as iteration:
            for operand in (0, 1):
                self._share(operand, iteration.times(depth))
            writer.line("workgroupBarrier();")
            for k in range(depth):
                self._step(k)
            writer.line("workgroupBarrier();")

    def _share(self, operand: int, begin: IndexExpression) -> None:
        """Copy the elements of an operand that the block needs into workgroup memory, four per invocation."""
        writer, dimension = self.writer, _SIDES[operand]
        side, depth, workgroup_size = self.block.sides[dimension], self.block.depth, self.block.workgroup_size
        neighbours = self.product.last(operand)
        for iteration in range(side * depth // 4 // workgroup_size):
            number = variable("l", workgroup_size).plus(iteration * workgroup_size)
            if neighbours == "inner":
                line, first = number.divided(depth // 4, writer)
                elements = [(line, first.times(4).plus(e)) for e in range(4)]
            else:
                step, first = number.divided(side // 4, writer)
                elements = [(first.times(4).plus(e), step) for e in range(4)]
            for line, step in elements:
                value = self._element(operand, dimension, line, begin + step)
                writer.line(f"{_SHARED[operand]}[{index_text(step.times(side) + line)}] = {value};")

    def _element(self, operand: int, dimension: str, line: IndexExpression, inner: IndexExpression) -> str:
        """An element of an operand; 0 after the end of the sum."""
        size = self.product.size("inner")
        indices = {"batch": self.corner["batch"], dimension: self.corner[dimension] + line}
        if size % self.block.depth == 0:
            element: str = self.product.element(self.writer, operand, {**indices, "inner": inner})
            return element
        step = 4 if size % 4 == 0 and all([f % 4 == 0 for f in inner.terms.values()]) else 1
        remainder = inner.constant % step
        clamped = self.writer.index(
            f"min({index_text(inner.over(step))}, {integer(size // step - 1)})", size // step
        )
        value = self.product.element(
            self.writer, operand, {**indices, "inner": clamped.times(step).plus(remainder)}
        )
        return f"select({self.accumulator.type}(0), {value}, {index_text(inner.over(step))} < {integer(size // step)})"

    def _step(self, k: int) -> None:
        """Add the products of one element of the sum in workgroup memory."""
        left, right = _SHARED
        rows, columns = [k * side for side in self.block.sides.values()]
        vectors = []
        for j in range(self._vectors):
            first = columns + j * self.column_step
            vector = self._vector([f"{right}[across * 4u + {first + c}u]" for c in range(4)])
            vectors.append(self.writer.named((k, "columns", j), vector))
        for i in range(self.tile.rows):
            text = f"{left}[down * {self.tile.rows}u + {rows + i}u]"
            x = self.writer.named((k, "rows", i), text)
            for j, vector in enumerate(vectors):
                self._add(i, j, x, vector)


_SIDES = ("rows", "columns")
_SHARED = ("shared_rows", "shared_columns")
