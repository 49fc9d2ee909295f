"""Fusion groups: the values of a program that one kernel computes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol

from tensorken.kernels.elements import NotComputedHere
from tensorken.kernels.index_expressions import IndexExpression, written_variable
from tensorken.kernels.keeping import Costs
from tensorken.kernels.nests import CountingNest, CountingWalk, FusionGroup
from tensorken.kernels.rows import REDUCTIONS, Rows, rows_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


MAX_READERS = 16
"""The most groups that a value tries to join because they read one of the values that it reads."""


class Target(Protocol):
    """The properties of a device or compiler that fusion depends on."""

    @property
    def costs(self) -> Costs:
        """The costs of computing values again."""

    @property
    def max_operands(self) -> int:
        """The most values that one kernel may read and write."""

    def runs_alone(self, equation: Equation) -> bool:
        """Whether an op has its own kernels, into which no other op is fused."""

    def read_by_call(self, equation: Equation) -> Collection[Variable] | None:
        """The values that a call reads: operands, or the values before movement ops; None if kernels compute the op.

        These values and all results of a call are in memory, and a call is a fusion group of its own.
        """

    def fits(self, operands: Collection[Variable], count: int) -> bool:
        """Whether one kernel may read and write these values, and compute this many elements and indices."""

    def can_reduce(self, nest: CountingNest) -> bool:
        """Whether one kernel can run the loops of a group; the group is not counted yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """The needs of a value computed by its own kernel, one element at a time.

    Attributes:
        loads: for each value that the kernel reads the indices of the elements read.
        count: of the computed elements and indices.
    """

    loads: Mapping[Variable, Collection[object]]
    count: int


