"""Sorts: kernels of `sort` and `argsort`.

Short rows are sorted by comparison counting: an invocation has an element, and its place is the number of elements
before it (D. E. Knuth, "The Art of Computer Programming", volume 3, 1973, section 5.2).  Rows that fit in the memory of
a workgroup are sorted there by their digits, and longer rows by passes over memory, see `radix`.

A sort moves the elements themselves, and compares keys that are computed from them: so equal elements, such as 0.0 and
-0.0, keep their order without their indices.  Where a program needs both the sorted elements and their order, as
derivatives do, one sort has both results.  The kernels of large sorts, and of short rows, compute the operand's
elements, see `prologues`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, variable, written_variable
from tensorken_wgpu.kernels import radix
from tensorken_wgpu.kernels.fourier import MIN_FUSED
from tensorken_wgpu.kernels.kernel import WORKGROUP, Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.kernels.radix import KEYS, ROUND_BITS, Tile, elements_of
from tensorken_wgpu.wgsl.dtypes import Value as HasShape, size_of
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

OPS = frozenset({"sort", "argsort"})
"""The ops of these kernels."""

MAX_COUNTED = 64
"""The longest rows that are sorted by counting: then an element is compared as often as radix sort moves it."""

OTHERS = 2
"""The most values that a kernel of a sort reads or writes, besides those that other transforms do."""


def has_kernels(operand: HasShape, target: Target) -> bool:
    """Whether sorts of an operand of this shape have these kernels; if not, the body of the op runs."""
    return 0 not in operand.shape and len(target.windows(max(size_of(operand), 4 * prod(operand.shape)))) == 1


def is_fused(equation: Equation) -> bool:
    """Whether the ops before a sort are fused into its kernels.

    Small sorts share kernels, unless these are short: a driver takes long to compile the others.
    """
    (x,), (axis,) = equation.operands, equation.params
    length: int = x.shape[axis]
    return length <= MAX_COUNTED or prod(x.shape) >= MIN_FUSED


def with_joint_sorts(program: Program) -> Program:
    """The program with one equation, with two results, in place of `sort` and `argsort` of the same elements."""
    found: dict[Any, dict[str, Equation]] = {}
    for e in program.equations:
        if e.op.name in OPS:
            found.setdefault((e.operands, e.params), {})[e.op.name] = e
    pairs = [(pair["sort"], pair["argsort"]) for pair in found.values() if len(pair) > 1]
    if not pairs:
        return program
    joint = {
        e: replace(order, results=(*sort.results, *order.results))
        for sort, order in pairs
        for e in (sort, order)
    }
    equations = dict.fromkeys([joint.get(e, e) for e in program.equations])
    return program.changed(equations=tuple(equations))


def kernels(
    equation: Equation, producers: Mapping[Variable, Equation], sources: Collection[Variable], target: Target
) -> list[Kernel]:
    """The kernels of a sort.

    Args:
        equation: the sort.
        producers: for each computed value its equation.
        sources: the values in memory from which the operand is computed.
        target: the device.
    """
    sort = _Sort(equation, producers, sources, target)
    if sort.length <= MAX_COUNTED:
        return [sort.counted()]
    if sort.length <= WORKGROUP * elements_of(sort.keys):
        return [sort.in_workgroups()]
    return radix.kernels(sort.rows())


class _Sort:
    """Writes the kernels of a sort; for the arguments see `kernels`."""

    def __init__(
        self,
        equation: Equation,
        producers: Mapping[Variable, Equation],
        sources: Collection[Variable],
        target: Target,
    ) -> None:
        (self.x,), (self.axis,) = equation.operands, equation.params
        self.equation = equation
        self.producers = producers
        self.sources = sources
        self.target = target
        self.keys = KEYS[self.x.dtype.name]
        self.order = equation.results[-1] if equation.op.name == "argsort" else None
        self.sorted = equation.results[0] if self.order is not equation.results[0] else None
        self.length: int = self.x.shape[self.axis]
        self.count: int = prod(self.x.shape) // self.length

    def _make_writer(self, values: Collection[Any] = ()) -> Writer:
        return Writer(self.producers, {*self.sources, *values}, frozenset(), target=self.target)

    # ---- elements ------------------------------------------------------------------------------------------

    def _index(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> ElementIndex:
        """The index of an element of a row."""
        shape, axis = self.x.shape, self.axis
        outer = writer.element((*shape[:axis], 1, *shape[axis + 1 :]), row).indices
        return ElementIndex(shape, writer, [*outer[:axis], i, *outer[axis + 1 :]])

    def _word(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> str:
        return self.keys.word_of(writer.value(self.x, self._index(writer, row, i)))

    def _store(self, writer: Writer, row: IndexExpression, i: IndexExpression, word: str, place: str) -> None:
        """Write the results: the element, and its index in the row, a u32."""
        to = self._index(writer, row, i).linear
        if self.sorted is not None:
            writer.store(self.sorted, [(to, self.keys.element_of(word))])
        if self.order is not None:
            writer.store(self.order, [(to, f"i32({place})")])

    # ---- several rows of a workgroup -----------------------------------------------------------------------

    def _start(self, writer: Writer, rows: int) -> int:
        """Write the number of rows and of elements of a workgroup, `height` and `end`; return that of workgroups."""
        workgroups = -(-self.count // rows)
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(workgroups)}) {{ return; }}")
        writer.line(f"let height = min({integer(rows)}, {integer(self.count)} - q * {integer(rows)});")
        writer.line(f"let end = height * {integer(self.length)};")
        return workgroups

    def _interleaves(self, rows: int) -> bool:
        """Whether the first elements of all rows of a workgroup come first, as they are neighbours in memory."""
        return rows > 1 and prod(self.x.shape[self.axis + 1 :]) > 1

    def _place(self, writer: Writer, rows: int, position: str) -> tuple[IndexExpression, IndexExpression]:
        """The row of an element at a position below `end`, and its index in the row."""
        length, count = self.length, self.count
        if self._interleaves(rows):
            row = writer.index(f"q * {integer(rows)} + {position} % height", count)
            return row, writer.index(f"{position} / height", length)
        place = writer.named(("place", position), f"q * {integer(rows * length)} + {position}")
        return written_variable(place, count * length).divided(length, writer)

    def counted(self) -> Kernel:
        """The kernel whose invocations each count the elements that come before theirs."""
        writer, length = self._make_writer(), self.length
        rows = WORKGROUP // length
        workgroups = self._start(writer, rows)
        writer.line(f"var element = {self.keys.last};")
        with writer.block("if (l < end)"):
            writer.line(f"element = {self._word(writer, *self._place(writer, rows, 'l'))};")
        writer.line("let key = sort_key(element);")
        writer.line("keys[l] = key;")
        writer.line("workgroupBarrier();")
        with writer.block("if (l < end)"):
            row, i = self._place(writer, rows, "l")
            writer.line(f"let own = {index_text(i)};")
            first, step = ("l % height", "height") if self._interleaves(rows) else ("l - own", "1u")
            writer.line(f"let first = {first};")
            writer.line("var before = 0u;")
            j = writer.new_name()
            with writer.block(f"for (var {j} = 0u; {j} < {integer(length)}; {j} += 1u)"):
                writer.line(f"let other = keys[first + {j} * {step}];")
                writer.line(f"before += select(0u, 1u, other < key || (other == key && {j} < own));")
            writer.line(f"before = min(before, {integer(length - 1)});")
            self._store(writer, row, variable("before", length), "element", "own")
        shared = [f"var<workgroup> keys: array<{self.keys.word}, {WORKGROUP}>;", self.keys.function]
        return self._finished(writer, shared, workgroups)

    def in_workgroups(self) -> Kernel:
        """The kernel whose workgroups each sort one or several rows.

        Several rows are sorted together, at last by their number.
        """
        writer, length = self._make_writer(), self.length
        most = (1 << ROUND_BITS) - 1
        rows = min(WORKGROUP * elements_of(self.keys) // length, most, self.count)
        tile = Tile(writer, self.keys, has_payload=self.order is not None or rows > 1)
        workgroups = self._start(writer, rows)
        tile.start()
        tile.load("0u", "end", lambda i: (self._word(writer, *self._place(writer, rows, i)), i))
        tile.sort_by_key("0u", f"{self.keys.bits}u")
        is_interleaved = self._interleaves(rows)
        if rows > 1:
            row_of = "% height" if is_interleaved else f"/ {integer(length)}"
            with writer.block(""):
                tile.sort(lambda e: f"min(p{e} {row_of}, {most}u)")
        for e in range(tile.elements):
            position = tile.position(e)
            with writer.block(f"if ({position} < end)"):
                row, i = self._place(writer, rows, position)
                place, own = position, f"% {integer(length)}"
                if is_interleaved:
                    place, own = f"{position} % height * {integer(length)} + {index_text(i)}", "/ height"
                word = writer.named(("word", e), f"words[place({place})]")
                number = f"(counters[place({place})] {own})" if tile.has_payload else ""
                self._store(writer, row, i, word, number)
        return self._finished(writer, tile.declarations(), workgroups)

    # ---- longer rows ---------------------------------------------------------------------------------------

    def rows(self) -> radix.Rows:
        """The rows, to be sorted by passes over memory."""
        return radix.Rows(
            self.count,
            self.length,
            self.keys,
            self.x.dtype,
            self.order is not None,
            self._word,
            lambda writer, row, i: index_text(i),
            self._store,
            self.equation,
            self._make_writer,
        )

    def _finished(self, writer: Writer, shared: list[str], workgroups: int) -> Kernel:
        return Kernel(
            kernel_template(writer, WORKGROUP, shared),
            workgroup_grid(workgroups),
            tuple(writer.reads),
            tuple(writer.writes),
            prod(self.x.shape),
            (self.equation,),
            is_proved=writer.is_proved,
        )
