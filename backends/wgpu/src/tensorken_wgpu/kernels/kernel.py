"""Kernels: the WGSL of a fusion group, as loop nests over the rows of an array.

An invocation has one row, or several neighbouring rows, or shares a row with its workgroup, whose partial results are
combined as a tree, see `workgroups`.  Few long rows are reduced in parts, by two kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable, written_variable
from tensorken.kernels.nests import FusionGroup, Nest
from tensorken.kernels.rows import REDUCTIONS, Rows
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.kernels.workgroups import Workgroup
from tensorken_wgpu.wgsl.functions import needed
from tensorken_wgpu.wgsl.ops import Accumulator
from tensorken_wgpu.wgsl.reductions import accumulator_of
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import NUMBERS, index_text, integer
from tensorken_wgpu.wgsl.vectors import FOUR, Vector, vector_of
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

WORKGROUP = 256
"""Invocations of a workgroup that share no rows."""

MAX_ITERATIONS = 4096
"""The most iterations of one loop.

Mesa's software driver silently ends the loops of a kernel after 65 535 iterations in total.
"""

MIN_VECTORISED = 2**14
"""From this many elements on vectors are read and written."""

MAX_VECTORISED_LINES = 64
"""The most lines of a kernel that is written for vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel.

    Attributes:
        template: its text, see `templates`.
        workgroups: their number along three axes.
        reads: the values read from memory, in the order of the bindings.
        writes: the values written to memory, whose bindings follow.
        work: about how many elements it reads.
        equations: that it computes, for messages.
        choice: this kernel and equivalent ones, if the fastest is to be measured on the device.
        is_proved: whether all its indices are known to be in range, see `modules`.
    """

    template: str
    workgroups: tuple[int, int, int]
    reads: tuple[Variable, ...]
    writes: tuple[Variable, ...]
    work: int
    equations: tuple[Equation, ...] = ()
    choice: Choice | None = None
    is_proved: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Equivalent kernels.

    Attributes:
        key: of the problem; equal for all shapes that are assumed to have the same fastest kernel.
        kernels: by name, the likely fastest first.
    """

    key: str
    kernels: Mapping[str, Kernel]


@dataclass(frozen=True, slots=True)
class Division:
    """How a row is divided among invocations.

    Attributes:
        invocations: the number of invocations that share a row, or a part of it.
        parts: the number of parts in which a row is reduced.
    """

    invocations: int
    parts: int


def divide_rows(rows: Rows, target: Target) -> Division:
    """How rows are divided among invocations."""
    if not rows.axes:
        return Division(1, 1)
    count, length = rows.count, rows.length
    invocations = 1
    if target.is_software:
        single = count >= 256 and length <= MAX_ITERATIONS
    else:
        single = count >= target.busy_invocations and length <= 256
    if rows.along_the_last and length >= 64 and not single:
        invocations = 64 if length < 1024 else 256
    parts = _parts(rows, invocations, target)
    if parts > 1 and target.is_software:
        # In software, loops are slow in workgroups that share rows.
        invocations, parts = 1, _parts(rows, 1, target)
    return Division(invocations, parts)


