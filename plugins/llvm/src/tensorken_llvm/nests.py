"""Nests: kernels as LLVM functions, with loops that LLVM can vectorise.

A sum of a row is added up in chunks, in vectors, and float32 chunks are added up in float64: as accurate as pairwise
summation.  Where neighbours in memory belong to different rows, a block of rows is reduced side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken.kernels.index_expressions import IndexExpression, written_variable
from tensorken.kernels.nests import CountingNest, FusionGroup, Nest
from tensorken_llvm import scalars
from tensorken_llvm.axes import Loop, loops_of
from tensorken_llvm.builder import Builder, has_wide_vectors, new_function
from tensorken_llvm.dtypes import (
    BIT,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    NUMPY,
    POINTER,
    STORED,
    TYPES,
    index_number,
)
from tensorken_llvm.threads import Split, write_split
from tensorken_llvm.tiles import TILE, Tiles, tiles_of
from tensorken_llvm.walk import Walk

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

CHUNK = 1024
"""How many float32 elements of a row are added up, in vectors, before they are added to a float64."""

BLOCK_CHUNK = 256
"""The same for rows side by side, whose elements are added one after the other."""

MAX_STORED_BYTES = 2**14
"""The most bytes of a row of a value that is stored between loops: it stays in the first-level cache."""

MAX_STORED = 2
"""The most values that are stored between loops."""

MAX_ACCUMULATED_BYTES = 24 * 2**10
"""The most bytes of accumulators of rows that are reduced side by side: they stay in the first-level cache."""

BLOCK_PART = 1024
"""The least rows side by side that a thread reduces: memory is read fast if neighbours are read together."""

MIN_SPLIT = 2**19
"""Kernels that compute at least this many elements and indices are divided among threads: some 50 microseconds."""

MIN_PART = 2**17
"""The least elements and indices of a part."""

PART_MULTIPLE = 64
"""Parts of contiguous elements end where vectors do."""

ENOUGH = 16
"""Parts of a loop that is split."""

MIN_LONG = 1024
"""From this many iterations of the innermost loop on, wide vectors are computed four at a time: there are registers
enough, and expensive functions have long chains of operations."""


class Accumulator:
    """A variable, or one for each row of a block, in memory that LLVM promotes to registers.

    Args:
        b: of the function.
        type_: of its elements.
        size: how many rows; None for a single variable.
    """

    def __init__(self, b: Builder, type_: Any, size: int | None) -> None:
        self._b, self.type = b, type_
        with b.goto_entry_block():
            self._memory = b.alloca(type_) if size is None else b.alloca(type_, ir.Constant(INT32, size))
        self._memory.align = 64

    def _address(self, lane: Any) -> Any:
        return self._memory if lane is None else self._b.gep(self._memory, [lane], source_etype=self.type)

    def get(self, lane: Any) -> Any:
        """The value; `lane` is the row of a block, or None."""
        return self._b.load(self._address(lane), typ=self.type)

    def set(self, lane: Any, value: Any) -> None:
        """Change the value."""
        self._b.store(value, self._address(lane))


class Maximum(Accumulator):
    """The maximum of floats, of which LLVM makes one instruction: whether one is NaN is another variable.

    In a comparison that assumes that there are no NaN, NaN gives an arbitrary result, which is not used then.
    """

    def __init__(self, b: Builder, type_: Any) -> None:
        super().__init__(b, type_, None)
        self._nan = Accumulator(b, BIT, None)

    def get(self, lane: Any) -> Any:
        nan = ir.Constant(self.type, math.nan)
        return self._b.select(self._nan.get(None), nan, super().get(None))

    def set(self, lane: Any, value: Any) -> None:
        super().set(None, value)
        self._nan.set(None, ir.Constant(BIT, 0))

    def include(self, y: Any) -> None:
        """Make it the maximum of itself and another element."""
        b, total, flags = self._b, super().get(None), ("nnan", "nsz")
        is_nan = b.fcmp_unordered("uno", y, y)
        self._nan.set(None, b.or_(self._nan.get(None), is_nan))
        larger = b.fcmp_ordered(">", y, total, flags=flags)
        super().set(None, b.select(larger, y, total, flags=flags))


@dataclass(frozen=True, slots=True)
class Part:
    """Some neighbouring iterations of a loop.

    Attributes:
        first: the first one, in a register.
        count: of iterations, in a register.
    """

    first: Any
    count: Any


class KernelNest(Nest[Any]):
    """Writes a kernel.

    Args:
        group: to compute.
        walk: writes its elements.
        kept: the values in memory.
        replaced: those of which each element is read before it is overwritten.
    """

    walk: Walk

    def __init__(
        self,
        group: FusionGroup,
        walk: Walk,
        kept: Collection[Variable],
        replaced: Collection[Variable] = (),
    ) -> None:
        super().__init__(group, walk)
        self.replaced = replaced
        self.builder = walk.builder
        self.axes = loops_of(group, walk.producers, kept)
        last = self.axes.outer[-1:] if self.rows.axes and not self.rows.along_the_last else ()
        self.block: Loop | None = last[0] if last else None  # rows side by side in memory
        self.size: int | None = None if self.block is None else min(self._rows_per_block(), self.block.size)
        self.tiles = tiles_of(group, walk.producers, kept, self.axes)
        innermost = [*self.axes.outer, *self.axes.inner][-1:]
        is_long = self.block is None and all([loop.size >= MIN_LONG for loop in innermost])
        if is_long and has_wide_vectors():
            self.builder.vectors = 4
        self.parts: dict[Loop, Part] = {}
        self.position: tuple[Any, Any] = (None, None)  # in a tile
        self.lane: Any = None
        self.totals: dict[Variable, Accumulator] = {}
        self.stored: dict[Variable, Accumulator] = {}

    def _rows_per_block(self) -> int:
        """How many rows are reduced side by side."""
        most = 1
        for stage in range(1, self.loops):
            dtypes = [self.producers[v].operands[0].dtype for v in self.reductions if self.depths[v] == stage]
            most = max(
                most, sum([NUMPY[dtype.name].itemsize + NUMPY["float64"].itemsize for dtype in dtypes])
            )
        return MAX_ACCUMULATED_BYTES // most

    def write(self, bounds: tuple[Any, Any] | None = None) -> None:
        """Write the loops.

        Args:
            bounds: the first iteration, and the one after the last, of the loop that is split; None for all.
        """
        loops = self._outer_loops()
        bounded = None if bounds is None else loops[self._split_loop(loops)]
        begin, end = bounds or (None, None)

        def one(rest: Sequence[Loop]) -> None:
            if not rest:
                if self.tiles is None:
                    self.run([self.axes.row])
                else:
                    self._run_tile(self.tiles)
                return
            loop, size = rest[0], self._part_size(rest[0])

            def body(i: Any) -> None:
                if size != 1:
                    self.parts[loop] = self._part(loop, i, size)
                    one(rest[1:])
                    return
                self.walk.index_values[loop.name] = i
                with self.walk.scope():
                    one(rest[1:])

            def block(first: Any) -> None:
                self.parts[loop] = Part(first, self._at_most(self.builder.sub(end, first), size))
                one(rest[1:])

            if loop is not bounded:
                self.builder.loop(self._iterations(loop), body)
            elif loop is self.block:
                self.builder.loop(end, block, first=begin, step=size)
            else:
                self.builder.loop(end, body, first=begin)

        one(loops)

    def split(self) -> Split | None:
        """How the loops over rows are divided among threads; None if they are too short."""
        loops = self._outer_loops()
        total = self.group.work * max(self.axes.count, 1)
        if not loops or total < MIN_SPLIT:
            return None
        number = self._split_loop(loops)
        loop = loops[number]
        count, unit = self._iterations(loop), 1
        if loop is self.block:
            count, unit = loop.size, BLOCK_PART
        elif number == len(loops) - 1 and not self.axes.inner and self.tiles is None:
            unit = PART_MULTIPLE
        grain = -(-count * MIN_PART // (total * unit)) * unit
        return Split(count, grain) if grain < count else None

    def _outer_loops(self) -> tuple[Loop, ...]:
        """The loops over rows, or over blocks or tiles of them; the outermost first."""
        if self.tiles is None:
            return self.axes.outer
        tiled = self.tiles.rows, self.tiles.columns
        return (*[loop for loop in self.axes.outer if loop not in tiled], *tiled)

    def _part_size(self, loop: Loop) -> int:
        """How many iterations of a loop are one of the loop over blocks or tiles; 1 if there is none."""
        if self.tiles is not None and loop in (self.tiles.rows, self.tiles.columns):
            return TILE
        return self.size if loop is self.block and self.size is not None else 1

    def _iterations(self, loop: Loop) -> int:
        return -(-loop.size // self._part_size(loop))

    def _split_loop(self, loops: Sequence[Loop]) -> int:
        """The loop to split: the outermost one that has enough parts, or the one that has the most."""
        counts = [
            -(-loop.size // BLOCK_PART) if loop is self.block else self._iterations(loop) for loop in loops
        ]
        return next((i for i, n in enumerate(counts) if n >= ENOUGH), counts.index(max(counts)))

    def _loops(self, loops: Sequence[Loop], body: Callable[[], None]) -> None:
        if not loops:
            body()
            return

        def one(i: Any) -> None:
            self.walk.index_values[loops[0].name] = i
            with self.walk.scope():
                self._loops(loops[1:], body)

        self.builder.loop(loops[0].size, one)

    def _part(self, loop: Loop, i: Any, size: int) -> Part:
        """A block of rows, or the rows or columns of a tile."""
        first = self.builder.mul(i, index_number(size), flags=("nsw",))
        return Part(first, self._rest(loop.size, first, size))

    def _run_tile(self, tiles: Tiles) -> None:
        """Copy the values that are read across the order of the loops, and compute the elements of a tile."""
        for v, index in tiles.loads:
            self._copy_tile(tiles, v, index)

        def element(i: Any, j: Any) -> None:
            self.position = i, j
            self.run([self.axes.row])

        self._tile_loops((tiles.rows, tiles.columns), element)

    def _copy_tile(self, tiles: Tiles, v: Variable, index: IndexExpression) -> None:
        """Copy the elements of a value in a tile, in the order in which they are in memory."""
        b, walk, stored = self.builder, self.walk, STORED[v.dtype.name]
        with b.goto_entry_block():
            memory = b.alloca(stored, ir.Constant(INT32, TILE * TILE))
        memory.align = 64

        def place(i: Any, j: Any) -> Any:
            position = b.add(b.mul(i, index_number(TILE), flags=("nsw",)), j, flags=("nsw",))
            return b.gep(memory, [position], source_etype=stored)

        def copy(j: Any, i: Any) -> None:
            b.store(walk.load_stored(v, index), place(i, j))

        self._tile_loops((tiles.columns, tiles.rows), copy)
        walk.copies[v, index.key] = lambda: b.load(place(*self.position), typ=stored)

    def _tile_loops(self, loops: tuple[Loop, Loop], body: Callable[[Any, Any], None]) -> None:
        """Loops over a tile, for positions in the tile."""
        outer, inner = loops

        def one(i: Any) -> None:
            self._tile_loop(inner, lambda j: body(i, j))

        self._tile_loop(outer, one)

    def _tile_loop(self, loop: Loop, body: Callable[[Any], None]) -> None:
        part = self.parts[loop]

        def one(i: Any) -> None:
            self.walk.index_values[loop.name] = self.builder.add(part.first, i, flags=("nsw",))
            with self.walk.scope():
                body(i)

        self.builder.loop(part.count, one)

    def _rest(self, count: int, first: Any, size: int) -> Any:
        """How many of the elements from the first on are in a part of this size."""
        if count % size == 0:
            return index_number(size)
        return self._at_most(self.builder.sub(index_number(count), first), size)

    def _at_most(self, count: Any, size: int) -> Any:
        """The smaller one of a number in a register and another."""
        is_less = self.builder.icmp_unsigned("<", count, index_number(size))
        return self.builder.select(is_less, count, index_number(size))

    def _each_lane(self, body: Callable[[], None]) -> None:
        """Run a body that computes elements for the rows of a block, or the one row."""
        if self.block is None:
            body()
            return
        block = self.block

        def one() -> None:
            first = self.parts[block].first
            self.walk.index_values[block.name] = self.builder.add(first, self.lane, flags=("nsw",))
            with self.walk.scope():
                self._define_totals()
                body()

        self._lanes(one)

    def _define_totals(self) -> None:
        for v, total in self.totals.items():
            self.walk.define(v, self.axes.row, self._finished(v, total.get(self.lane)))

    def _finished(self, v: Variable, total: Any) -> Any:
        type_ = TYPES[v.dtype.name]
        if total.type is DOUBLE and type_ is FLOAT:
            total = self.builder.fptrunc(total, FLOAT)
        return scalars.rounded_to_half(self.builder, total) if v.dtype.name == "float16" else total

    # ---- the loops of a row --------------------------------------------------------------------------------

    def compute_outer(self, stage: int, rows: Sequence[IndexExpression]) -> None:
        if self.block is None:
            super().compute_outer(stage, rows)
            return
        outer = [v for v in self.group.values if self.depths[v] == stage and self.group.is_outer(v)]
        found = [v for v in outer if v not in self.reductions and self._is_needed_after(v, stage)]
        stored = {v: Accumulator(self.builder, TYPES[v.dtype.name], self.size) for v in found}

        def store() -> None:
            for v, memory in stored.items():
                (row,) = rows
                memory.set(self.lane, self.walk.value(v, self.walk.element(v.shape, row)))

        if stored:  # each loop over the rows of a block computes all else that it needs
            self._each_lane(store)
            self.totals |= stored

    def store_outer(self, values: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        store = super().store_outer

        def lane() -> None:
            for v in self.replaced:
                for row in rows:
                    self.walk.value(v, self.walk.element(v.shape, row))
            store(values, rows)

        self._each_lane(lane)

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, Any]]) -> None:
        for index, element in elements:
            self.walk.store(v, index, element)

    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        def element() -> None:
            self._load_stored()
            body([self.axes.element])

        self._loops(self.axes.inner, lambda: self._each_lane(element))

    def _store_needed(self, stage: int) -> None:
        """Store the values of this element that were computed in a loop, and that a later one needs too.

        They are in a row of memory that stays in the first-level cache, if they are expensive: others are not kept.
        """
        if self.block is not None or len(self.stored) >= MAX_STORED:
            return
        index = self._element_index()
        for v in self.group.values:
            key = id(v), index.key
            is_inner = not self.group.is_outer(v) and v not in self.reductions and v not in self.group.written
            if (
                is_inner
                and v not in self.stored
                and key in self.walk.known
                and self._is_needed_after(v, stage)
            ):
                if self.rows.length * NUMPY[v.dtype.name].itemsize > MAX_STORED_BYTES:
                    continue
                self.stored[v] = Accumulator(self.builder, TYPES[v.dtype.name], self.rows.length)
                self.stored[v].set(self.walk.index_value(self.axes.element), self.walk.known[key])

    def _load_stored(self) -> None:
        """Define the stored values of this element; LLVM drops those that nothing uses."""
        for v, row in self.stored.items():
            element = row.get(self.walk.index_value(self.axes.element))
            self.walk.define(v, self._element_index(), element)

    def _element_index(self) -> IndexExpression:
        return self.rows.element(self.walk, self.axes.row, self.axes.element).linear

    def _is_needed_after(self, v: Variable, stage: int) -> bool:
        """Whether a loop after that of this stage computes a value from this one."""
        return self._last_stages.get(v, 0) > stage

    @cached_property
    def _last_stages(self) -> Mapping[Variable, float]:
        """For each value the last stage whose loop computes a value from it; infinity for the loop that writes values.

        One pass from the last value to the first: a group may have many paths from a value to those computed from it.
        """
        last: dict[Variable, float] = {}
        for w in reversed(self.group.values):  # the values computed from w come after it
            if w in self.reductions:
                reached: float = self.depths[w]
            elif w in self.group.written and not self.group.is_outer(w):
                reached = math.inf
            else:
                reached = last.get(w, 0)
            for x in self.group.needs[w]:
                last[x] = max(last.get(x, 0), reached)
        return last

    def reduce(self, reductions: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        b = self.builder
        stage = self.depths[reductions[0]]
        dtypes = {v: self.producers[v].operands[0].dtype for v in reductions}
        names = {v: self.producers[v].op.name for v in reductions}
        *others, last = self.axes.inner or (Loop("no axis", 1, 1),)
        size = CHUNK if self.block is None else BLOCK_CHUNK
        parts: dict[Variable, Accumulator] = {}
        totals: dict[Variable, Accumulator] = {}
        for v in reductions:
            type_ = TYPES[dtypes[v].name]
            is_maximum = names[v] == "max" and dtypes[v].kind == "float" and self.block is None
            parts[v] = Maximum(b, type_) if is_maximum else Accumulator(b, type_, self.size)
            widened = type_ is FLOAT and names[v] != "max" and self.rows.length > size
            totals[v] = Accumulator(b, DOUBLE if widened else type_, self.size)

        def start(found: Mapping[Variable, Accumulator]) -> None:
            for v in reductions:
                first = scalars.start_of(names[v], dtypes[v])
                found[v].set(
                    self.lane, ir.Constant(DOUBLE, first.constant) if found[v].type is DOUBLE else first
                )

        def element() -> None:
            steps = [self.axes.element]
            self.set_current(rows, steps)
            self._load_stored()
            for v in reductions:
                (y,) = self.reduced(v, rows, steps)
                part = parts[v]
                if isinstance(part, Maximum):
                    part.include(y)
                else:
                    part.set(self.lane, scalars.combined(b, names[v], part.get(self.lane), y, dtypes[v]))
            self._store_needed(stage)

        def add_part() -> None:
            for v in reductions:
                part, total = parts[v].get(self.lane), totals[v].get(self.lane)
                if totals[v].type is not parts[v].type:
                    part = b.fpext(part, DOUBLE)
                totals[v].set(self.lane, scalars.combined(b, names[v], total, part, dtypes[v]))

        def chunk(i: Any) -> None:
            first = b.mul(i, index_number(size), flags=("nsw",))
            self._lanes(lambda: start(parts))

            def one(k: Any) -> None:
                self.walk.index_values[last.name] = b.add(first, k, flags=("nsw",))
                with self.walk.scope():
                    self._each_lane(element)

            b.loop(self._rest(last.size, first, min(size, last.size)), one)
            self._lanes(add_part)

        self._lanes(lambda: start(totals))
        if self.rows.length:
            self._loops(others, lambda: b.loop(-(-last.size // size), chunk))
        self.totals |= totals
        if self.block is None:
            self._define_totals()

    def _lanes(self, body: Callable[[], None]) -> None:
        """Run a body that needs no elements for the rows of a block, or the one row."""
        if self.block is None:
            body()
            return

        def one(lane: Any) -> None:
            self.lane = lane
            body()
            self.lane = None

        self.builder.loop(self.parts[self.block].count, one, in_registers=True)


class KernelAttributes(ir.values.FunctionAttributes):  # type: ignore[misc]
    """Attributes of kernels: the widest vectors of the CPU, of which LLVM prefers smaller ones by itself."""

    WIDEST = '"prefer-vector-width"="512"'
    _known = ir.values.FunctionAttributes._known | {WIDEST}


def write_kernel(
    module: ir.Module,
    name: str,
    group: FusionGroup,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    operands: Sequence[Variable],
    is_inlined: bool = False,
    replaces: Mapping[Variable, Variable] = MappingProxyType({}),
) -> ir.Function:
    """The function of a kernel, whose arguments are pointers to these values.

    Args:
        module: to add it to.
        name: of the function.
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        operands: the values.
        is_inlined: whether the function becomes a part of the one that calls it.
        replaces: for some of the values that it writes, a value that it reads from the same memory.
    """
    function = new_function(module, name, [POINTER] * len(operands))
    nest = _nest(function, group, producers, kept, operands, replaces)
    split = nest.split()
    if split is None:
        _set_attributes(function, "alwaysinline" if is_inlined else "noinline")
        nest.write()
    else:
        types = [*[POINTER] * len(operands), INT64, INT64]
        part = new_function(module, f"{name}.part", types)
        _set_attributes(part, "noinline")
        inner = _nest(part, group, producers, kept, operands, replaces)
        inner.write(part.args[-2:])
        inner.builder.ret_void()
        write_split(module, f"{name}.parts", part, function.args, split, nest.builder)
    nest.builder.ret_void()
    return function


def _nest(
    function: ir.Function,
    group: FusionGroup,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    operands: Sequence[Variable],
    replaces: Mapping[Variable, Variable],
) -> KernelNest:
    """A nest that is written into a function, whose first arguments are pointers to these values."""
    builder = Builder(function.append_basic_block("entry"))
    pointers = dict(zip(operands, function.args, strict=False))
    pointers |= {x: pointers[v] for v, x in replaces.items()}
    walk = Walk(producers, kept, group.values, builder, pointers)
    return KernelNest(group, walk, kept, list(replaces.values()))


def _set_attributes(function: ir.Function, inlining: str) -> None:
    function.attributes = KernelAttributes([inlining, "nounwind", KernelAttributes.WIDEST])
    for argument in function.args:
        if argument.type == POINTER:
            argument.add_attribute("noalias")


def reads_in_place(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable]
) -> set[Variable]:
    """The values of which a kernel reads, for each element that it writes, only the one with the same index."""
    if group.rows.axes:
        return set()
    nest = CountingNest(group, producers, kept)
    nest.counted()
    same = {written_variable("row", group.rows.count).key}
    return {v for v, indices in nest.walk.loads.items() if indices == same}


def operands_of(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """The values that a kernel reads, and those that it writes."""
    nest = CountingNest(group, producers, kept)
    nest.counted()
    return list(nest.walk.loads), list(group.written)
