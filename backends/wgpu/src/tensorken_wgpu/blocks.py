"""Blocks: kernels of products of matrices, each workgroup of which brings what its tiles share into its own memory.

A block of the result is the tiles of a workgroup.  For some elements of the sum at a time, the workgroup's invocations
together read the rows and columns of the block, each element once; then each adds what its own tile needs of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorken_wgpu.places import Place, variable
from tensorken_wgpu.templates import whole
from tensorken_wgpu.tiles import Tile, TileKernel

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.kernels import Cluster
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector


@dataclass(frozen=True, slots=True)
class Block:
    """What a workgroup computes.

    Attributes:
        rows: of the result, for each invocation.
        columns: the same, a multiple of 4.
        down: how many tiles lie below each other.
        across: how many tiles lie side by side.
        depth: how many elements of the sum are shared at a time; so many rows, and columns, are a multiple of four
            times the invocations.
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
    def together(self) -> int:
        """How many invocations there are."""
        return self.down * self.across

    @property
    def tile(self) -> Tile:
        """That of an invocation."""
        return Tile(self.rows, self.columns, self.together)

    @property
    def sides(self) -> dict[str, int]:
        """How many rows and columns the block has."""
        return {"rows": self.rows * self.down, "columns": self.columns * self.across}


class BlockKernel(TileKernel):
    """Writes the kernel of a cluster of which one value is a contraction, with what is read shared by workgroups.

    Args:
        cluster: what to compute.
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory.
        block: what a workgroup has.
        target: where it is to run.
        between: what the results are written to if the sum is divided into parts; nothing else is computed then.
        parts: how many there are, each for other workgroups.
        vectors: as what values are read and written, of those that are so several at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        makers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        block: Block,
        target: Target,
        between: Variable | None = None,
        parts: int = 1,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        super().__init__(cluster, makers, kept, block.tile, target, between, parts, vectors)
        self.block = block
        self.apart = 4 * block.across  # neighbours then read and write neighbouring vectors
        kind = self.accumulator.type
        self.shared = [
            f"var<workgroup> {name}: array<{kind}, {side * block.depth}>;"
            for name, side in zip(_SHARED, block.sides.values(), strict=True)
        ]

    def _length(self, role: str) -> int:
        return self.block.sides[role]

    def _workgroups(self) -> int:
        return self._count()

    def _start(self) -> dict[str, Place]:
        writer, count, block = self.writer, self._count(), self.block
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {whole(count)}) {{ return; }}")
        self.corner = self._begun(variable("q", count))
        writer.line(f"let down = l / {block.across}u;")
        writer.line(f"let across = l % {block.across}u;")
        rows = self.corner["rows"] + variable("down", block.down).times(block.rows)
        columns = self.corner["columns"] + variable("across", block.across).times(4)
        return {**self.corner, "rows": rows, "columns": columns}

    # ---- the sum -------------------------------------------------------------------------------------------

    def _sum(self, places: Mapping[str, Place]) -> None:
        writer, depth = self.writer, self.block.depth
        with self._turns(-(-self.product.size("inner") // depth)) as turn:
            for operand in (0, 1):
                self._share(operand, turn.times(depth))
            writer.line("workgroupBarrier();")
            for k in range(depth):
                self._step(k)
            writer.line("workgroupBarrier();")

    def _share(self, operand: int, begin: Place) -> None:
        """Bring the elements of an operand that the block needs into the workgroup's memory, four by four."""
        writer, role = self.writer, _SIDES[operand]
        side, depth, together = self.block.sides[role], self.block.depth, self.block.together
        neighbours = self.product.last(operand)
        for turn in range(side * depth // 4 // together):
            number = variable("l", together).plus(turn * together)
            if neighbours == "inner":
                line, first = number.divided(depth // 4, writer.place)
                elements = [(line, first.times(4).plus(e)) for e in range(4)]
            else:
                step, first = number.divided(side // 4, writer.place)
                elements = [(first.times(4).plus(e), step) for e in range(4)]
            for line, step in elements:
                value = self._element(operand, role, line, begin + step)
                writer.line(f"{_SHARED[operand]}[{step.times(side) + line}] = {value};")

    def _element(self, operand: int, role: str, line: Place, inner: Place) -> str:
        """An element of an operand; 0 after the end of the sum."""
        size = self.product.size("inner")
        places = {"batch": self.corner["batch"], role: self.corner[role] + line}
        if size % self.block.depth == 0:
            return self.product.element(self.writer, operand, {**places, "inner": inner})
        step = 4 if size % 4 == 0 and all([f % 4 == 0 for f in inner.terms.values()]) else 1
        rest = inner.constant % step
        near = self.writer.place(f"min({inner.over(step)}, {whole(size // step - 1)})", size // step)
        value = self.product.element(self.writer, operand, {**places, "inner": near.times(step).plus(rest)})
        return f"select({self.accumulator.type}(0), {value}, {inner.over(step)} < {whole(size // step)})"

    def _step(self, k: int) -> None:
        """Add the products of one element of the sum of those that are shared."""
        left, right = _SHARED
        rows, columns = [k * side for side in self.block.sides.values()]
        vectors = []
        for j in range(self._vectors):
            first = columns + j * self.apart
            vector = self._vector([f"{right}[across * 4u + {first + c}u]" for c in range(4)])
            vectors.append(self.writer.named((k, "columns", j), vector))
        for i in range(self.tile.rows):
            text = f"{left}[down * {self.tile.rows}u + {rows + i}u]"
            x = self.writer.named((k, "rows", i), text)
            for j, vector in enumerate(vectors):
                self._add(i, j, x, vector)


_SIDES = ("rows", "columns")
_SHARED = ("shared_rows", "shared_columns")
