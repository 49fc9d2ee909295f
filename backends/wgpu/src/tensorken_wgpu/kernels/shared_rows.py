"""Shared rows: the kernels of a fusion group on a GPU, whose workgroups own rows; see `layouts`.

An invocation computes all its elements of a row in one block of text, so an element that it has read or computed
is a name, which later reductions and the results use: rows in registers are read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable, written_variable
from tensorken.kernels.nests import CountingNest, FusionGroup, Nest
from tensorken_wgpu.kernels.accumulations import Accumulation, Element, Plain, States
from tensorken_wgpu.kernels.kernel import (
    Kernel,
    group_of_parts,
    kernel_template,
    with_vectors,
    workgroup_grid,
)
from tensorken_wgpu.kernels.layouts import Layout, has_layout, layout_of, layout_of_parts, parts_of
from tensorken_wgpu.kernels.picks import picked, picks
from tensorken_wgpu.kernels.single_pass import needs_one_pass, passes, single_pass
from tensorken_wgpu.kernels.workgroup_memory import WorkgroupMemory
from tensorken_wgpu.wgsl.ops import TYPES
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.vectors import Vector
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

MAX_LINES = 6144
"""About the most lines of a kernel: drivers take long to compile long kernels."""


def kernels(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> list[Kernel] | None:
    """The kernels of a fusion group whose rows have a layout: one, or two if rows are reduced in parts; else None.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        target: the device.

    Raises:
        NotComputedHere: if a value needs an element of another value that is not computed.
    """
    if not has_layout(group.rows, target):
        return None
    layout = layout_of_group(group, producers, kept, target)
    if layout.parts == 1:
        return [_kernel(group, layout, producers, kept, target)]
    states = States(layout.parts, group.rows)
    first = _kernel(group, layout, producers, kept, target, states)
    return [first, merging_kernel(group, states, producers, kept, target)]


def can_share(nest: CountingNest, target: Target) -> bool:
    """Whether kernels can compute a fusion group whose rows have a layout.

    If rows are reduced in parts, one pass must compute all reductions, and the elements of the rows that are
    results.
    """
    if parts_of(nest.rows, target) == 1:
        return True
    inner = [v for v in nest.group.values if not nest.group.is_outer(v)]
    if any([nest.depths[v] for v in inner]) or (inner and picks(nest)):
        return False
    return _needs_one_pass(nest)


def _needs_one_pass(nest: CountingNest) -> bool:
    picked = picks(nest)
    return needs_one_pass([v for v in nest.reductions if v not in picked], nest)


def layout_of_group(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> Layout:
    """The layout of the rows of a fusion group, whose text is not too long."""
    nest = CountingNest(group, producers, kept)
    most = max(MAX_LINES // nest.counted(), 1)
    is_read_again = not all(map(group.is_outer, group.written)) or not _needs_one_pass(nest)
    return layout_of(group.rows, target, most, is_read_again)


def merging_kernel(
    group: FusionGroup,
    states: States,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    target: Target,
) -> Kernel:
    """The kernel that merges the states of parts of rows, and computes the values of a fusion group from them."""
    layout = layout_of_parts(states.parts, states.count)
    outer = [tuple([v for v in values if group.is_outer(v)]) for values in (group.values, group.written)]
    group = replace(group_of_parts(group, states.parts), values=outer[0], written=outer[1])
    return _kernel(group, layout, producers, kept, target, states)


def _kernel(
    group: FusionGroup,
    layout: Layout,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    target: Target,
    states: States | None = None,
) -> Kernel:
    """The kernel, with vectors where the layout has neighbours."""
    make = partial(SharedRows, group, producers, kept, layout, target, states)
    kernel = make().kernel()
    if layout.lanes == layout.steps == 1:
        return kernel
    return with_vectors(make, [*kernel.reads, *kernel.writes])


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours in a row that an invocation computes.

    Attributes:
        steps: their indices in the row.
        condition: under which they are in the row; None if they are.
    """

    steps: Sequence[IndexExpression]
    condition: str | None


