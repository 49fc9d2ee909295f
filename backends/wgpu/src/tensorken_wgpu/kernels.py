"""Kernels: the WGSL of values that one kernel computes, row by row of an array.

A row is folded, in stages: each stage is one loop over the row, in which all folds run that need no more than what the
stages before have found.  Then what has an element for each element of the row is computed in a last loop.  Where an
element is a row by itself there are no loops.  An invocation has one row, or some neighbours, or shares it with its
workgroup, whose parts are brought together as a tree; long rows that are few are folded in parts, by two kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.folds import Fold, Rows, fold_of
from tensorken_wgpu.functions import needed
from tensorken_wgpu.places import Place, always, fixed, variable
from tensorken_wgpu.single import Value
from tensorken_wgpu.target import Target
from tensorken_wgpu.templates import NUMBERS, whole
from tensorken_wgpu.vectors import FOUR, Vector, vector_of
from tensorken_wgpu.writer import FOLDS, Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

WORKGROUP = 256
"""Invocations of a workgroup that do not work together."""

TURNS = 4096
"""How often one invocation goes through a loop at most.

Mesa's driver in software ends a kernel's loops, silently, after 65 535 turns in all.
"""

MANY = 2**14
"""From how many elements on several are read and written at a time."""

LONG = 64
"""How many lines a kernel may have that is written for several elements at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """What computes values.

    Attributes:
        template: its text, see `templates`.
        groups: how many workgroups there are, along three axes.
        reads: the values that it takes from memory, in the order of its bindings.
        writes: those that it puts there, whose bindings follow.
        work: about how many elements it looks at.
        of: the ops that it is made of, for messages.
        choice: this one and others that do the same, if the best of them is to be found out on the device.
    """

    template: str
    groups: tuple[int, int, int]
    reads: tuple[Variable, ...]
    writes: tuple[Variable, ...]
    work: int
    of: tuple[Equation, ...] = ()
    choice: Choice | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Kernels that do the same.

    Attributes:
        of: for what; the same for all shapes for which the same one is taken to be the fastest.
        kernels: by name, the likeliest first.
    """

    of: str
    kernels: Mapping[str, Kernel]


@dataclass(frozen=True, slots=True)
class Division:
    """Who does what.

    Attributes:
        together: how many invocations share a row.
        parts: how many parts a row is folded in, each by such a group.
    """

    together: int
    parts: int


def division(rows: Rows, target: Target) -> Division:
    """How rows are divided among invocations."""
    if not rows.axes:
        return Division(1, 1)
    count, length = rows.count, rows.length
    together = 1
    if target.in_software:
        alone = count >= 256 and length <= TURNS
    else:
        alone = count >= target.enough and length <= 256
    if rows.along_the_last and length >= 64 and not alone:
        together = 64 if length < 1024 else 256
    parts = _parts(rows, together, target)
    if parts > 1 and target.in_software:
        together, parts = 1, _parts(rows, 1, target)  # where workgroups share, all loops are slow there
    return Division(together, parts)


def _parts(rows: Rows, together: int, target: Target) -> int:
    """In how many parts rows are folded that so many invocations share."""
    turns = -(-rows.length // together)
    few = min(target.enough // max(rows.count * together, 1), turns // 64)
    return max(few if few >= 4 else 1, -(-turns // TURNS))


def division_of_parts(parts: int, count: int, target: Target) -> Division:
    """How rows are divided when each part has been folded: by one invocation a row, or by several of few long ones."""
    return Division(64 if parts >= 64 and count * 64 <= target.enough else 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A kernel of a cluster, whose elements are read and written one by one.

    Attributes:
        how: its rows are divided.
        kernel: the kernel.
        lines: those of its text that compute.
    """

    how: Division
    kernel: Kernel
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Values that one kernel computes.

    Attributes:
        rows: of which array.
        values: all of them, in an order in which they can be computed.
        written: those that are needed elsewhere.
        needs: for each value what lies in memory, or is computed here, that it is computed from.
    """

    rows: Rows
    values: tuple[Variable, ...]
    written: tuple[Variable, ...]
    needs: Mapping[Variable, frozenset[Variable]]

    def is_outer(self, v: Variable) -> bool:
        """Whether a value has one element for each row."""
        return prod(v.shape) == self.rows.count


def kernels_of(
    cluster: Cluster,
    makers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    target: Target,
    draft: Draft | None = None,
) -> list[Kernel]:
    """What computes a cluster: one kernel, or two if its rows are folded in parts.

    Args:
        cluster: what to compute.
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory.
        target: where.
        draft: of this cluster, if there is one already.

    Raises:
        NotHere: if one of its values needs another at a point where it is not computed.
    """
    how = division(cluster.rows, target)
    if how.parts == 1:
        return [written(cluster, makers, kept, how, target, draft=draft)]
    lanes = how.parts * cluster.rows.count
    rest = division_of_parts(how.parts, cluster.rows.count, target)
    folds = [v for v in cluster.values if makers[v].op.name in FOLDS]
    between: dict[Variable, Any] = {
        v: Value((lanes,), DTYPES[fold_of(makers[v]).accumulator.dtype]) for v in folds
    }
    return [
        written(cluster, makers, kept, how, target, between),
        written(of_parts(cluster, how.parts), makers, kept, rest, target, between),
    ]


def of_parts(cluster: Cluster, parts: int) -> Cluster:
    """The cluster that is left when each part of a row has been folded to one number."""
    rows = Rows((parts, cluster.rows.count), (0,), cluster)
    return replace(cluster, rows=rows)


def written(
    cluster: Cluster,
    makers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    how: Division,
    target: Target,
    between: Mapping[Variable, Variable] | None = None,
    draft: Draft | None = None,
) -> Kernel:
    """The kernel of a cluster, with vectors where that is possible and pays."""
    if draft is None or draft.how != how:
        draft = RowKernel(cluster, makers, kept, how, target, between).draft()
    rows = cluster.rows
    at_once = _at_once(rows, how, draft.lines, target)
    if at_once == 1:
        return draft.kernel
    lanes, steps = (1, at_once) if rows.along_the_last else (at_once, 1)
    return with_vectors(
        lambda vectors: RowKernel(cluster, makers, kept, how, target, between, vectors, lanes, steps),
        [*draft.kernel.reads, *draft.kernel.writes],
        at_once,
    )


def _at_once(rows: Rows, how: Division, lines: Sequence[str], target: Target) -> int:
    """How many neighbouring elements an invocation computes at once, in a kernel that has these lines for one.

    For more than four the functions that it calls are counted as well: of long ones a driver makes machine code for a
    long time, and a processor has too few registers for them.
    """
    neighbours = rows.length if rows.along_the_last else rows.count if how.together == 1 else 1
    if prod(rows.shape) < MANY:
        return 1
    for number in target.at_once:
        text = lines if number == FOUR else [*lines, *needed("\n".join(lines)).splitlines()]
        if len(text) <= LONG and neighbours % number == 0:
            return number
    return 1


class Writing(Protocol):
    """What writes a kernel."""

    writer: Writer

    def kernel(self) -> Kernel:
        """The whole."""


def with_vectors(
    writing: Callable[[Mapping[Variable, Vector]], Writing], values: Collection[Variable], most: int = FOUR
) -> Kernel:
    """A kernel in which values are read and written as the largest vectors, of so many elements at most, that fit."""
    vectors = {v: vector for v in values if (vector := vector_of(v, most))}
    while True:
        wide = writing(vectors)
        done = wide.kernel()
        unfit = wide.writer.unfit & vectors.keys()
        if not unfit:
            return done
        smaller = {
            v: vector_of(v, vector.size - 1) if v in unfit else vector for v, vector in vectors.items()
        }
        vectors = {v: vector for v, vector in smaller.items() if vector}


class RowKernel:
    """Writes the kernel of a cluster.

    Args:
        cluster: what to compute.
        makers: for each value that is computed the equation that does that.
        kept: the values that lie in memory.
        how: rows are divided.
        target: where it is to run.
        between: for each fold what its parts are written to, or read from if the cluster is that of the parts.
        vectors: as what values are read and written, of those that are so several at a time.
        lanes: how many neighbouring rows an invocation has.
        steps: how many neighbours in a row it takes at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        makers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        how: Division,
        target: Target,
        between: Mapping[Variable, Variable] | None = None,
        vectors: Mapping[Variable, Vector] | None = None,
        lanes: int = 1,
        steps: int = 1,
    ) -> None:
        self.cluster = cluster
        self.rows = cluster.rows
        self.makers = makers
        self.how = how
        self.between = between or {}
        self.steps = steps
        self.lanes = lanes
        known = {*kept, *self.between.values()} if between else kept
        self.writer = Writer(makers, known, frozenset(cluster.values), vectors, target)
        self.shared: list[str] = []
        self.folds = [v for v in cluster.values if makers[v].op.name in FOLDS]
        self.depths = self._depths()

    # ---- the whole -----------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """The whole."""
        rows = self._rows()
        self._at_home(rows, [])
        self._outer(0, rows)
        for stage in range(1, self.loops):
            self._stage([v for v in self.folds if self.depths[v] == stage], rows)
            self._at_home(rows, [])
            if self.how.parts == 1:
                self._outer(stage, rows)
        if self.how.parts > 1:
            self._store_parts(rows)
        else:
            self._store(rows)
        return self._finished()

    def draft(self) -> Draft:
        """The whole, and what is to be known of it."""
        return Draft(self.how, self.kernel(), self.writer.lines)

    @property
    def loops(self) -> int:
        """How many loops it has at most."""
        return max(self.depths.values()) + 1

    def can_be_parted(self) -> bool:
        """Whether rows may be folded in parts: one loop, and nothing for each element."""
        return self.loops == 2 and all(map(self.cluster.is_outer, self.cluster.values))

    def _rows(self) -> list[Place]:
        """The head of the text, and the rows that an invocation has."""
        how, writer = self.how, self.writer
        count = self.rows.count * how.parts
        if how.together > 1:
            writer.line("let q = w.x + w.y * n.x;")
            writer.line(f"if (q >= {whole(count)}) {{ return; }}")
            where = always("q", count)
        else:
            count //= self.lanes
            writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
            writer.line(f"if (t >= {whole(count)}) {{ return; }}")
            where = always("t", count)
        self.part, lane = fixed(0), where
        if how.parts > 1:
            self.part, lane = where.divided(self.rows.count // self.lanes, writer.place)
        return [lane.times(self.lanes).plus(j) for j in range(self.lanes)]

    def _depths(self) -> dict[Variable, int]:
        """For each value how many loops must have run before it is there."""
        depths: dict[Variable, int] = {}
        for v in self.cluster.values:
            before = max([depths.get(x, 0) for x in self.cluster.needs[v]], default=0)
            depths[v] = before + 1 if v in self.folds else before
        return depths

    def _at_home(self, rows: Sequence[Place], steps: Sequence[Place]) -> None:
        outer = list(rows)
        inner = [self.rows.element(self.writer, row, i).linear for row in rows for i in steps]
        self.writer.at_home(
            {
                v: outer if self.cluster.is_outer(v) else inner
                for v in self.cluster.values
                if v not in self.folds
            }
        )

    # ---- loops ---------------------------------------------------------------------------------------------

    def _loop(self, body: Callable[[list[Place]], None]) -> None:
        """Run through the row, or the part of it, or every so many elements of it."""
        how, writer = self.how, self.writer
        length = self.rows.length // self.steps
        chunk = -(-length // how.parts)
        k = writer.fresh()
        start, step = ("l", how.together) if how.together > 1 else ("0u", 1)
        with writer.block(f"for (var {k} = {start}; {k} < {whole(chunk)}; {k} += {step}u)"):
            place = self.part.times(chunk) + variable(k, chunk) if chunk > 1 else self.part.times(chunk)
            if place.end is None or place.end > length:
                name = writer.fresh()
                writer.line(f"let {name} = {place};")
                writer.line(f"if ({name} >= {whole(length)}) {{ break; }}")
                place = variable(name, length)
            body([place.times(self.steps).plus(e) for e in range(self.steps)])

    def _stage(self, folds: list[Variable], rows: list[Place]) -> None:
        """One loop in which folds run that need nothing of each other."""
        writer = self.writer
        found = {v: self._fold(v) for v in folds}
        totals = {(v, j): writer.fresh() for v in folds for j in range(len(rows))}
        for (v, _), total in totals.items():
            accumulator = found[v].accumulator
            writer.line(f"var {total}: {accumulator.type} = {accumulator.start};")

        def body(steps: list[Place]) -> None:
            self._at_home(rows, steps)
            for v in folds:
                places = [(j, i) for j in range(len(rows)) for i in steps]
                values = found[v].elements(writer, [(rows[j], i) for j, i in places])
                for (j, _), value in zip(places, values, strict=True):
                    total = totals[v, j]
                    writer.line(f"{total} = {found[v].accumulator.how(total, value)};")

        if self.rows.length:
            self._loop(body)
        if self.how.together > 1:
            self._bring_together([(found[v], total) for (v, _), total in totals.items()])
        for (v, j), total in totals.items():
            if self.how.parts > 1:
                writer.know(self.between[v], rows[j], total)
            else:
                writer.know(v, rows[j], writer.named(("total", total), found[v].accumulator.finish(total)))

    def _fold(self, v: Variable) -> Fold:
        fold = fold_of(self.makers[v])
        part = self.between.get(v)
        if part is None or self.how.parts > 1:
            return fold

        def elements(writer: Writer, places: Sequence[tuple[Place, Place]]) -> list[str]:
            points = [writer.point(part.shape, i.times(self.rows.count) + row) for row, i in places]
            return writer.values(part, points)

        return Fold(self.rows.length, fold.accumulator, elements)

    def _bring_together(self, totals: list[tuple[Fold, str]]) -> None:
        """What each invocation of the workgroup has found, in the same order each time."""
        writer, together = self.writer, self.how.together
        if self.shared:
            writer.line("workgroupBarrier();")
        names = []
        for i, (fold, total) in enumerate(totals):
            name = f"shared_{fold.accumulator.type}_{i}"
            declaration = f"var<workgroup> {name}: array<{fold.accumulator.type}, {together}>;"
            if declaration not in self.shared:
                self.shared.append(declaration)
            writer.line(f"{name}[l] = {total};")
            names.append(name)
        writer.line("workgroupBarrier();")
        s = writer.fresh()
        with writer.block(f"for (var {s} = {together // 2}u; {s} > 0u; {s} /= 2u)"):
            with writer.block(f"if (l < {s})"):
                for name, (fold, _) in zip(names, totals, strict=True):
                    writer.line(f"{name}[l] = {fold.accumulator.how(f'{name}[l]', f'{name}[l + {s}]')};")
            writer.line("workgroupBarrier();")
        for name, (_, total) in zip(names, totals, strict=True):
            writer.line(f"{total} = {name}[0];")

    # ---- results -------------------------------------------------------------------------------------------

    def _outer(self, stage: int, rows: list[Place]) -> None:
        """What has one element for each row, and is there after so many loops."""
        if not self.rows.axes:
            return
        for v in self.cluster.values:
            if self.depths[v] == stage and self.cluster.is_outer(v) and v not in self.folds:
                for row in rows:
                    self.writer.value(v, self.writer.point(v.shape, row))

    def _store(self, rows: list[Place]) -> None:
        writer = self.writer
        outer = [v for v in self.cluster.written if self.cluster.is_outer(v)]
        inner = [v for v in self.cluster.written if not self.cluster.is_outer(v)]
        values = {v: writer.values(v, [writer.point(v.shape, row) for row in rows]) for v in outer}
        if outer and self.how.together > 1:
            with writer.block("if (l == 0u)"):
                for v in outer:
                    writer.store(v, [*zip(rows, values[v], strict=True)])
        else:
            for v in outer:
                writer.store(v, [*zip(rows, values[v], strict=True)])
        if not inner:
            return

        def body(steps: list[Place]) -> None:
            self._at_home(rows, steps)
            places = [self.rows.element(writer, row, i).linear for row in rows for i in steps]
            for v in inner:
                values = writer.values(v, [writer.point(v.shape, place) for place in places])
                writer.store(v, [*zip(places, values, strict=True)])

        self._loop(body)

    def _store_parts(self, rows: list[Place]) -> None:
        writer = self.writer
        count = self.rows.count
        for part in self.between.values():
            elements = [
                (self.part.times(count) + row, writer.value(part, writer.point(part.shape, row)))
                for row in rows
            ]
            if self.how.together > 1:
                with writer.block("if (l == 0u)"):
                    writer.store(part, elements)
            else:
                writer.store(part, elements)

    def _finished(self) -> Kernel:
        """The text around the lines that have been written."""
        how = self.how
        rows = self.rows.count * how.parts
        groups = rows if how.together > 1 else -(-rows // self.lanes // WORKGROUP)
        text = module(self.writer, how.together if how.together > 1 else WORKGROUP, self.shared)
        made = tuple([self.makers[v] for v in self.cluster.values])
        reads, writes = tuple(self.writer.reads), tuple(self.writer.writes)
        return Kernel(text, spread(groups), reads, writes, prod(self.rows.shape), made)


def module(writer: Writer, size: int, shared: Sequence[str] = ()) -> str:
    """The template of a kernel: the text around the lines that have been written.

    Args:
        writer: that has written them.
        size: how many invocations a workgroup has.
        shared: the declarations of its memory.
    """
    head = [
        "@builtin(global_invocation_id) g: vec3<u32>",
        "@builtin(workgroup_id) w: vec3<u32>",
        "@builtin(local_invocation_index) l: u32",
        "@builtin(num_workgroups) n: vec3<u32>",
    ]
    return "\n".join(
        [
            NUMBERS,
            *writer.declarations(),
            *shared,
            f"@compute @workgroup_size({size})",
            f"fn main({', '.join(head)}) {{",
            *writer.lines,
            "}",
        ]
    )


def spread(groups: int) -> tuple[int, int, int]:
    """So many workgroups along two axes, of which there may be 65 535 along each."""
    rows = -(-groups // 65535)
    return -(-groups // rows), rows, 1