class FusionGroups:
    """The fusion groups of a program.

    Kept values are visited in order.  A called op is a group of its own.  Each other value joins the kernel of one of
    its operands, or a kernel that reads the same values, if both iterate over the same rows, if the value needs the
    values of that kernel only at the elements that are computed at the same time, and if no third kernel would have to
    run between the two.

    Args:
        producers: for each computed value its equation.
        kept: the values in memory.
        outputs: the kept values that are results.
        calls: for each called op the values in memory that it reads.
        target: the device or compiler.
    """

    def __init__(
        self,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        outputs: Collection[Variable],
        calls: Mapping[Equation, Collection[Variable]],
        target: Target,
    ) -> None:
        self._producers = producers
        self._kept = kept
        self._target = target
        self._called = {e.results[0]: e for e in calls}
        results = {v for e in self._called.values() for v in e.results[1:]}
        self._order = [
            v for v in producers if v in self._called or (v in kept and 0 not in v.shape and v not in results)
        ]
        self._position = {v: i for i, v in enumerate(self._order)}
        self._latest = PrefixMaximum(len(self._order))  # the last positions of groups, by their first ones
        self._needs = {
            v: frozenset([x for x in calls[self._called[v]] if x in kept])
            if v in self._called
            else needs(v, producers, kept)
            for v in self._order
        }
        reductions = [v for v in self._order if producers[v].op.name in REDUCTIONS]
        self._reduced = {v: rows_of(producers[v]) for v in reductions}
        self._users: dict[Variable, list[Variable]] = {}
        for v in self._order:
            for x in self._needs[v]:
                self._users.setdefault(x, []).append(v)
        self._outputs = frozenset(outputs)
        self._groups: dict[int, tuple[Rows, tuple[Variable, ...]]] = {}
        self._group_of: dict[Variable, int] = {}
        self._readers: dict[Variable, dict[int, None]] = {}
        # the numbers of the groups that a group reads, some of which may have been merged since
        self._sources: dict[int, set[int]] = {}
        self._full: set[int] = set()
        self._needs_alone: dict[Variable, Needs] = {}
        self._walks: dict[tuple[Variable, ...], CountingWalk] = {}
        for v in self._order:
            self._add(v)

    def in_order(self) -> list[FusionGroup]:
        """All groups, each after the groups that it reads from."""
        ordered: list[FusionGroup] = []
        done: set[int] = set()

        def visit(start: int) -> None:
            pending = [(start, iter(sorted(self._sources_of(start))))]
            done.add(start)
            while pending:
                number, others = pending[-1]
                other = next((x for x in others if x not in done), None)
                if other is None:
                    pending.pop()
                    rows, values = self._groups[number]
                    ordered.append(self._group(rows, values))
                else:
                    done.add(other)
                    pending.append((other, iter(sorted(self._sources_of(other)))))

        for number in self._groups:
            if number not in done:
                visit(number)
        return ordered

    # ---- joining -------------------------------------------------------------------------------------------

    def _add(self, v: Variable) -> None:
        equation = self._producers[v]
        rows = self._reduced.get(v, Rows((prod(v.shape),), ()))
        number = self._position[v]
        self._groups[number] = rows, (v,)
        self._latest.include(number, number)
        self._sources[number] = {self._group_of[x] for x in self._needs[v] if x in self._group_of}
        if v in self._called:
            self._group_of.update(dict.fromkeys(equation.results, number))
        else:
            self._group_of[v] = number
            for other in self._candidates(v, rows):
                self._join(other, number)
        for x in self._needs[v]:
            self._readers.setdefault(x, {})[self._group_of[v]] = None

    def _candidates(self, v: Variable, rows: Rows) -> list[int]:
        """The groups of its operands, latest first; then the latest groups that read the same values."""
        candidates = [self._group_of[x] for x in self._needs[v] if x in self._group_of]
        candidates.sort(reverse=True)
        for x in self._needs[v]:
            readers = self._readers.get(x, {})
            for number in [*itertools.islice(reversed(readers), MAX_READERS)]:
                group = self._group_of[self._order[number]]
                if group in self._full:  # most groups that read an input of a large program are
                    del readers[number]
                elif self._groups[group][0] == rows:
                    candidates.append(group)
        return list(dict.fromkeys(candidates))

    def _join(self, one: int, other: int) -> None:
        """Merge two groups if possible."""
        one, other = self._group_of[self._order[one]], self._group_of[self._order[other]]
        if one == other:
            return
        (rows, values), (more_rows, more_values) = self._groups[one], self._groups[other]
        joined = common(rows, more_rows)
        if joined is None or self._runs_between(one, other) or self._runs_between(other, one):
            return
        joint = tuple(sorted([*values, *more_values], key=self._position.__getitem__))
        if joined.axes and not all([self._reduced.get(v, joined) == joined for v in joint]):
            return  # one of the groups reduces rows of a single element
        fits = self._fits(self._group(joined, joint))
        if not fits:
            self._walks.pop(joint, None)
            if fits is None:
                self._full.add(one)
            return
        first, last = min(one, other), max(one, other)
        self._walks.pop(values, None)
        self._walks.pop(more_values, None)
        del self._groups[last]
        self._groups[first] = joined, joint
        for v in joint:
            self._group_of[v] = first
        self._sources[first] = self._sources_of(first) | self._sources_of(last)
        del self._sources[last]
        self._latest.include(self._position[joint[0]], self._position[joint[-1]])

    def _group(self, rows: Rows, values: tuple[Variable, ...]) -> FusionGroup:
        """A fusion group of these values; it writes the values that are outputs or that other groups use."""
        if values[0] in self._called:
            results = self._called[values[0]].results
            return FusionGroup(rows, results, results, self._needs)
        inside = frozenset(values)
        written = [v for v in values if v in self._outputs or not inside.issuperset(self._users.get(v, ()))]
        return FusionGroup(rows, values, tuple(written), self._needs)

    def _fits(self, group: FusionGroup) -> bool | None:
        """Whether one kernel can compute a group; None if it has too many elements and indices for one."""
        if any([v in self._called or self._target.runs_alone(self._producers[v]) for v in group.values]):
            return False
        if not group.rows.axes and not any([self._producers[v].op.name in REDUCTIONS for v in group.values]):
            return self._fits_elementwise(group)
        nest = CountingNest(group, self._producers, self._kept)
        if not self._target.can_reduce(nest):
            return False
        try:
            count = nest.counted()
        except NotComputedHere:
            return False
        return self._fits_count([*nest.walk.loads, *group.written], count)

    def _fits_count(self, operands: Collection[Variable], count: int) -> bool | None:
        if self._target.fits(operands, count):
            return True
        return None if self._target.fits(operands, 0) else False

    def _fits_elementwise(self, group: FusionGroup) -> bool | None:
        """Whether elementwise values can be fused; this follows from the needs of each value.

        One element of each value is computed at a time, so values of the group must be needed at that element only.
        At most the sum of their elements and indices is computed; these are counted together only if that sum does
        not fit.
        """
        inside, current = frozenset(group.values), {_element(group.rows.count).key}
        read: set[Variable] = set()
        count = len(group.written)
        for v in group.values:
            value_needs = self._needs_of(v)
            count += value_needs.count
            for x, indices in value_needs.loads.items():
                if x not in inside:
                    read.add(x)
                elif not current.issuperset(indices):
                    return False
        operands = [*read, *group.written]
        fits = self._fits_count(operands, count)
        if fits is not None:
            return fits
        return self._fits_count(operands, self._walk_of(group.values).count + len(group.written))

    def _needs_of(self, v: Variable) -> Needs:
        value_needs = self._needs_alone.get(v)
        if value_needs is None:
            walk = self._extended(None, v)
            value_needs = self._needs_alone[v] = Needs(walk.loads, walk.count)
        return value_needs

    def _walk_of(self, values: tuple[Variable, ...]) -> CountingWalk:
        """A walk that has computed these values; usually all but the last have been computed before."""
        *before, last = values
        walk = self._walks.get(tuple(before))
        if walk is None:
            for v in before:
                walk = self._extended(walk, v)
            if walk is not None:
                self._walks[tuple(before)] = walk
        walk = self._walks[values] = self._extended(walk, last)
        return walk

    def _extended(self, before: CountingWalk | None, v: Variable) -> CountingWalk:
        """A copy of the walk that has also computed this value."""
        index = _element(prod(v.shape))
        walk = CountingWalk(self._producers, self._kept, ()) if before is None else before.copy()
        walk.include(v, index)
        walk.value(v, walk.element(v.shape, index))
        return walk

    def _sources_of(self, number: int) -> set[int]:
        """The groups that a group reads from."""
        group_of, order = self._group_of, self._order
        sources = {group_of[order[x]] for x in self._sources[number]} - {number}
        self._sources[number] = sources
        return sources

    def _runs_between(self, one: int, other: int) -> bool:
        """Whether another group would have to run between the two.

        A group reads only values that come before its last one, so it is skipped if all groups of values up to that
        end before `other` begins.
        """
        begin = self._position[self._groups[other][1][0]]
        pending, seen = [x for x in self._sources_of(one) if x != other], {one}
        while pending:
            number = pending.pop()
            if number == other:
                return True
            if number not in seen and self._latest.up_to(self._position[self._groups[number][1][-1]]) > begin:
                seen.add(number)
                pending += self._sources_of(number)
        return False


