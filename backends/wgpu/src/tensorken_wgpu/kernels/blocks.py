"""Blocks: kernels of matrix products whose workgroups share the operands of their tiles in workgroup memory.

A block of the result consists of the tiles of a workgroup.  For some elements of the sum at a time, a *slice* of the
operands, the workgroup reads the rows and columns of the block, each element once; then each invocation adds the
products that its tile needs.  There are two buffers: while the products of one slice are added, the next slice is on
its way from memory, and one barrier a slice is enough.

Workgroup memory holds vectors of four neighbouring rows, or columns, of one element of the sum.  They are written and
read as whole vectors: WGSL lets a driver write a whole vector where a kernel writes one of its numbers, so two
invocations must not write the same one.  An operand whose neighbours in memory are elements of the sum is therefore
read in squares of 4 x 4, which are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorken.kernels.index_expressions import IndexExpression, variable
from tensorken_wgpu.kernels.tiles import Tile, TileKernel
from tensorken_wgpu.wgsl.templates import index_text, integer

if TYPE_CHECKING:
    from tensorken.kernels.nests import FusionGroup
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.wgsl.target import Target
    from tensorken_wgpu.wgsl.vectors import Vector

BUFFERS = 2


@dataclass(frozen=True, slots=True)
class Block:
    """The part of the result that a workgroup computes.

    Attributes:
        rows: of an invocation's tile: 4 or 8.
        columns: of an invocation's tile, a multiple of 4.
        down: how many tiles are below each other, a power of two.
        across: how many tiles are side by side, a power of two.
        depth: the elements of the sum in a slice, a multiple of 4.
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

    def shared_bytes(self, size: int) -> int:
        """The bytes of workgroup memory, for elements of this size."""
        return BUFFERS * self.depth * sum(self.sides.values()) * size