class SharedRows(Nest[str]):
    """Writes a kernel.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        layout: of its rows.
        target: the device.
        states: of the parts of rows, if they are reduced in parts: the kernel writes them, or merges them if its
            rows are those of the states.
        vectors: the vectors in which values are read and written.
    """

    def __init__(
        self,
        group: FusionGroup,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        layout: Layout,
        target: Target,
        states: States | None = None,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        self.layout = layout
        self.states = states
        known = {*kept}
        self.writer = Writer(producers, known, frozenset(group.values), vectors, target)
        super().__init__(group, self.writer)
        self.picks = picks(self, states.rows if states else None)
        self.accumulations = self._accumulations()
        if states is not None:
            states.declare(self.accumulations)
            known.update(states.values.values())
        self._preloaded = [] if self._is_merging else self._preloads(known)
        self._memory = WorkgroupMemory(self.writer, layout, target, self.accumulations)
        self._part = constant_index(0)
        self._own: str | None = None  # the condition under which the rows of the invocation exist
        self._condition: str | None = None  # the condition under which the current elements exist

    def _accumulations(self) -> list[Accumulation]:
        """The accumulations of all reductions; in rows in registers, each reduction has its own."""
        producers, writer = self.producers, self.writer
        reductions = [v for v in self.reductions if v not in self.picks]
        together = {} if self.layout.is_in_registers else passes(reductions, producers)
        added = {v for kinds in together.values() for v in kinds}
        return [
            single_pass(v, together[v], producers, writer)
            if v in together
            else Plain(v, producers[v], writer)
            for v in reductions
            if v not in added
        ]

    @property
    def _is_merging(self) -> bool:
        return self.states is not None and self.layout.parts == 1

    # ---- the kernel ----------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Write the kernel."""
        rows = self._rows()
        if self.layout.parts == 1:
            self.run(rows)
        else:
            self.set_current(rows, [])
            self.compute_outer(0, rows)
            self.reduce([a.source for a in self.accumulations], rows)
        return self.finished(self._blocks * self.layout.parts, self.group.values)

    def finished(self, workgroups: int, values: Sequence[Variable]) -> Kernel:
        """The kernel with the lines written so far, which computes these values."""
        return Kernel(
            kernel_template(self.writer, self.layout.invocations, self._memory.declarations),
            workgroup_grid(workgroups),
            tuple(self.writer.reads),
            tuple(self.writer.writes),
            prod(self.rows.shape),
            tuple([self.producers[v] for v in values]),
            is_proved=self.writer.is_proved,
        )

    @property
    def _lines(self) -> int:
        """The number of sets of neighbouring rows."""
        return self.rows.count // self.layout.lanes

    @property
    def _blocks(self) -> int:
        """The number of workgroups for each part."""
        return -(-self._lines // self.layout.rows)

    def _rows(self) -> list[IndexExpression]:
        """Write the head of the body, and return the rows of an invocation."""
        layout = self.layout
        index = self.write_head(self._blocks * layout.parts)
        self._part, block = index.divided(self._blocks, self.writer)
        lane, self._own = self.below(self.set_of(block), self._lines) if layout.rows > 1 else (block, None)
        return [lane.times(layout.lanes).plus(j) for j in range(layout.lanes)]

    def write_head(self, workgroups: int) -> IndexExpression:
        """Write the head of the body, and return the index of the workgroup."""
        layout, writer = self.layout, self.writer
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(workgroups)}) {{ return; }}")
        # The sizes that declare workgroup memory are written as they are.
        slot = f"l / {layout.rows}u" if layout.is_across else f"l % {layout.sharing}u"
        self._slot = writer.index(slot if layout.rows > 1 else "l", layout.sharing)
        return written_variable("q", workgroups)

    def set_of(self, block: IndexExpression) -> IndexExpression:
        """The index of the set of invocations that share a row, in this block of sets."""
        layout = self.layout
        if layout.rows == 1:
            return block
        inside = f"l % {layout.rows}u" if layout.is_across else f"l / {layout.sharing}u"
        return block.times(layout.rows) + self.writer.index(inside, layout.rows)

    # ---- loops ---------------------------------------------------------------------------------------------

    def passes(self, body: Callable[[Sequence[Group]], None]) -> None:
        """Run a body for the groups of an invocation that are in registers, and for those of each pass."""
        writer, layout = self.writer, self.layout
        if layout.kept:
            body(self.kept_groups())
        if layout.passes:
            k = writer.new_name()
            with writer.block(f"for (var {k} = 0u; {k} < {integer(layout.passes)}; {k} += 1u)"):
                in_pass = layout.sharing * layout.unrolled
                start = self._part.times(layout.passes * in_pass) + variable(k, layout.passes).times(in_pass)
                body(self._groups(start.plus(layout.kept * layout.sharing), layout.unrolled))

    def kept_groups(self) -> list[Group]:
        """The groups of an invocation that are in registers."""
        return self._groups(constant_index(0), self.layout.kept)

    def _groups(self, start: IndexExpression, count: int) -> list[Group]:
        layout = self.layout
        groups = []
        for u in range(count):
            index, condition = self.below((start + self._slot).plus(u * layout.sharing), layout.groups)
            groups.append(Group([index.times(layout.steps).plus(e) for e in range(layout.steps)], condition))
        return groups

    def below(self, index: IndexExpression, size: int) -> tuple[IndexExpression, str | None]:
        """An index as a variable below a size, and the condition under which it was; None if it always is.

        Divisions of a variable cancel in the same way as when the fusion of the values was decided.
        """
        writer, text = self.writer, index_text(index)
        if index.end is not None and index.end <= size:
            return (writer.index(text, size) if len(index.terms) > 1 or index.constant else index), None
        name = writer.named(text, text)
        condition = f"{name} < {integer(size)}"
        return writer.index(f"min({name}, {integer(size - 1)})", size), writer.named(condition, condition)

    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        def in_turn(groups: Sequence[Group]) -> None:
            for group in groups:
                self._condition = group.condition
                body(group.steps)
            self._condition = None

        self.passes(in_turn)

    def _preloads(self, known: Collection[Variable]) -> list[Variable]:
        """The operands of the first reductions that are read in the order of the rows.

        All their elements of a pass are read before any is used.
        """
        nest = CountingNest(self.group, self.producers, known)
        nest.counted()
        index = self.rows.element(
            nest.walk,
            written_variable("row", self.rows.count),
            variable("i", self.rows.length),
        )
        first = [v for v in self.reductions if self.depths[v] == 1]
        needed = {x for v in first for x in self.group.needs[v]}
        return [
            x
            for x, keys in nest.walk.loads.items()
            if x in needed and prod(x.shape) == prod(self.rows.shape) and keys == {index.key}
        ]

    # ---- reductions ----------------------------------------------------------------------------------------

    def reduce(self, reductions: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        writer = self.writer
        for v in reductions:
            if v in self.picks:
                for row in rows:
                    writer.define(
                        v, row, writer.named(("picked", v, row.key), picked(self, writer, self.picks[v], row))
                    )
        accumulations = [a for a in self.accumulations if a.source in reductions]
        if not accumulations:
            return
        states = {
            (a.source, j): [writer.new_name() for _ in a.dtypes]
            for a in accumulations
            for j in range(len(rows))
        }
        for a in accumulations:
            for j in range(len(rows)):
                for name, dtype, start in zip(states[a.source, j], a.dtypes, a.starts, strict=True):
                    writer.line(f"var {name}: {TYPES[dtype]} = {start};")

        first = {
            (a.source, j): x
            for a in accumulations
            if a.needs_first and not self._is_merging
            for j, x in enumerate(self._first(a, rows))
        }

        def add(groups: Sequence[Group]) -> None:
            self._preload(rows, groups)
            found: defaultdict[tuple[Variable, int], list[Element]] = defaultdict(list)
            for group in groups:
                self.set_current(rows, group.steps)
                for a in accumulations:
                    values = iter(self.reduced(a.source, rows, group.steps))
                    for j in range(len(rows)):
                        found[a.source, j] += [(next(values), group.condition) for _ in group.steps]
                        if isinstance(a, Plain):
                            a.add(states[a.source, j], found.pop((a.source, j)))
                if self.layout.parts > 1:
                    self._condition = group.condition
                    self._store_inner(rows, group.steps)
            for a in accumulations:
                for j in range(len(rows)):
                    if elements := found.get((a.source, j)):
                        a.add(states[a.source, j], elements, first.get((a.source, j)))

        def merge(groups: Sequence[Group]) -> None:
            loaded = [[self._loaded(a, group.steps[0], rows[0]) for a in accumulations] for group in groups]
            for group, of_group in zip(groups, loaded, strict=True):
                with self.only_if([group.condition] if group.condition else []):
                    for a, state in zip(accumulations, of_group, strict=True):
                        a.merge(states[a.source, 0], [state])

        self.passes(merge if self._is_merging else add)
        self._memory.combine(
            [(a, states[a.source, j]) for a in accumulations for j in range(len(rows))], self._slot
        )
        if self.layout.parts > 1:
            self._store_states(accumulations, states, rows)
            return
        for a in accumulations:
            for j, row in enumerate(rows):
                for v, text in zip(a.results, a.finish(states[a.source, j]), strict=True):
                    writer.define(v, row, writer.named(("result", v, j), text))

    def _store_inner(self, rows: Sequence[IndexExpression], steps: Sequence[IndexExpression]) -> None:
        """Write the elements of rows that are results, in the pass that reads these rows."""
        inner = [v for v in self.group.written if not self.group.is_outer(v)]
        indices = [self.rows.element(self.writer, row, i).linear for row in rows for i in steps]
        for v in inner:
            elements = self.writer.values(v, [self.writer.element(v.shape, index) for index in indices])
            self.store(v, [*zip(indices, elements, strict=True)])

    def _first(self, a: Accumulation, rows: Sequence[IndexExpression]) -> Sequence[str]:
        """The first element of each row."""
        steps = [constant_index(0)]
        self.set_current(rows, steps)
        return self.reduced(a.source, rows, steps)

    def _preload(self, rows: Sequence[IndexExpression], groups: Sequence[Group]) -> None:
        """Read elements before they are used, so that the accesses overlap."""
        for x in self._preloaded:
            for group in groups:
                indices = [self.rows.element(self.writer, row, i).linear for row in rows for i in group.steps]
                self.writer.values(x, [self.writer.element(x.shape, index) for index in indices])

    def _loaded(self, a: Accumulation, part: IndexExpression, row: IndexExpression) -> Sequence[str]:
        """The state of a part of a row in memory."""
        assert self.states is not None
        places = [self.states.place(a, i, part, row) for i in range(len(a.dtypes))]
        return [self.writer.value(value, self.writer.element(value.shape, index)) for value, index in places]

    def _store_states(
        self,
        accumulations: Sequence[Accumulation],
        states: Mapping[tuple[Variable, int], Sequence[str]],
        rows: Sequence[IndexExpression],
    ) -> None:
        assert self.states is not None
        with self._by_one():
            for a in accumulations:
                for i in range(len(a.dtypes)):
                    places = [self.states.place(a, i, self._part, row) for row in rows]
                    elements = [(index, states[a.source, j][i]) for j, (_, index) in enumerate(places)]
                    self.writer.store(places[0][0], elements)

    # ---- results -------------------------------------------------------------------------------------------

    def _by_one(self) -> AbstractContextManager[None]:
        """A block that one of the invocations that share a row runs."""
        conditions = [self._own] if self._own else []
        if self.layout.sharing > 1:
            conditions.append(f"{index_text(self._slot)} == 0u")
        return self.only_if(conditions)

    def only_if(self, conditions: Sequence[str]) -> AbstractContextManager[None]:
        """A block that is run under conditions."""
        return self.writer.block(f"if ({' && '.join(conditions)})") if conditions else nullcontext()

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, str]]) -> None:
        conditions = [c for c in (self._own, self._condition) if c]
        with self.only_if(conditions):
            self.writer.store(v, elements)

    def write_outer(self, values: Sequence[tuple[Variable, Sequence[tuple[IndexExpression, str]]]]) -> None:
        with self._by_one():
            for v, elements in values:
                self.writer.store(v, elements)