class PrefixMaximum:
    """The largest number at the positions up to any position, in logarithmic time (P. M. Fenwick, 1994).

    Args:
        size: the number of positions.
    """

    def __init__(self, size: int) -> None:
        self._largest = [-1] * (size + 1)

    def include(self, position: int, number: int) -> None:
        """Make the number at a position the maximum of itself and another."""
        i = position + 1
        while i < len(self._largest):
            self._largest[i] = max(self._largest[i], number)
            i += i & -i

    def up_to(self, position: int) -> int:
        """The largest number at the positions up to this one; -1 if there is none."""
        i, largest = position + 1, -1
        while i:
            largest = max(largest, self._largest[i])
            i -= i & -i
        return largest


def _element(count: int) -> IndexExpression:
    """The index of the element that is computed."""
    return written_variable("element", count)


def common(one: Rows, other: Rows) -> Rows | None:
    """The rows over which one kernel can compute values of both; None if there are none."""
    if one.axes and other.axes:
        return one if one == other else None
    if not one.axes and not other.axes:
        return one if one.count == other.count else None
    reduced, single = (one, other) if one.axes else (other, one)
    fits = single.owner is None and single.count in (reduced.count, prod(reduced.shape))
    return reduced if fits else None


def needs(
    v: Variable, producers: Mapping[Variable, Equation], stop: Collection[Variable]
) -> frozenset[Variable]:
    """The values in `stop` from which a value is computed directly."""
    result, pending, seen = set(), list(producers[v].operands), set()
    while pending:
        x = pending.pop()
        if x in stop:
            result.add(x)
        elif x in producers and x not in seen:
            seen.add(x)
            pending += producers[x].operands
    return frozenset(result)
