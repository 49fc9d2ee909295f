"""Tiles: kernels of products of matrices, each invocation of which computes a tile of the result.

What is read once serves a whole row or column of a tile, so a tile of 8 x 8 needs an eighth of the reads.  Operands are
read at points, as everywhere, so it does not matter in which order their axes lie in memory.  Tiles at the edge are
moved back until they lie within the result; of these only what no other tile has is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from tensorken_wgpu.kernels import Cluster, Kernel, module, spread
from tensorken_wgpu.places import Place, fixed, variable
from tensorken_wgpu.products import product_of
from tensorken_wgpu.templates import whole
from tensorken_wgpu.wgsl import sums
from tensorken_wgpu.writer import FOLDS, Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.target import Target
    from tensorken_wgpu.vectors import Vector

STEP = 4
"""How many elements of the sum are added in one turn of the loop."""

LOOPED = 64
"""The results of a tile up to which they are stored in a loop; for more, drivers take long to make one of an array."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What one invocation computes.

    Attributes:
        rows: of the result.
        columns: of the result, a multiple of 4.
        together: how many invocations a workgroup has.
    """

    rows: int
    columns: int
    together: int

    def __str__(self) -> str:
        return f"tile {self.rows}x{self.columns}, {self.together} together"


class TileKernel:
    """Writes the kernel of a cluster of which one value is a contraction, all others are computed from its result.

    Args:
        cluster: what to compute.
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory.
        tile: what an invocation has.
        target: where it is to run.
        between: what the results are written to if the sum is divided into parts; nothing else is computed then.
        parts: how many there are, each for other invocations.
        vectors: as what values are read and written, of those that are so several at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        makers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        tile: Tile,
        target: Target,
        between: Variable | None = None,
        parts: int = 1,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        self.cluster = cluster
        self.makers = makers
        self.tile = tile
        self.parts = parts
        self.between = between
        (self.fold,) = [v for v in cluster.values if makers[v].op.name in FOLDS]
        self.product = product_of(makers[self.fold])
        self.accumulator = sums(self.fold.dtype.name)
        known = frozenset([*kept, *([] if between is None else [between])])
        self.writer = Writer(makers, known, frozenset(cluster.values), vectors, target)
        self.shared: list[str] = []
        self.apart = 4  # from one vector of a tile's columns to the next

    def kernel(self) -> Kernel:
        """The whole.

        Raises:
            NotHere: if a value is needed at a point where this kernel does not compute it.
        """
        places = self._start()
        self._accumulators()
        self._sum(places)
        self._results(places)
        writer, cluster = self.writer, self.cluster
        text = module(writer, self.tile.together, self.shared)
        made = tuple([self.makers[v] for v in cluster.values])
        return Kernel(
            text, spread(self._workgroups()), tuple(writer.reads), tuple(writer.writes), self._work(), made
        )

    def _work(self) -> int:
        """How many elements are read."""
        size = self.cluster.rows.count * self.cluster.rows.length
        return size // self._length("rows") + size // self._length("columns")

    # ---- places --------------------------------------------------------------------------------------------

    def _tiles(self, role: str) -> int:
        """How many tiles there are side by side, or below each other."""
        return -(-self.product.size(role) // self._length(role))

    def _length(self, role: str) -> int:
        return self.tile.rows if role == "rows" else self.tile.columns

    def _count(self) -> int:
        """How many tiles there are, for each part of the sum."""
        return self.parts * self.product.size("batch") * self._tiles("rows") * self._tiles("columns")

    def _workgroups(self) -> int:
        return -(-self._count() // self.tile.together)

    def _start(self) -> dict[str, Place]:
        """The head of the text; the place of an invocation's tile in the batch, and those at which it begins."""
        writer, count = self.writer, self._count()
        writer.line(f"let t = g.x + g.y * n.x * {self.tile.together}u;")
        writer.line(f"if (t >= {whole(count)}) {{ return; }}")
        return self._begun(variable("t", count))

    def _begun(self, tile: Place) -> dict[str, Place]:
        """Of a tile's number its place in the batch, and the row and column at which it begins."""
        writer = self.writer
        rest, column = tile.divided(self._tiles("columns"), writer.place)
        rest, row = rest.divided(self._tiles("rows"), writer.place)
        self.part, batch = rest.divided(self.product.size("batch"), writer.place)
        self.tiles = {"rows": row, "columns": column}
        return {"batch": batch, **{role: self._inside(role, place) for role, place in self.tiles.items()}}

    def _inside(self, role: str, tile: Place) -> Place:
        """Where a tile begins, moved back if it would not end within the result."""
        length, size = self._length(role), self.product.size(role)
        if size % length == 0:
            return tile.times(length)
        step = gcd(length, size)
        last = (size - length) // step
        return self.writer.place(f"min({tile.times(length // step)}, {whole(last)})", last + 1).times(step)

    # ---- the sum -------------------------------------------------------------------------------------------

    @property
    def _vectors(self) -> int:
        """How many vectors of four the columns of a tile are."""
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

    def _sum(self, places: Mapping[str, Place]) -> None:
        """Run through the sum, or the part of it that is this invocation's."""
        writer = self.writer
        turns, rest = divmod(self.product.size("inner"), STEP)
        if turns:
            with self._turns(turns) as turn:
                inner = turn.times(STEP)
                self._steps(places, [inner.plus(e) for e in range(STEP)])
        if rest:
            last = [fixed(turns * STEP + e) for e in range(rest)]
            if self.parts == 1:
                self._steps(places, last)
            else:
                with writer.block(f"if ({self.part} == {whole(self.parts - 1)})"):
                    self._steps(places, last)

    @contextmanager
    def _turns(self, count: int) -> Iterator[Place]:
        """A loop of so many turns, divided among the parts; what is written meanwhile is in it."""
        chunk = -(-count // self.parts)
        name, start = self.writer.fresh(), self.part.times(chunk)
        end = str(start.plus(chunk))
        if chunk * self.parts > count:
            end = f"min({end}, {whole(count)})"
        with self.writer.block(f"for (var {name} = {start}; {name} < {end}; {name} += 1u)"):
            yield variable(name, count)

    def _steps(self, places: Mapping[str, Place], inner: Sequence[Place]) -> None:
        """Add the products of some elements of the sum, to one accumulator after the other: so it stays at hand."""
        right = {(j, e): self._four(places, j, k) for j in range(self._vectors) for e, k in enumerate(inner)}
        for i in range(self.tile.rows):
            row = places["rows"].plus(i)
            left = [self.product.element(self.writer, 0, {**places, "rows": row, "inner": k}) for k in inner]
            for j in range(self._vectors):
                for e, x in enumerate(left):
                    self._add(i, j, x, right[j, e])

    def _four(self, places: Mapping[str, Place], j: int, inner: Place) -> str:
        """The elements of the second operand in four columns."""
        first = places["columns"].plus(self.apart * j)
        names = [
            self.product.element(self.writer, 1, {**places, "columns": first.plus(c), "inner": inner})
            for c in range(4)
        ]
        return self.writer.named(("vector", *names), self._vector(names))

    def _add(self, i: int, j: int, x: str, y: str) -> None:
        """Add the products of a number and a vector to an accumulator."""
        total, x = f"c{i}_{j}", self._vector([x])
        is_float = self.accumulator.dtype.startswith("float")
        self.writer.line(f"{total} = fma({x}, {y}, {total});" if is_float else f"{total} += {x} * {y};")

    # ---- results -------------------------------------------------------------------------------------------

    def _results(self, places: Mapping[str, Place]) -> None:
        """Compute from the sums what the kernel computes, and store it."""
        writer, rows, vectors = self.writer, self.tile.rows, self._vectors
        names = [f"c{i}_{j}" for i in range(rows) for j in range(vectors)]
        if 4 * len(names) > LOOPED:
            for number, name in enumerate(names):
                self._store_vector(places, fixed(number // vectors), fixed(number % vectors), name)
            return
        totals, i, j = writer.fresh(), writer.fresh(), writer.fresh()
        writer.line(f"var {totals} = array<{self._vector_type}, {len(names)}>({', '.join(names)});")
        with (
            writer.block(f"for (var {i} = 0u; {i} < {rows}u; {i} += 1u)"),
            writer.block(f"for (var {j} = 0u; {j} < {vectors}u; {j} += 1u)"),
        ):
            name = writer.named(totals, f"{totals}[{i} * {vectors}u + {j}]")
            self._store_vector(places, variable(i, rows), variable(j, vectors), name)

    def _store_vector(self, places: Mapping[str, Place], i: Place, j: Place, name: str) -> None:
        """Store four columns of a row, at once if that is possible."""
        row, first = places["rows"] + i, places["columns"] + j.times(self.apart)
        together = 4 if self.product.size("columns") % 4 == 0 else 1
        for e in range(0, 4, together):
            found = [(first.plus(c), f"{name}.{'xyzw'[c]}") for c in range(e, e + together)]
            self._store(places["batch"], row, found)

    def _store(self, batch: Place, row: Place, found: Sequence[tuple[Place, str]]) -> None:
        """Store the results of one column or four, unless another tile does."""
        column, _ = found[0]
        conditions = [
            f"{place} >= {self.tiles[role].times(self._length(role))}"
            for role, place in (("rows", row), ("columns", column))
            if self.product.size(role) % self._length(role)
        ]
        if conditions:
            with self.writer.block(f"if ({' && '.join(conditions)})"):
                self._write(batch, row, found)
        else:
            self._write(batch, row, found)

    def _write(self, batch: Place, row: Place, found: Sequence[tuple[Place, str]]) -> None:
        writer = self.writer
        elements = [
            (self.product.result(writer, {"batch": batch, "rows": row, "columns": column}), name)
            for column, name in found
        ]
        if self.between is not None:
            base = self.part.times(self.cluster.rows.count)
            writer.store(self.between, [(base + place, name) for place, name in elements])
            return
        places = [place for place, _ in elements]
        writer.at_home({v: places for v in self.cluster.values if v is not self.fold})
        for place, name in elements:
            writer.know(self.fold, place, writer.named(("total", name), self.accumulator.finish(name)))
        for v in self.cluster.written:
            writer.store(v, [(p, writer.value(v, writer.point(v.shape, p))) for p in places])
