"""Tiles: kernels of matrix products in which each invocation computes a tile of the result.

An element that is read is used for a whole row or column of a tile, so a tile of 8 x 8 needs an eighth of the
reads.  Operands are read through element indices, so the order of their axes in memory does not matter.  Tiles at
the edge are moved back until they fit in the result, and store only elements that no other tile stores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable
from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.products import product_of
from tensorken.kernels.rows import REDUCTIONS
from tensorken_wgpu.kernels.kernel import Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.wgsl.ops import sums
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.wgsl.target import Target
    from tensorken_wgpu.wgsl.vectors import Vector

STEP = 4
"""The number of elements of the sum that are added per iteration."""

PART_STEP = 16
"""The number of elements of the sum that a part has a multiple of: a multiple of the steps of all tiles."""

MAX_LOOPED = 64
"""The largest tile, in elements, whose results are stored in a loop; drivers take long to compile larger arrays."""


MAX_UNROLLED_VALUES = 4
"""The most values whose results are stored without a loop on a GPU, so that sums need not be in an array."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of the result that one invocation computes.

    Attributes:
        rows: of the result.
        columns: of the result, a multiple of 4.
        workgroup_size: invocations of a workgroup.
    """

    rows: int
    columns: int
    workgroup_size: int

    def __str__(self) -> str:
        return f"tile {self.rows}x{self.columns}, workgroups of {self.workgroup_size}"


class TileKernel:
    """Writes the kernel of a fusion group of one contraction and values computed from its result.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        tile: of an invocation.
        target: the device.
        partials: the value that partial sums are written to if the sum is divided into parts; then nothing else is
            computed.
        parts: how many parts, each for other invocations.
        vectors: the vectors in which values are read and written.
    """

    def __init__(
        self,
        group: FusionGroup,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        tile: Tile,
        target: Target,
        partials: Variable | None = None,
        parts: int = 1,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        self.group = group
        self.producers = producers
        self.tile = tile
        self.target = target
        self.parts = parts
        self.partials = partials
        (self.reduction,) = [v for v in group.values if producers[v].op.name in REDUCTIONS]
        self.product = product_of(producers[self.reduction])
        self.accumulator = sums(self.reduction.dtype.name)
        known = frozenset([*kept, *([] if partials is None else [partials])])
        self.writer = Writer(producers, known, frozenset(group.values), vectors, target)
        self.shared: list[str] = []
        self.column_step = 4  # columns from one vector of a tile to the next

    def kernel(self) -> Kernel:
        """Write the kernel.

        Raises:
            NotComputedHere: if a value is needed at an element that this kernel does not compute.
        """
        indices = self._start()
        self._accumulators()
        self._sum(indices)
        self._results(indices)
        writer, group = self.writer, self.group
        text = kernel_template(writer, self.tile.workgroup_size, self.shared)
        equations = tuple([self.producers[v] for v in group.values])
        return Kernel(
            text,
            workgroup_grid(self._workgroups()),
            tuple(writer.reads),
            tuple(writer.writes),
            self._work(),
            equations,
            is_proved=writer.is_proved,
        )

    def _work(self) -> int:
        """How many elements are read."""
        size = self.group.rows.count * self.group.rows.length
        return size // self._length("rows") + size // self._length("columns")

    # ---- indices -------------------------------------------------------------------------------------------

    def _tiles(self, dimension: str) -> int:
        """The number of tiles along rows or columns."""
        return -(-self.product.size(dimension) // self._length(dimension))

    def _length(self, dimension: str) -> int:
        return self.tile.rows if dimension == "rows" else self.tile.columns

    def _count(self) -> int:
        """The number of tiles, over all parts of the sum."""
        return self.parts * self.product.size("batch") * self._tiles("rows") * self._tiles("columns")

    def _workgroups(self) -> int:
        return -(-self._count() // self.tile.workgroup_size)

    def _start(self) -> dict[str, IndexExpression]:
        """Write the head of the body; returns the batch index, the first row and the first column of the tile."""
        writer, count = self.writer, self._count()
        writer.line(f"let t = g.x + g.y * n.x * {self.tile.workgroup_size}u;")
        writer.line(f"if (t >= {integer(count)}) {{ return; }}")
        return self._tile_start(variable("t", count))

    def _tile_start(self, tile: IndexExpression) -> dict[str, IndexExpression]:
        """The batch index, the first row and the first column of the tile with this number."""
        writer = self.writer
        rest, column = tile.divided(self._tiles("columns"), writer)
        rest, row = rest.divided(self._tiles("rows"), writer)
        self.part, batch = rest.divided(self.product.size("batch"), writer)
        self.tiles = {"rows": row, "columns": column}
        return {
            "batch": batch,
            **{dimension: self._clamped(dimension, tile) for dimension, tile in self.tiles.items()},
        }

    def _clamped(self, dimension: str, tile: IndexExpression) -> IndexExpression:
        """The start of a tile, moved back if it would not fit in the result."""
        length, size = self._length(dimension), self.product.size(dimension)
        if size % length == 0:
            return tile.times(length)
        step = gcd(length, size)
        last = (size - length) // step
        return self.writer.index(
            f"min({index_text(tile.times(length // step))}, {integer(last)})", last + 1
        ).times(step)

    # ---- the sum -------------------------------------------------------------------------------------------

    @property
    def _vectors(self) -> int:
        """The number of vectors of four in the columns of a tile."""
        return self.tile.columns // 4

    def _accumulators(self) -> None:
        for i in range(self.tile.rows):
            for j in range(self._vectors):
                self.writer.line(f"var c{i}_{j} = {self._vector([self.accumulator.start])};")

    @property
    def _vector_type(self) -> str:
        return f"vec4<{self.accumulator.type}>"

    def _vector(self, names: Sequence[str]) -> str:
        return f"{self._vector_type}({', '.join(names)})"

    def _sum(self, indices: Mapping[str, IndexExpression]) -> None:
        """Loop over the sum, or the invocation's part of it."""
        writer = self.writer
        iterations, rest = divmod(self.product.size("inner"), STEP)
        if iterations:
            with self._iterations(iterations) as iteration:
                inner = iteration.times(STEP)
                self._steps(indices, [inner.plus(e) for e in range(STEP)])
        if rest:
            last = [constant_index(iterations * STEP + e) for e in range(rest)]
            if self.parts == 1:
                self._steps(indices, last)
            else:
                of_last = iterations // self._chunk(STEP)
                with writer.block(f"if ({index_text(self.part)} == {integer(of_last)})"):
                    self._steps(indices, last)

    @contextmanager
    def _iterations(self, count: int) -> Iterator[IndexExpression]:
        """A loop of this many iterations, divided among the parts; lines written in the context are its body."""
        name, (start, end) = self.writer.new_name(), self._range_of_part(count, STEP)
        with self.writer.block(f"for (var {name} = {index_text(start)}; {name} < {end}; {name} += 1u)"):
            yield variable(name, count)

    def _range_of_part(self, count: int, step: int) -> tuple[IndexExpression, str]:
        """The first of this kernel's iterations, which may be after the last of all, and the end.

        Args:
            count: the number of iterations of all parts.
            step: the elements of the sum of an iteration.
        """
        if self.parts == 1:
            return constant_index(0), integer(count)
        chunk = self._chunk(step)
        start = self.part.times(chunk)
        end = index_text(start.plus(chunk))
        return start, f"min({end}, {integer(count)})" if chunk * self.parts > count else end

    def _chunk(self, step: int) -> int:
        """The iterations of a part.  A part has the same elements for all tiles, so the sums have the same bits."""
        return -(-self.product.size("inner") // (PART_STEP * self.parts)) * (PART_STEP // step)

    def _steps(self, indices: Mapping[str, IndexExpression], inner: Sequence[IndexExpression]) -> None:
        """Add the products of some elements of the sum, one accumulator after the other, so that each stays in a
        register.
        """
        right = {(j, e): self._four(indices, j, k) for j in range(self._vectors) for e, k in enumerate(inner)}
        for i in range(self.tile.rows):
            row = indices["rows"].plus(i)
            left = [self.product.element(self.writer, 0, {**indices, "rows": row, "inner": k}) for k in inner]
            for j in range(self._vectors):
                for e, x in enumerate(left):
                    self._add(i, j, x, right[j, e])

    def _four(self, indices: Mapping[str, IndexExpression], j: int, inner: IndexExpression) -> str:
        """Four columns of the second operand."""
        first = indices["columns"].plus(self.column_step * j)
        names = [
            self.product.element(self.writer, 1, {**indices, "columns": first.plus(c), "inner": inner})
            for c in range(4)
        ]
        return self.writer.named(("vector", *names), self._vector(names))

    def _add(self, i: int, j: int, x: str, y: str) -> None:
        """Add the products of a number and a vector to an accumulator."""
        total, x = f"c{i}_{j}", self._vector([x])
        is_float = self.accumulator.dtype.startswith("float")
        self.writer.line(f"{total} = fma({x}, {y}, {total});" if is_float else f"{total} += {x} * {y};")

    # ---- results -------------------------------------------------------------------------------------------

    def _results(self, indices: Mapping[str, IndexExpression]) -> None:
        """Compute the group's values from the sums, and store them."""
        writer, rows, vectors = self.writer, self.tile.rows, self._vectors
        names = [f"c{i}_{j}" for i in range(rows) for j in range(vectors)]
        is_short = len(self.group.values) <= MAX_UNROLLED_VALUES and not self.target.is_software
        if 4 * len(names) > MAX_LOOPED or is_short:
            for number, name in enumerate(names):
                self._store_vector(
                    indices, constant_index(number // vectors), constant_index(number % vectors), name
                )
            return
        totals, i, j = writer.new_name(), writer.new_name(), writer.new_name()
        writer.line(f"var {totals} = array<{self._vector_type}, {len(names)}>({', '.join(names)});")
        with (
            writer.block(f"for (var {i} = 0u; {i} < {rows}u; {i} += 1u)"),
            writer.block(f"for (var {j} = 0u; {j} < {vectors}u; {j} += 1u)"),
        ):
            name = writer.named(totals, f"{totals}[{i} * {vectors}u + {j}]")
            self._store_vector(indices, variable(i, rows), variable(j, vectors), name)

    def _store_vector(
        self, indices: Mapping[str, IndexExpression], i: IndexExpression, j: IndexExpression, name: str
    ) -> None:
        """Store four columns of a row, as a vector if possible."""
        row, first = indices["rows"] + i, indices["columns"] + j.times(self.column_step)
        size = 4 if self.product.size("columns") % 4 == 0 else 1
        for e in range(0, 4, size):
            columns = [(first.plus(c), f"{name}.{'xyzw'[c]}") for c in range(e, e + size)]
            self._store(indices["batch"], row, columns)

    def _store(
        self, batch: IndexExpression, row: IndexExpression, columns: Sequence[tuple[IndexExpression, str]]
    ) -> None:
        """Store the results of one column or four, unless another tile does."""
        column, _ = columns[0]
        conditions = [
            f"{index_text(index)} >= {index_text(self.tiles[dimension].times(self._length(dimension)))}"
            for dimension, index in (("rows", row), ("columns", column))
            if self.product.size(dimension) % self._length(dimension)
        ]
        if conditions:
            with self.writer.block(f"if ({' && '.join(conditions)})"):
                self._write(batch, row, columns)
        else:
            self._write(batch, row, columns)

    def _write(
        self, batch: IndexExpression, row: IndexExpression, columns: Sequence[tuple[IndexExpression, str]]
    ) -> None:
        writer = self.writer
        elements = [
            (self.product.result(writer, {"batch": batch, "rows": row, "columns": column}), name)
            for column, name in columns
        ]
        if self.partials is not None:
            base = self.part.times(self.group.rows.count)
            writer.store(self.partials, [(base + index, name) for index, name in elements])
            return
        indices = [index for index, _ in elements]
        writer.set_current({v: indices for v in self.group.values if v is not self.reduction})
        for index, name in elements:
            writer.define(self.reduction, index, writer.named(("total", name), self.accumulator.finish(name)))
        for v in self.group.written:
            writer.store(v, [(i, writer.value(v, writer.element(v.shape, i))) for i in indices])