def _parts(rows: Rows, invocations: int, target: Target) -> int:
    """The number of parts in which rows are reduced, if this many invocations share a row."""
    iterations = -(-rows.length // invocations)
    parts = min(target.busy_invocations // max(rows.count * invocations, 1), iterations // 64)
    return max(parts if parts >= 4 else 1, -(-iterations // MAX_ITERATIONS))


def divide_parts(parts: int, count: int, target: Target) -> Division:
    """How the partial results of rows are reduced: one invocation per row, or several for few long rows."""
    return Division(64 if parts >= 64 and count * 64 <= target.busy_invocations else 1, 1)


def kernels_of(
    group: FusionGroup,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    target: Target,
) -> list[Kernel]:
    """The kernels of a fusion group: one, or two if its rows are reduced in parts.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        target: the device.

    Raises:
        NotComputedHere: if a value needs an element of another value that is not computed.
    """
    division = divide_rows(group.rows, target)
    if division.parts == 1:
        return [row_kernel(group, producers, kept, division, target)]
    lanes = division.parts * group.rows.count
    rest = divide_parts(division.parts, group.rows.count, target)
    reductions = [v for v in group.values if producers[v].op.name in REDUCTIONS]
    partials: dict[Variable, Any] = {
        v: Value((lanes,), DTYPES[accumulator_of(producers[v]).dtype]) for v in reductions
    }
    return [
        row_kernel(group, producers, kept, division, target, partials),
        row_kernel(group_of_parts(group, division.parts), producers, kept, rest, target, partials),
    ]


def group_of_parts(group: FusionGroup, parts: int) -> FusionGroup:
    """The group that remains when each part of a row has been reduced to one number."""
    rows = Rows((parts, group.rows.count), (0,), group)
    return replace(group, rows=rows)


def row_kernel(
    group: FusionGroup,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    division: Division,
    target: Target,
    partials: Mapping[Variable, Variable] | None = None,
) -> Kernel:
    """The kernel of a fusion group, with vectors where possible and useful."""
    single = RowKernel(group, producers, kept, division, target, partials)
    kernel = single.kernel()
    rows = group.rows
    size = _vector_size(rows, division, single.writer.lines, target)
    if size == 1:
        return kernel
    lanes, steps = (1, size) if rows.along_the_last else (size, 1)
    return with_vectors(
        lambda vectors: RowKernel(group, producers, kept, division, target, partials, vectors, lanes, steps),
        [*kernel.reads, *kernel.writes],
        size,
    )


def _vector_size(rows: Rows, division: Division, lines: Sequence[str], target: Target) -> int:
    """How many neighbouring elements an invocation computes, in a kernel with these lines for one element.

    For more than four the functions that the kernel calls are counted too: drivers take long to compile long
    kernels, and a processor has too few registers for them.
    """
    neighbours = rows.length if rows.along_the_last else rows.count if division.invocations == 1 else 1
    if prod(rows.shape) < MIN_VECTORISED:
        return 1
    for number in target.vector_sizes:
        text = lines if number == FOUR else [*lines, *needed("\n".join(lines)).splitlines()]
        if len(text) <= MAX_VECTORISED_LINES and neighbours % number == 0:
            return number
    return 1


class KernelWriter(Protocol):
    """Writes a kernel."""

    writer: Writer

    def kernel(self) -> Kernel:
        """The kernel."""


def with_vectors(
    make_writer: Callable[[Mapping[Variable, Vector]], KernelWriter],
    values: Collection[Variable],
    most: int = FOUR,
) -> Kernel:
    """A kernel that reads and writes values in the largest vectors, up to this size, that suit its accesses."""
    vectors = {v: vector for v in values if (vector := vector_of(v, most))}
    while True:
        kernel_writer = make_writer(vectors)
        kernel = kernel_writer.kernel()
        unaligned = kernel_writer.writer.unaligned & vectors.keys()
        if not unaligned:
            return kernel
        smaller = {
            v: vector_of(v, vector.size - 1) if v in unaligned else vector for v, vector in vectors.items()
        }
        vectors = {v: vector for v, vector in smaller.items() if vector}


class RowKernel(Nest[str]):
    """Writes the kernel of a fusion group.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.
        division: of its rows.
        target: the device.
        partials: for each reduction the value that holds its partial results: the kernel writes it, or reads it if
            the group reduces partial results.
        vectors: the vectors in which values are read and written.
        lanes: the number of neighbouring rows of an invocation.
        steps: the number of neighbours in a row that are computed at once.
    """

    def __init__(
        self,
        group: FusionGroup,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        division: Division,
        target: Target,
        partials: Mapping[Variable, Variable] | None = None,
        vectors: Mapping[Variable, Vector] | None = None,
        lanes: int = 1,
        steps: int = 1,
    ) -> None:
        self.division = division
        self.partials = partials or {}
        self.steps = steps
        self.lanes = lanes
        known = {*kept, *self.partials.values()} if partials else kept
        self.writer = Writer(producers, known, frozenset(group.values), vectors, target)
        self.workgroup = Workgroup(self.writer, division.invocations, target)
        super().__init__(group, self.writer)

    # ---- the kernel ----------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Write the kernel."""
        rows = self._rows()
        if self.division.parts == 1:
            self.run(rows)
        else:
            self.set_current(rows, [])
            self.compute_outer(0, rows)
            self.reduce(self.reductions, rows)
            self._store_parts(rows)
        return self._finished()

    def _rows(self) -> list[IndexExpression]:
        """Write the head of the body, and return the rows of an invocation."""
        division, writer = self.division, self.writer
        count = self.rows.count * division.parts
        if division.invocations > 1:
            writer.line("let q = w.x + w.y * n.x;")
            writer.line(f"if (q >= {integer(count)}) {{ return; }}")
            index = written_variable("q", count)
        else:
            count //= self.lanes
            writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
            writer.line(f"if (t >= {integer(count)}) {{ return; }}")
            index = written_variable("t", count)
        self.part, lane = constant_index(0), index
        if division.parts > 1:
            self.part, lane = index.divided(self.rows.count // self.lanes, writer)
        return [lane.times(self.lanes).plus(j) for j in range(self.lanes)]

    # ---- loops ---------------------------------------------------------------------------------------------

    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        """Loop over the row, or a part of it, or every n-th element of it."""
        division, writer = self.division, self.writer
        length = self.rows.length // self.steps
        chunk = -(-length // division.parts)
        k = writer.new_name()
        start, step = ("l", division.invocations) if division.invocations > 1 else ("0u", 1)
        with writer.block(f"for (var {k} = {start}; {k} < {integer(chunk)}; {k} += {step}u)"):
            index = self.part.times(chunk) + variable(k, chunk) if chunk > 1 else self.part.times(chunk)
            if index.end is None or index.end > length:
                name = writer.new_name()
                writer.line(f"let {name} = {index_text(index)};")
                writer.line(f"if ({name} >= {integer(length)}) {{ break; }}")
                index = variable(name, length)
            body([index.times(self.steps).plus(e) for e in range(self.steps)])

    def reduce(self, reductions: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        writer = self.writer
        if not reductions:
            return
        accumulators = {v: accumulator_of(self.producers[v]) for v in reductions}
        totals = {(v, j): writer.new_name() for v in reductions for j in range(len(rows))}
        for (v, _), total in totals.items():
            writer.line(f"var {total}: {accumulators[v].type} = {accumulators[v].start};")

        def body(steps: Sequence[IndexExpression]) -> None:
            self.set_current(rows, steps)
            for v in reductions:
                values = iter(self.reduced(v, rows, steps))
                for j in range(len(rows)):
                    elements = [next(values) for _ in steps]
                    total = totals[v, j]
                    for element in elements:
                        writer.line(f"{total} = {accumulators[v].combine(total, element)};")

        if self.rows.length:
            self.loop(body)
        if self.division.invocations > 1:
            self._combine([(accumulators[v], total) for (v, _), total in totals.items()])
        for (v, j), total in totals.items():
            if self.division.parts > 1:
                writer.define(self.partials[v], rows[j], total)
            else:
                writer.define(v, rows[j], writer.named(("total", total), accumulators[v].finish(total)))

    def reduced(
        self, v: Variable, rows: Sequence[IndexExpression], steps: Sequence[IndexExpression]
    ) -> Sequence[str]:
        part = self.partials.get(v)
        if part is None or self.division.parts > 1:
            begin = accumulator_of(self.producers[v]).begin
            return [begin(element) for element in super().reduced(v, rows, steps)]
        indices = [i.times(self.rows.count) + row for row in rows for i in steps]
        return self.writer.values(part, [self.writer.element(part.shape, index) for index in indices])

    def _combine(self, totals: list[tuple[Accumulator, str]]) -> None:
        """Combine the partial results of the workgroup, always in the same order."""

        def combine(parts: Mapping[str, tuple[str, str]]) -> None:
            for accumulator, total in totals:
                first, second = parts[total]
                self.writer.line(f"{first} = {accumulator.combine(first, second)};")

        self.workgroup.reduce([(accumulator.type, total) for accumulator, total in totals], combine)

    # ---- results -------------------------------------------------------------------------------------------

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, str]]) -> None:
        self.writer.store(v, elements)

    def write_outer(self, values: Sequence[tuple[Variable, Sequence[tuple[IndexExpression, str]]]]) -> None:
        if self.division.invocations > 1:
            with self.writer.block("if (l == 0u)"):
                super().write_outer(values)
        else:
            super().write_outer(values)

    def _store_parts(self, rows: Sequence[IndexExpression]) -> None:
        writer = self.writer
        count = self.rows.count
        for part in self.partials.values():
            elements = [
                (self.part.times(count) + row, writer.value(part, writer.element(part.shape, row)))
                for row in rows
            ]
            if self.division.invocations > 1:
                with writer.block("if (l == 0u)"):
                    writer.store(part, elements)
            else:
                writer.store(part, elements)

    def _finished(self) -> Kernel:
        """The kernel with the lines written so far."""
        division = self.division
        rows = self.rows.count * division.parts
        workgroups = rows if division.invocations > 1 else -(-rows // self.lanes // WORKGROUP)
        text = kernel_template(
            self.writer,
            division.invocations if division.invocations > 1 else WORKGROUP,
            self.workgroup.declarations,
        )
        equations = tuple([self.producers[v] for v in self.group.values])
        reads, writes = tuple(self.writer.reads), tuple(self.writer.writes)
        return Kernel(
            text,
            workgroup_grid(workgroups),
            reads,
            writes,
            prod(self.rows.shape),
            equations,
            is_proved=self.writer.is_proved,
        )


def kernel_template(writer: Writer, size: int, shared: Sequence[str] = ()) -> str:
    """The template of a kernel: the text around the lines of its body.

    Args:
        writer: has written the body.
        size: invocations of a workgroup.
        shared: declarations of workgroup memory.
    """
    head = [
        "@builtin(global_invocation_id) g: vec3<u32>",
        "@builtin(workgroup_id) w: vec3<u32>",
        "@builtin(local_invocation_index) l: u32",
        "@builtin(num_workgroups) n: vec3<u32>",
    ]
    if any(["subgroup" in line for line in writer.lines]):
        head += [
            "@builtin(subgroup_size) subgroup_size: u32",
            "@builtin(subgroup_id) subgroup: u32",
            "@builtin(subgroup_invocation_id) lane: u32",
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


def workgroup_grid(count: int) -> tuple[int, int, int]:
    """This many workgroups along two axes, each of which may have 65 535."""
    rows = -(-count // 65535)
    return -(-count // rows), rows, 1
