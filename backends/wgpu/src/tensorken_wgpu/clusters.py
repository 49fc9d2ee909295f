"""Clusters: which values of a program are computed by one kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.folds import Rows, rows_of
from tensorken_wgpu.kernels import Cluster, Division, Draft, RowKernel, division
from tensorken_wgpu.places import Place, always
from tensorken_wgpu.scatters import is_walked
from tensorken_wgpu.target import Target
from tensorken_wgpu.writer import FOLDS, NotHere, Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

MOST_TURNS = 2**15
"""How often one invocation goes through all loops of a kernel together; see `TURNS` of kernels."""

LINES = 400
"""How many lines a kernel may have that more is brought into."""

HEAD = 2
"""How many of them tell which element an invocation has."""


@dataclass(frozen=True, slots=True, eq=False)
class Alone:
    """What it takes to compute a value by itself, each element by an invocation of its own.

    Attributes:
        loads: at which places of each value it reads that.
        lines: how long the text is.
    """

    loads: Mapping[Variable, Collection[object]]
    lines: int


class Clusters:
    """The kernels of a program, as far as they are decided.

    The values that are to lie in memory come one after the other.  Each joins the kernel of what it is computed from,
    or one that reads what it reads, if they are about the same rows, if it needs what that kernel computes only where
    it does so, and if no third kernel would have to run between the two.

    Args:
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory.
        outputs: those of them that are results.
        target: where they are computed.

    Attributes:
        drafts: by the values of a cluster its kernel, where that has been written to see whether there can be one.
    """

    def __init__(
        self,
        makers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        outputs: Collection[Variable],
        target: Target,
    ) -> None:
        self._makers = makers
        self._kept = kept
        self._target = target
        self._order = [v for v in makers if v in kept and 0 not in v.shape]
        self._place = {v: i for i, v in enumerate(self._order)}
        self._needs = {v: needs(v, makers, kept) for v in self._order}
        self._users: dict[Variable, list[Variable]] = {}
        for v in self._order:
            for x in self._needs[v]:
                self._users.setdefault(x, []).append(v)
        self._outputs = frozenset(outputs)
        self._members: dict[int, tuple[Rows, tuple[Variable, ...]]] = {}
        self._home: dict[Variable, int] = {}
        self._readers: dict[Variable, list[int]] = {}
        self._befores: dict[int, set[int]] = {}  # as long as no two are joined
        self._alone: dict[Variable, Alone] = {}
        self._texts: dict[tuple[Variable, ...], Writer] = {}
        self.drafts: dict[tuple[Variable, ...], Draft] = {}
        for v in self._order:
            self._add(v)

    def in_order(self) -> list[Cluster]:
        """All, each after those that it reads from."""
        found: list[Cluster] = []
        done: set[int] = set()

        def visit(start: int) -> None:
            todo = [(start, iter(sorted(self._before(start))))]
            done.add(start)
            while todo:
                number, others = todo[-1]
                other = next((x for x in others if x not in done), None)
                if other is None:
                    todo.pop()
                    rows, values = self._members[number]
                    found.append(self._cluster(rows, values))
                else:
                    done.add(other)
                    todo.append((other, iter(sorted(self._before(other)))))

        for number in self._members:
            if number not in done:
                visit(number)
        return found

    # ---- joining -------------------------------------------------------------------------------------------

    def _add(self, v: Variable) -> None:
        equation = self._makers[v]
        rows = rows_of(equation) if equation.op.name in FOLDS else Rows((prod(v.shape),), ())
        number = self._place[v]
        self._members[number] = rows, (v,)
        self._home[v] = number
        for other in self._candidates(v, rows):
            self._join(other, number)
        for x in self._needs[v]:
            readers = self._readers.setdefault(x, [])
            if self._home[v] not in readers:
                readers.append(self._home[v])

    def _candidates(self, v: Variable, rows: Rows) -> list[int]:
        """What it is computed from, the last first; then what reads the same."""
        found = [self._home[x] for x in self._needs[v] if x in self._home]
        found.sort(reverse=True)
        for x in self._needs[v]:
            for number in reversed(self._readers.get(x, ())):
                home = self._home[self._order[number]]
                if self._members[home][0] == rows:
                    found.append(home)
        return list(dict.fromkeys(found))

    def _join(self, one: int, other: int) -> None:
        """Make one cluster of two, if that is possible."""
        one, other = self._home[self._order[one]], self._home[self._order[other]]
        if one == other:
            return
        (rows, values), (more_rows, more_values) = self._members[one], self._members[other]
        joined = common(rows, more_rows)
        if joined is None or self._between(one, other) or self._between(other, one):
            return
        together = tuple(sorted([*values, *more_values], key=self._place.__getitem__))
        if not self._possible(self._cluster(joined, together)):
            return
        self._befores.clear()
        first, last = min(one, other), max(one, other)
        del self._members[last]
        self._members[first] = joined, together
        for v in together:
            self._home[v] = first

    def _cluster(self, rows: Rows, values: tuple[Variable, ...]) -> Cluster:
        """Values as a cluster; those are written that are results of the program, or that others use."""
        inside = frozenset(values)
        written = [v for v in values if v in self._outputs or not inside.issuperset(self._users.get(v, ()))]
        return Cluster(rows, values, tuple(written), self._needs)

    def _possible(self, cluster: Cluster) -> bool:
        if any([is_walked(self._makers[v], self._target) for v in cluster.values]):
            return False
        if not cluster.rows.axes and not any([self._makers[v].op.name in FOLDS for v in cluster.values]):
            return self._possible_without_folds(cluster)
        how = division(cluster.rows, self._target)
        kernel = RowKernel(cluster, self._makers, self._kept, Division(1, 1), self._target)
        if how.parts > 1 and not kernel.can_be_parted():
            return False
        if how.parts == 1 and kernel.loops * cluster.rows.length > MOST_TURNS * how.together:
            return False
        try:
            draft = kernel.draft()
        except NotHere:
            return False
        if not self._can_be_bound([*draft.kernel.reads, *draft.kernel.writes]) or len(draft.lines) > LINES:
            return False
        self.drafts[cluster.values] = draft
        return True

    def _possible_without_folds(self, cluster: Cluster) -> bool:
        """The same, as it follows from each value by itself.

        An invocation has one element of each value, so what it needs of one of them it needs where that element is.
        Together the texts are as long as all of them at most; only if that is too long are they written.
        """
        inside, here = frozenset(cluster.values), {_element(cluster.rows.count).key}
        read: set[Variable] = set()
        lines = len(cluster.written)
        for v in cluster.values:
            alone = self._by_itself(v)
            lines += alone.lines
            for x, places in alone.loads.items():
                if x not in inside:
                    read.add(x)
                elif not here.issuperset(places):
                    return False
        if not self._can_be_bound([*read, *cluster.written]):
            return False
        most = LINES - HEAD
        return lines <= most or len(self._together(cluster.values).lines) + len(cluster.written) <= most

    def _by_itself(self, v: Variable) -> Alone:
        found = self._alone.get(v)
        if found is None:
            writer = self._goes_on(None, v)
            found = self._alone[v] = Alone(writer.loads, len(writer.lines))
        return found

    def _together(self, values: tuple[Variable, ...]) -> Writer:
        """What has written them all.  They come one by one, so all but the last have mostly been written before."""
        *before, last = values
        writer = self._texts.get(tuple(before))
        if writer is None:
            for v in before:
                writer = self._goes_on(writer, v)
            if writer is not None:
                self._texts[tuple(before)] = writer
        writer = self._texts[values] = self._goes_on(writer, last)
        return writer

    def _goes_on(self, before: Writer | None, v: Variable) -> Writer:
        """What has written a value after what was written before."""
        place = _element(prod(v.shape))
        if before is None:
            writer = Writer(self._makers, self._kept, frozenset(), target=self._target)
        else:
            writer = before.goes_on()
        writer.takes_over(v, place)
        writer.value(v, writer.point(v.shape, place))
        return writer

    def _can_be_bound(self, values: Collection[Variable]) -> bool:
        windows = [len(self._target.windows(size_of(v))) for v in values]
        return sum(windows) <= self._target.bindings

    def _before(self, number: int) -> set[int]:
        """The clusters that one reads from."""
        found = self._befores.get(number)
        if found is None:
            home, values = self._home, self._members[number][1]
            found = {home[x] for v in values for x in self._needs[v] if x in home} - {number}
            self._befores[number] = found
        return found

    def _between(self, one: int, other: int) -> bool:
        """Whether one needs another that needs the other.

        A kernel needs none whose values all come after its own, so what ends before the other begins is not looked at.
        """
        begin = self._place[self._members[other][1][0]]
        todo, seen = [x for x in self._before(one) if x != other], {one}
        while todo:
            number = todo.pop()
            if number == other:
                return True
            if number not in seen and self._place[self._members[number][1][-1]] > begin:
                seen.add(number)
                todo += self._before(number)
        return False


def _element(count: int) -> Place:
    """The element that an invocation has."""
    return always("t", count)


def common(one: Rows, other: Rows) -> Rows | None:
    """The rows that values of these rows can be computed by, in one kernel; None if there are none."""
    if one.axes and other.axes:
        return one if one == other else None
    if not one.axes and not other.axes:
        return one if one.count == other.count else None
    folded, single = (one, other) if one.axes else (other, one)
    return folded if single.count in (folded.count, prod(folded.shape)) else None


def needs(
    v: Variable, makers: Mapping[Variable, Equation], stop: Collection[Variable]
) -> frozenset[Variable]:
    """Those of some values that a value is computed from, without another of them between."""
    found, todo, seen = set(), list(makers[v].operands), set()
    while todo:
        x = todo.pop()
        if x in stop:
            found.add(x)
        elif x in makers and x not in seen:
            seen.add(x)
            todo += makers[x].operands
    return frozenset(found)
