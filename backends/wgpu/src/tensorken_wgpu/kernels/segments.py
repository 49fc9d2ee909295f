"""Segments: scatter_add by sorting the indices, for many updates of many or few destinations.

The indices are sorted with their positions, so the slices of a destination are a segment of the sorted positions.
Chunks of 32 positions, of 32 chunks, and so on, that are within a segment are added first, each in order, and then each
segment: its elements up to the first whole chunk, its chunks, and its last elements.  So each slice is read once, each
destination written once, and no invocation adds more than a few hundred numbers, however the indices are distributed.
The order of the additions depends on the indices only.

Sums of segments after a sort are in N. Bell and M. Garland, "Implementing sparse matrix-vector multiplication on
throughput-oriented processors", 2009, section 4.4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, variable, written_variable
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.kernels import radix
from tensorken_wgpu.kernels.kernel import WORKGROUP, Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.kernels.radix import KEYS, PASS_BITS, UINT32
from tensorken_wgpu.wgsl.ops import sums
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

CHUNK = 32
"""The positions, or smaller chunks, of a chunk."""

MAX_CHUNKS = 64
"""Up to this many chunks are added by one invocation."""

MIN_COMPARISONS = 2**27
"""If other kernels compare fewer indices, a GPU is faster with them, as they are one or two kernels."""

MIN_SAVING = 16
"""The least ratio of the comparisons of other kernels to the accesses to memory of these ones."""

_OUT_OF_RANGE = 1 << 31
"""The bit of a position whose index is out of range; its slice is not added."""


def has_kernels(equation: Equation, comparisons: int, target: Target) -> bool:
    """Whether a scatter has these kernels.

    Args:
        equation: the scatter.
        comparisons: the number of indices that the invocations of other kernels visit.
        target: the device.
    """
    count, size, elements = equation.operands[1].shape[0], equation.params[1], prod(equation.results[0].shape)
    if target.is_software or comparisons < MIN_COMPARISONS or count >= _OUT_OF_RANGE:
        return False
    columns = elements // size
    accesses: int = count * (6 * _passes(size) + columns) + size * count.bit_length() + elements
    return MIN_SAVING * accesses <= comparisons


def _key_bits(size: int) -> int:
    return max((size - 1).bit_length(), 1)


def _passes(size: int) -> int:
    return -(-_key_bits(size) // PASS_BITS)


def kernels(
    equation: Equation, producers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> list[Kernel]:
    """The kernels of a scatter.

    Args:
        equation: the scatter.
        producers: for each computed value its equation.
        kept: the values in memory.
        target: the device.
    """
    return _Segments(equation, producers, kept, target).kernels()


class _Segments:
    """Writes the kernels of a scatter; for the arguments see `kernels`."""

    def __init__(
        self,
        equation: Equation,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        target: Target,
    ) -> None:
        (self.x, self.indices), (self.axis, self.size), (self.v,) = (
            equation.operands,
            equation.params,
            equation.results,
        )
        self.equation = equation
        self.producers = producers
        self.kept = kept
        self.target = target
        self.count = self.indices.shape[0]
        self.columns = prod(self.v.shape) // self.size
        self.accumulator = sums(self.x.dtype.name)
        self.keys: Any = Value((self.count,), UINT32)
        self.order: Any = Value((self.count,), UINT32)
        self.starts: Any = Value((self.size + 1,), UINT32)
        self.chunks: list[Any] = []  # of each level: their sums
        number = self.count
        while number > MAX_CHUNKS:
            number //= CHUNK
            self.chunks.append(Value((number, self.columns), DTYPES[self.accumulator.dtype]))

    def kernels(self) -> list[Kernel]:
        """The kernels."""
        levels = range(len(self.chunks))
        return [*self._sorting(), self._starting(), *map(self._adding, levels), self._finishing()]

    def _writer(self, values: Collection[Any]) -> Writer:
        return Writer(self.producers, {*self.kept, *values}, frozenset([self.v]), target=self.target)

    # ---- the order of the indices ----------------------------------------------------------------------------

    def _sorting(self) -> list[Kernel]:
        """The kernels that sort the indices, with their positions."""
        keys = replace(KEYS["uint32"], bits=_key_bits(self.size))
        return radix.kernels(
            radix.Rows(
                1,
                self.count,
                keys,
                UINT32,
                True,
                self._word,
                self._position,
                self._store,
                self.equation,
                self._writer,
            )
        )

    def _index(self, writer: Writer, i: IndexExpression) -> str:
        """The index at a position."""
        element = writer.value(self.indices, writer.element(self.indices.shape, i))
        return index_text(writer.as_index(element, self.indices.dtype, self.size))

    def _word(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> str:
        return f"min({self._index(writer, i)}, {integer(self.size - 1)})"

    def _position(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> str:
        position, is_in_range = index_text(i), f"{self._index(writer, i)} < {integer(self.size)}"
        return f"select({position} | {_OUT_OF_RANGE}u, {position}, {is_in_range})"

    def _store(
        self, writer: Writer, row: IndexExpression, i: IndexExpression, word: str, position: str
    ) -> None:
        writer.store(self.keys, [(i, word)])
        writer.store(self.order, [(i, position)])

    def _starting(self) -> Kernel:
        """The kernel that finds the start of each segment by bisection, and the end of the last one."""
        writer = self._writer([self.keys])
        index = self._head(writer, self.size + 1)
        writer.line("var low = 0u;")
        writer.line(f"var high = {integer(self.count)};")
        k = writer.new_name()
        with writer.block(f"for (var {k} = 0u; {k} < {self.count.bit_length()}u; {k} += 1u)"):
            writer.line("let middle = (low + high) / 2u;")
            key = self._element(writer, self.keys, "middle")
            writer.line(f"let is_later = low < high && {key} < {index_text(index)};")
            writer.line("high = select(middle, high, is_later);")
            writer.line("low = select(low, middle + 1u, is_later);")
        writer.store(self.starts, [(index, "low")])
        return self._finished(writer, self.size + 1)

    # ---- sums ------------------------------------------------------------------------------------------------

    def _adding(self, level: int) -> Kernel:
        """The kernel that adds each chunk of a level that is within a segment."""
        chunks = self.chunks[level]
        writer = self._writer([self.keys, self.order, *self.chunks[max(level - 1, 0) : level]])
        index = self._head(writer, prod(chunks.shape))
        chunk, column = index.divided(self.columns, writer)
        step = CHUNK ** (level + 1)
        first, last = [
            writer.value(self.keys, writer.element(self.keys.shape, chunk.times(step).plus(i)))
            for i in (0, step - 1)
        ]
        writer.line(f"if ({first} != {last}) {{ return; }}")
        writer.line(f"var total: {self.accumulator.type} = {self.accumulator.start};")
        k = writer.new_name()
        with writer.block(f"for (var {k} = 0u; {k} < {CHUNK}u; {k} += 1u)"):
            i = chunk.times(CHUNK) + variable(k, CHUNK)
            self._add(writer, level, index_text(i), column)
        writer.store(chunks, [(index, "total")])
        return self._finished(writer, prod(chunks.shape))

    def _finishing(self) -> Kernel:
        """The kernel that adds each segment."""
        writer = self._writer([self.order, self.starts, *self.chunks])
        index = self._head(writer, prod(self.v.shape))
        element = writer.element(self.v.shape, index)
        row, columns = element.indices[self.axis], self._columns_shape
        column = ElementIndex(
            columns,
            writer,
            [i if n > 1 else i.times(0) for i, n in zip(element.indices, columns, strict=True)],
        ).linear
        start, end = [
            writer.value(self.starts, writer.element(self.starts.shape, row.plus(i))) for i in (0, 1)
        ]
        writer.line(f"var i = {start};")
        writer.line(f"let end = {end};")
        writer.line(f"var total: {self.accumulator.type} = {self.accumulator.start};")
        top = len(self.chunks)
        for level in range(top):
            after = CHUNK ** (level + 1)
            self._add_up_to(writer, level, f"min(end - i, ({after}u - i % {after}u) % {after}u)", column)
        self._add_up_to(writer, top, "end - i", column)
        for level in reversed(range(top)):
            self._add_up_to(writer, level, "end - i", column)
        writer.store(self.v, [(index, self.accumulator.finish("total"))])
        return self._finished(writer, prod(self.v.shape))

    def _add_up_to(self, writer: Writer, level: int, positions: str, column: IndexExpression) -> None:
        """Add the chunks of a level that are within the next positions, from `i` on.

        Their number is known before the loop, so that a driver can read several at once.
        """
        k, step = writer.new_name(), CHUNK**level
        most = CHUNK if level < len(self.chunks) else MAX_CHUNKS
        number = writer.new_name()
        writer.line(f"let {number} = min(({positions}) / {step}u, {most}u);")
        with writer.block(f"for (var {k} = 0u; {k} < {number}; {k} += 1u)"):
            self._add(writer, level, f"i / {step}u + {k}" if step > 1 else f"i + {k}", column)
        writer.line(f"i += {number} * {step}u;")

    def _add(self, writer: Writer, level: int, number: str, column: IndexExpression) -> None:
        """Add a chunk of the level below, or the slice at a position, to `total`."""
        if level:
            chunks = self.chunks[level - 1]
            chunk = writer.as_index(number, UINT32, chunks.shape[0])
            value = writer.value(chunks, writer.element(chunks.shape, chunk.times(self.columns) + column))
        else:
            name = self._element(writer, self.order, number)
            i = writer.as_index(f"({name} & {_OUT_OF_RANGE - 1}u)", UINT32, self.count)
            outer = writer.element(self._columns_shape, column).indices
            index = ElementIndex(self.x.shape, writer, [*outer[: self.axis], i, *outer[self.axis + 1 :]])
            value = writer.value(self.x, index)
            zero = writer.constant(0, self.x.dtype)
            value = writer.bind(f"select({zero}, {value}, {name} < {_OUT_OF_RANGE}u)", self.x.dtype)
        writer.line(f"total = {self.accumulator.combine('total', value)};")

    # ---- parts of the text -----------------------------------------------------------------------------------

    @property
    def _columns_shape(self) -> Sequence[int]:
        return (*self.v.shape[: self.axis], 1, *self.v.shape[self.axis + 1 :])

    def _element(self, writer: Writer, v: Any, number: str) -> str:
        """The element of a vector at an index."""
        return writer.value(v, writer.element(v.shape, writer.as_index(number, UINT32, v.shape[0])))

    def _head(self, writer: Writer, count: int) -> IndexExpression:
        """Write the head of a kernel with this many invocations; return the number of the invocation."""
        writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
        writer.line(f"if (t >= {integer(count)}) {{ return; }}")
        return written_variable("t", count)

    def _finished(self, writer: Writer, invocations: int) -> Kernel:
        return Kernel(
            kernel_template(writer, WORKGROUP),
            workgroup_grid(-(-invocations // WORKGROUP)),
            tuple(writer.reads),
            tuple(writer.writes),
            invocations,
            (self.equation,),
            is_proved=writer.is_proved,
        )