@dataclass(frozen=True, slots=True)
class _Unit:
    """What an invocation copies of a slice of an operand at a time: a vector, or a square of 4 x 4.

    Attributes:
        line: the first row or column.
        step: the first element of the sum.
        names: of the variables that hold its vectors.
        place: where in the buffer its first vector is written.
        stride: from one vector to the next in the buffer, if it is a square.
    """

    line: IndexExpression
    step: IndexExpression
    names: list[str]
    place: str
    stride: int


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
        self.slices = -(-self.product.size("inner") // block.depth)
        self.shared = [
            f"var<workgroup> {_SHARED[operand]}: array<{self._vector_type}, {BUFFERS * self._vectors_of(operand)}>;"
            for operand in (0, 1)
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
        """Copy the first slice; then, for each slice, load the next one, if there is one, add the products of this
        one, and store the next one in the other buffer.
        """
        writer = self.writer
        units = {operand: self._units(operand) for operand in (0, 1)}
        first, end = self._range_of_part(self.slices, self.block.depth)
        self._load(units, self._at_most_last(first))
        self._store_slice(units, "0u")
        writer.line("workgroupBarrier();")
        name = writer.new_name()
        with writer.block(f"for (var {name} = {index_text(first)}; {name} < {end}; {name} += 1u)"):
            following = writer.new_name()
            writer.line(f"let {following} = {name} + 1u;")
            with writer.block(f"if ({following} < {end})"):
                self._load(units, variable(following, self.slices))
            now = writer.named(
                "now", f"({name} - {index_text(first)}) & 1u" if first.terms else f"{name} & 1u"
            )
            for k in range(self.block.depth):
                self._step(k, now)
            with writer.block(f"if ({following} < {end})"):
                self._store_slice(units, writer.named("next", f"1u - {now}"))
            writer.line("workgroupBarrier();")

    def _at_most_last(self, number: IndexExpression) -> IndexExpression:
        """The number of a slice, or of the last one: a part after it has none, and may load any."""
        if not number.terms:
            return number
        return self.writer.index(f"min({index_text(number)}, {integer(self.slices - 1)})", self.slices)

    def _is_transposed(self, operand: int) -> bool:
        """Whether neighbours in memory are elements of the sum."""
        return self.product.last(operand) == "inner"

    def _vectors_of(self, operand: int) -> int:
        """The number of vectors of a slice."""
        return self.block.sides[_SIDES[operand]] * self.block.depth // 4

    def _units(self, operand: int) -> list[_Unit]:
        """The units that an invocation copies; their variables are declared."""
        writer, block = self.writer, self.block
        across = block.sides[_SIDES[operand]] // 4
        is_transposed = self._is_transposed(operand)
        units = []
        for i in range(max(1, self._units_of(operand) // block.workgroup_size)):
            copying = min(block.workgroup_size, self._units_of(operand))  # invocations, see `_if_needed`
            number = variable("l", copying).plus(i * block.workgroup_size)
            if is_transposed:
                vector, four = number.divided(block.depth // 4, writer)
                step, swizzled = four.times(4), f"({index_text(vector)} ^ {index_text(four.times(2))})"
                place = f"{index_text(step.times(across))} + {swizzled}"
            else:
                step, vector = number.divided(across, writer)
                place = index_text(step.times(across) + vector)
            names = [writer.new_name() for _ in range(4 if is_transposed else 1)]
            for name in names:
                writer.line(f"var {name}: {self._vector_type};")
            units.append(
                _Unit(vector.times(4), step, names, writer.named(("place", operand, i), place), across)
            )
        return units

    def _units_of(self, operand: int) -> int:
        return self._vectors_of(operand) // (4 if self._is_transposed(operand) else 1)

    def _if_needed(self, operand: int) -> Any:
        """A block for the invocations that copy something of an operand."""
        count = self._units_of(operand)
        return self.writer.block(f"if (l < {count}u)") if count < self.block.workgroup_size else nullcontext()

    def _load(self, units: Mapping[int, list[_Unit]], number: IndexExpression) -> None:
        """Read a slice of both operands from memory into variables."""
        begin = number.times(self.block.depth)
        for operand, dimension in enumerate(_SIDES):
            with self._if_needed(operand):
                for unit in units[operand]:
                    for i, name in enumerate(unit.names):
                        elements = [
                            (unit.line.plus(i), unit.step.plus(e))
                            if self._is_transposed(operand)
                            else (unit.line.plus(e), unit.step)
                            for e in range(4)
                        ]
                        values = [
                            self._element(operand, dimension, line, begin + step) for line, step in elements
                        ]
                        self.writer.line(f"{name} = {self._vector(values)};")

    def _store_slice(self, units: Mapping[int, list[_Unit]], buffer: str) -> None:
        """Write a slice of both operands from variables into a buffer."""
        for operand, shared in enumerate(_SHARED):
            with self._if_needed(operand):
                start = self._buffer(operand, buffer)
                for unit in units[operand]:
                    vectors = unit.names
                    if self._is_transposed(operand):
                        vectors = [self._vector([f"{name}.{c}" for name in unit.names]) for c in "xyzw"]
                    for i, vector in enumerate(vectors):
                        self.writer.line(f"{shared}[{start} + {unit.place} + {i * unit.stride}u] = {vector};")

    def _buffer(self, operand: int, number: str) -> str:
        """The index of the first vector in a buffer."""
        return self.writer.named(("buffer", operand, number), f"{number} * {self._vectors_of(operand)}u")

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

    def _step(self, k: int, now: str) -> None:
        """Add the products of one element of the sum in workgroup memory."""
        vectors = [
            self._read(1, k, now, "across", j * self.block.across) for j in range(self.block.columns // 4)
        ]
        for i in range(self.block.rows):
            quarter = self.block.rows // 4
            x = self._read(0, k, now, f"down * {quarter}u", i // 4)
            for j, vector in enumerate(vectors):
                self._add(i, j, f"{x}.{'xyzw'[i % 4]}", vector)

    def _read(self, operand: int, k: int, now: str, first: str, number: int) -> str:
        """A vector in workgroup memory, of four rows or columns of one element of the sum.

        Vectors of a transposed operand are swizzled: a workgroup writes those of four elements of the sum at once,
        which would otherwise be in the same banks of the memory.  The exclusive or leaves `number` alone: it changes
        bits of `first`, which is below `across`, or even.
        """
        swizzle = 2 * (k // 4) if self._is_transposed(operand) else 0
        place = f"({first} ^ {swizzle}u)" if swizzle else first
        start = self.writer.named(("start", operand, swizzle), f"{self._buffer(operand, now)} + {place}")
        across = self.block.sides[_SIDES[operand]] // 4
        text = f"{_SHARED[operand]}[{start} + {k * across + number}u]"
        return self.writer.named((k, operand, number), text)


_SIDES = ("rows", "columns")
_SHARED = ("shared_rows", "shared_columns")
