"""Radix sort: kernels that sort words stably by the digits of their keys, the least significant digit first.

A workgroup sorts a tile in its own memory, by four bits a round: each invocation counts the digits of its elements, a
scan over all counters gives the place of each element, and the elements are exchanged (N. Satish, M. Harris and
M. Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009).

An array of many tiles is sorted by eight bits a pass (D. Merrill and A. Grimshaw, "High performance and scalable radix
sorting", 2011): a kernel counts the digits of each block of tiles, a kernel adds the counts of the blocks before each
block, and a kernel sorts each tile and writes each digit's elements behind those of earlier tiles.  Few blocks are
added by the last kernel itself.  The number of blocks is limited, so the counts are few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable, written_variable
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_wgpu.kernels.kernel import WORKGROUP, Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.wgsl.ops import Expression
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation

ROUND_BITS, PASS_BITS = 4, 8
"""The bits of the digits of a round within a workgroup, and of a pass over memory."""

DIGITS = 1 << PASS_BITS
"""The digits of a pass; each invocation of a workgroup has one of them."""

COUNTERS = WORKGROUP << ROUND_BITS - 1
"""The words of the counters of a round; each has the counts of two digits, in 16 bits each."""

COPIES = COUNTERS // DIGITS
"""The copies of a block's counts: neighbouring invocations add to different ones, as equal digits are frequent."""

MAX_BLOCKS = 512
"""From this many blocks of all rows on, a device is busy."""

MAX_ADDED = 32
"""Up to this many blocks of a row, each block adds the counts of the others itself."""

UINT32 = DTYPES["uint32"]


# ---- keys ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys by which elements of a dtype are compared: unsigned integers.

    Attributes:
        word: the WGSL type of the bits of an element, and of its key.
        bits: the number of bits of a key; higher bits are 0.
        last: a word with the largest key.
        word_of: the word of an element.
        element_of: the element of a word.
        key: the statements of the function from a word, named `word`, to its key.
    """

    word: str
    bits: int
    last: str
    word_of: Expression
    element_of: Expression
    key: str

    @property
    def function(self) -> str:
        """The function from a word to its key."""
        return f"fn sort_key(word: {self.word}) -> {self.word} {{ {self.key} }}"


_FLOAT_KEY = (
    "let ordered = select({word} | {sign}, {ones} ^ {word}, {word} > {sign}); "
    "return select(ordered, {ones}, ({word} & {magnitude}) > {infinity});"
)
"""-0.0 has the key of 0.0, and each NaN the largest key."""


def _bits(type_name: str, word: str) -> tuple[Expression, Expression]:
    return lambda x: f"bitcast<{word}>({x})", lambda x: f"bitcast<{type_name}>({x})"


KEYS = {
    "bool": Keys("u32", 1, "1u", lambda x: f"select(0u, 1u, {x})", lambda x: f"({x} != 0u)", "return word;"),
    "uint32": Keys("u32", 32, "0xffffffffu", str, str, "return word;"),
    "int32": Keys("u32", 32, "0x7fffffffu", *_bits("i32", "u32"), "return word ^ 0x80000000u;"),
    "int64": Keys(
        "u64", 64, "0x7ffffffffffffffflu", *_bits("i64", "u64"), "return word ^ 0x8000000000000000lu;"
    ),
    "float16": Keys(
        "u32",
        16,
        "0x7fffffffu",
        *_bits("f32", "u32"),
        "let half = pack2x16float(vec2<f32>(bitcast<f32>(word), 0.0)) & 0xffffu; "
        + _FLOAT_KEY.format(
            word="half", sign="0x8000u", ones="0xffffu", magnitude="0x7fffu", infinity="0x7c00u"
        ),
    ),
    "float32": Keys(
        "u32",
        32,
        "0x7fffffffu",
        *_bits("f32", "u32"),
        _FLOAT_KEY.format(
            word="word",
            sign="0x80000000u",
            ones="0xffffffffu",
            magnitude="0x7fffffffu",
            infinity="0x7f800000u",
        ),
    ),
    "float64": Keys(
        "u64",
        64,
        "0x7ffffffffffffffflu",
        *_bits("f64", "u64"),
        _FLOAT_KEY.format(
            word="word",
            sign="0x8000000000000000lu",
            ones="0xfffffffffffffffflu",
            magnitude="0x7ffffffffffffffflu",
            infinity="0x7ff0000000000000lu",
        ),
    ),
}
"""The keys of each dtype; float16 is a float32 in a kernel."""


# ---- a tile --------------------------------------------------------------------------------------------------


class Tile:
    """Writes how a workgroup sorts a tile.

    Invocation `l` has the elements from `l * elements` on, as the words k0, k1, ... and, if there is a payload, the
    numbers p0, p1, ...: so they are in the order of their positions, and a round is stable.

    Args:
        writer: writes the kernel.
        keys: of the words.
        has_payload: whether each word has a number, which moves with it.
    """

    def __init__(self, writer: Writer, keys: Keys, has_payload: bool) -> None:
        self.writer = writer
        self.keys = keys
        self.has_payload = has_payload
        self.elements = elements_of(keys)
        self.size = WORKGROUP * self.elements

    def declarations(self) -> list[str]:
        """The workgroup memory and functions.

        Places in memory are permuted, so that neighbouring invocations use different banks both for neighbouring
        words and for words at a distance of `elements`.
        """
        return [
            f"var<workgroup> words: array<{self.keys.word}, {self.size}>;",
            f"var<workgroup> counters: array<u32, {COUNTERS}>;",
            self.keys.function,
            f"fn place(i: u32) -> u32 {{ return (i ^ ((i >> 5u) & {self.elements - 1}u)) & {self.size - 1}u; }}",
        ]

    def start(self) -> None:
        """Declare the elements of the invocation, and its column of the counters."""
        for e in range(self.elements):
            self.writer.line(f"var k{e} = {self.keys.last};")
            if self.has_payload:
                self.writer.line(f"var p{e} = 0u;")
        self.writer.line("let column = l ^ ((l >> 5u) & 7u);")

    def barrier(self) -> None:
        """Wait for the workgroup."""
        self.writer.line("workgroupBarrier();")

    def position(self, e: int) -> str:
        """The position in the tile of the element that an invocation reads from memory, or writes to it, as its e-th:
        that of the next invocation is the next one.
        """
        return f"({e * WORKGROUP}u + l)"

    def own_position(self, e: int) -> str:
        """The position in the tile of the element that an invocation has as its e-th."""
        return f"(l * {self.elements}u + {e}u)"

    def load(self, first: str, end: str, read: Callable[[str], tuple[str, str]]) -> None:
        """Read the tile from memory.

        Args:
            first: the index of its first element.
            end: the number of elements in memory.
            read: writes, for the name of an index, the word and the payload there.
        """
        for e in range(self.elements):
            i = self.writer.named(("load", e), f"{first} + {self.position(e)}")
            name = self.writer.named(("inside", e), f"min({i}, {end} - 1u)")
            word, payload = read(name)
            self.writer.line(f"k{e} = select({self.keys.last}, {word}, {i} < {end});")
            if self.has_payload:
                self.writer.line(f"p{e} = {payload};")
        for e in range(self.elements):
            place = f"place({self.position(e)})"
            self.writer.line(f"words[{place}] = k{e};")
            if self.has_payload:
                self.writer.line(f"counters[{place}] = p{e};")
        self.barrier()
        self.get(self.own_position)
        self.barrier()

    def get(self, position: Callable[[int], str]) -> None:
        """Read the elements at these positions from the workgroup's memory."""
        for e in range(self.elements):
            self.writer.line(f"k{e} = words[place({position(e)})];")
            if self.has_payload:
                self.writer.line(f"p{e} = counters[place({position(e)})];")

    def scan(self, value: str) -> None:
        """Write the sums of a value up to each invocation to the first `WORKGROUP` words."""
        writer, word = self.writer, self.keys.word
        writer.line(f"words[l] = {word}({value});")
        self.barrier()
        s = writer.new_name()
        with writer.block(f"for (var {s} = 0u; {s} < {WORKGROUP.bit_length() - 1}u; {s} += 1u)"):
            writer.line(f"let source = ({s} & 1u) * {WORKGROUP}u;")
            writer.line(f"let other = words[source + ((l - (1u << {s})) & {WORKGROUP - 1}u)];")
            writer.line(
                f"words[{WORKGROUP}u - source + l] = words[source + l] + select({word}(0u), other, (l >> {s}) > 0u);"
            )
            self.barrier()

    def sort(self, digit: Callable[[int], str]) -> None:
        """Sort the tile by a digit of four bits: one round.  All invocations have read the workgroup's memory before.

        Args:
            digit: for a number e the digit of the invocation's e-th element.
        """
        line, halves = self.writer.line, 1 << ROUND_BITS - 1
        for i in range(halves):
            line(f"counters[{i * WORKGROUP}u + column] = 0u;")
        for e in range(self.elements):
            line(f"let d{e} = {digit(e)};")
            line(f"let a{e} = (d{e} & {halves - 1}u) * {WORKGROUP}u + column;")
            line(f"let h{e} = (d{e} >> {ROUND_BITS - 1}u) * 16u;")
            line(f"let c{e} = counters[a{e}];")
            line(f"counters[a{e}] = c{e} + (1u << h{e});")
        self.barrier()
        line("var sum = 0u;")
        for j in range(halves):
            line(f"let b{j} = l * {halves}u + ({j}u ^ ((l >> 2u) & 7u));")
            line(f"let s{j} = sum;")
            line(f"sum += counters[b{j}];")
        self.scan("sum")
        # the digits of the upper halves come after all of the lower ones
        line(f"let before = u32(words[l]) - sum + (u32(words[{WORKGROUP - 1}]) << 16u);")
        for j in range(halves):
            line(f"counters[b{j}] = before + s{j};")
        self.barrier()
        for e in range(self.elements):
            line(f"let r{e} = place(((counters[a{e}] >> h{e}) & 0xffffu) + ((c{e} >> h{e}) & 0xffffu));")
        self.barrier()
        for e in range(self.elements):
            line(f"words[r{e}] = k{e};")
            if self.has_payload:
                line(f"counters[r{e}] = p{e};")
        self.barrier()
        self.get(self.own_position)
        self.barrier()

    def sort_by_key(self, first: str, end: str) -> None:
        """Sort the tile by the bits of the keys from `first` up to `end`."""
        shift = self.writer.new_name()
        with self.writer.block(f"for (var {shift} = {first}; {shift} < {end}; {shift} += {ROUND_BITS}u)"):
            self.sort(lambda e: f"u32(sort_key(k{e}) >> {shift}) & {(1 << ROUND_BITS) - 1}u")


def elements_of(keys: Keys) -> int:
    """The elements of an invocation: a tile and the counters take 16 KiB, which every device has."""
    return 8 if keys.word == "u32" else 4


# ---- passes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows to sort: from where they are read, and to where they are written.

    Attributes:
        count: of rows.
        length: of a row.
        keys: of the elements.
        dtype: of the elements.
        has_payload: whether each element has a number, a uint32.
        word: for a writer, a row and an index in it, the word of the element there.
        payload: likewise its number.
        store: writes a sorted word, and its number, at an index in a row.
        equation: whose kernels these are.
        make_writer: makes a writer of a kernel that also reads these values.
    """

    count: int
    length: int
    keys: Keys
    dtype: DType
    has_payload: bool
    word: Callable[[Writer, IndexExpression, IndexExpression], str]
    payload: Callable[[Writer, IndexExpression, IndexExpression], str]
    store: Callable[[Writer, IndexExpression, IndexExpression, str, str], None]
    equation: Equation
    make_writer: Callable[[Collection[Any]], Writer]


def kernels(rows: Rows) -> list[Kernel]:
    """The kernels that sort rows."""
    found: list[Kernel] = []
    source: _Stored | None = None
    for shift in range(0, rows.keys.bits, PASS_BITS):
        result = _Stored(rows) if shift + PASS_BITS < rows.keys.bits else None
        found += _Pass(rows, shift, source, result).kernels()
        source = result
    return found


class _Stored:
    """Rows in memory between two passes; the methods are as those of `Rows`."""

    def __init__(self, rows: Rows) -> None:
        shape = rows.count, rows.length
        self.words: Any = Value(shape, rows.dtype)
        self.numbers: Any = Value(shape, UINT32)
        self.values = [self.words, self.numbers] if rows.has_payload else [self.words]
        self.rows = rows

    def word(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> str:
        """The word of an element."""
        return self.rows.keys.word_of(writer.value(self.words, self._index(writer, row, i)))

    def payload(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> str:
        """The number of an element."""
        return writer.value(self.numbers, self._index(writer, row, i))

    def store(
        self, writer: Writer, row: IndexExpression, i: IndexExpression, word: str, payload: str
    ) -> None:
        """Write an element."""
        index = self._index(writer, row, i).linear
        writer.store(self.words, [(index, self.rows.keys.element_of(word))])
        if self.rows.has_payload:
            writer.store(self.numbers, [(index, payload)])

    def _index(self, writer: Writer, row: IndexExpression, i: IndexExpression) -> ElementIndex:
        return writer.element(self.words.shape, row.times(self.rows.length) + i)


class _Pass:
    """Writes the kernels of a pass.

    Args:
        rows: to sort.
        shift: the number of lower bits, by which the rows are sorted already.
        source: the rows in memory, after the first pass.
        result: the rows in memory, before the last pass.
    """

    def __init__(self, rows: Rows, shift: int, source: _Stored | None, result: _Stored | None) -> None:
        self.rows = rows
        self.shift = shift
        self.source = source
        self.result = result
        tiles = -(-rows.length // self.tile)
        self.tiles = -(-tiles // max(MAX_BLOCKS // rows.count, 1))  # of a block
        self.blocks = -(-tiles // self.tiles)  # of a row
        self.counts: Any = Value((rows.count, self.blocks, DIGITS), UINT32)
        self.starts: Any = Value(self.counts.shape, UINT32)
        self.totals: Any = Value((rows.count, DIGITS), UINT32)

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return WORKGROUP * elements_of(self.rows.keys)

    @property
    def is_added(self) -> bool:
        """Whether the last kernel adds the counts of the other blocks itself."""
        return self.blocks <= MAX_ADDED

    def kernels(self) -> list[Kernel]:
        """The kernels."""
        return [self._counting(), *([] if self.is_added else [self._adding()]), self._moving()]

    def _writer(self, *values: Any) -> tuple[Writer, IndexExpression, IndexExpression]:
        """A writer, the row of the workgroup, and its block in the row."""
        writer = self.rows.make_writer([*(self.source.values if self.source else ()), *values])
        number = self.rows.count * self.blocks
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(number)}) {{ return; }}")
        return writer, *written_variable("q", number).divided(self.blocks, writer)

    def _count_index(self, row: IndexExpression, block: IndexExpression) -> IndexExpression:
        return (row.times(self.blocks) + block).times(DIGITS) + variable("l", DIGITS)

    def _counting(self) -> Kernel:
        """The kernel that counts the digits of each block."""
        writer, row, block = self._writer()
        length, size = self.rows.length, self.tiles * self.tile
        for j in range(COPIES):
            writer.line(f"atomicStore(&bins[{j * DIGITS}u + l], 0u);")
        writer.line("workgroupBarrier();")
        k = writer.new_name()
        with writer.block(f"for (var {k} = l; {k} < {integer(size)}; {k} += {WORKGROUP}u)"):
            i = writer.new_name()
            writer.line(f"let {i} = {index_text(block.times(size))} + {k};")
            writer.line(f"if ({i} >= {integer(length)}) {{ break; }}")
            digit = self._digit((self.source or self.rows).word(writer, row, variable(i, length)))
            writer.line(f"atomicAdd(&bins[{digit} * {COPIES}u + (l & {COPIES - 1}u)], 1u);")
        writer.line("workgroupBarrier();")
        writer.line("var total = 0u;")
        for j in range(COPIES):
            writer.line(f"total += atomicLoad(&bins[l * {COPIES}u + ((l + {j}u) & {COPIES - 1}u)]);")
        writer.store(self.counts, [(self._count_index(row, block), "total")])
        shared = f"var<workgroup> bins: array<atomic<u32>, {COUNTERS}>;"
        return self._finished(writer, [shared, self.rows.keys.function], self.rows.count * self.blocks)

    def _adding(self) -> Kernel:
        """The kernel that adds, for each digit, the counts of the blocks before each block.

        A workgroup has 16 digits, of each of which 16 invocations add parts.
        """
        parts = 16
        workgroups = self.rows.count * (DIGITS // parts)
        writer = self.rows.make_writer([self.counts])
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(workgroups)}) {{ return; }}")
        row, of_row = written_variable("q", workgroups).divided(DIGITS // parts, writer)
        digit = of_row.times(parts) + writer.index(f"l % {parts}u", parts)
        part = writer.index(f"l / {parts}u", parts)
        each = -(-self.blocks // parts)
        writer.line("var sum = 0u;")

        def over_blocks(step: Callable[[IndexExpression, str], None]) -> None:
            k = writer.new_name()
            with writer.block(f"for (var {k} = 0u; {k} < {integer(each)}; {k} += 1u)"):
                b = writer.new_name()
                writer.line(f"let {b} = {index_text(part.times(each))} + {k};")
                writer.line(f"if ({b} >= {integer(self.blocks)}) {{ break; }}")
                index = (row.times(self.blocks) + variable(b, self.blocks)).times(DIGITS) + digit
                step(index, writer.value(self.counts, writer.element(self.counts.shape, index)))

        over_blocks(lambda index, count: writer.line(f"sum += {count};"))
        writer.line("sums[l] = sum;")
        writer.line("workgroupBarrier();")
        writer.line("sum = 0u;")
        k = writer.new_name()
        with writer.block(f"for (var {k} = l % {parts}u; {k} < l; {k} += {parts}u)"):
            writer.line(f"sum += sums[{k}];")

        def store(index: IndexExpression, count: str) -> None:
            writer.store(self.starts, [(index, "sum")])
            writer.line(f"sum += {count};")

        over_blocks(store)
        with writer.block(f"if ({index_text(part)} == {parts - 1}u)"):
            writer.store(self.totals, [(row.times(DIGITS) + digit, "sum")])
        return self._finished(writer, [f"var<workgroup> sums: array<u32, {WORKGROUP}>;"], workgroups)

    def _moving(self) -> Kernel:
        """The kernel that sorts each tile by the digit, and moves its elements behind those of earlier tiles."""
        rows = self.rows
        known = [self.counts] if self.is_added else [self.starts, self.totals]
        writer, row, block = self._writer(*known)
        tile = Tile(writer, rows.keys, rows.has_payload)
        tile.start()
        self._start_of_digit(writer, row, block)
        tile.scan("total")
        writer.line("start += u32(words[l]) - total;")
        tile.barrier()
        first = writer.new_name()
        start, end = index_text(block.times(self.tiles * tile.size)), self.tiles * tile.size
        t = writer.new_name()
        with writer.block(f"for (var {t} = 0u; {t} < {integer(end)}; {t} += {tile.size}u)"):
            writer.line(f"let {first} = {start} + {t};")
            writer.line(f"if ({first} >= {integer(rows.length)}) {{ break; }}")
            self._sort_tile(tile, row, first)
            self._write_tile(tile, row, first)
        return self._finished(writer, tile.declarations(), rows.count * self.blocks)

    def _start_of_digit(self, writer: Writer, row: IndexExpression, block: IndexExpression) -> None:
        """Write the number of elements with the digit `l` in all blocks, `total`, and in earlier blocks, `start`."""
        if not self.is_added:
            index = writer.element(self.totals.shape, row.times(DIGITS) + variable("l", DIGITS))
            writer.line(f"let total = {writer.value(self.totals, index)};")
            index = writer.element(self.starts.shape, self._count_index(row, block))
            writer.line(f"var start = {writer.value(self.starts, index)};")
            return
        writer.line("var total = 0u;")
        writer.line("var start = 0u;")
        b = writer.new_name()
        with writer.block(f"for (var {b} = 0u; {b} < {integer(self.blocks)}; {b} += 1u)"):
            writer.line(f"if ({b} == {index_text(block)}) {{ start = total; }}")
            index = writer.element(self.counts.shape, self._count_index(row, variable(b, self.blocks)))
            writer.line(f"total += {writer.value(self.counts, index)};")

    def _sort_tile(self, tile: Tile, row: IndexExpression, first: str) -> None:
        source, length = self.source or self.rows, self.rows.length

        def read(i: str) -> tuple[str, str]:
            index = variable(i, length)
            word = source.word(tile.writer, row, index)
            return word, source.payload(tile.writer, row, index) if tile.has_payload else ""

        tile.load(first, integer(length), read)
        end = min(self.shift + PASS_BITS, -(-self.rows.keys.bits // ROUND_BITS) * ROUND_BITS)
        tile.sort_by_key(integer(self.shift), integer(end))

    def _write_tile(self, tile: Tile, row: IndexExpression, first: str) -> None:
        """Write the sorted tile to memory: first the digits' starts in the tile, then the elements."""
        writer, rows, most = tile.writer, self.rows, tile.elements
        count = writer.named("count", f"min({integer(rows.length)} - {first}, {tile.size}u)")
        for e in range(most):
            writer.line(f"let g{e} = {self._digit(f'k{e}')};")
        own, last = [tile.own_position(e) for e in range(most)], tile.size - 1
        for name, e in (("before", 0), ("after", most - 1)):
            neighbour = f"({own[e]} {'+' if e else '-'} 1u) & {last}u"
            writer.line(f"let {name} = {self._digit(f'words[place({neighbour})]')};")
        for e, i in enumerate(own):
            is_first = f"g{e - 1} != g{e}" if e else f"(l == 0u || before != g{e})"
            is_last = f"g{e + 1} != g{e}" if e < most - 1 else f"after != g{e}"
            writer.line(f"let f{e} = {i} < {count} && {is_first};")
            writer.line(f"let t{e} = {i} + 1u == {count} || ({i} + 1u < {count} && {is_last});")
        if tile.has_payload:
            for e in range(most):
                writer.line(f"p{e} = counters[place({tile.position(e)})];")
        tile.barrier()
        writer.line("counters[l] = 0u;")
        writer.line(f"counters[{DIGITS}u + l] = 0u;")
        tile.barrier()
        for e, i in enumerate(own):
            writer.line(f"if (f{e}) {{ counters[g{e}] = {i}; }}")
            writer.line(f"if (t{e}) {{ counters[{DIGITS}u + g{e}] = {i} + 1u; }}")
        tile.barrier()
        writer.line("let begin = counters[l];")
        writer.line("counters[l] = start - begin;")
        writer.line(f"start += counters[{DIGITS}u + l] - begin;")
        tile.barrier()
        for e in range(most):
            with writer.block(f"if ({tile.position(e)} < {count})"):
                word = writer.named(("word", e), f"words[place({tile.position(e)})]")
                to = f"min(counters[{self._digit(word)}] + {tile.position(e)}, {integer(rows.length - 1)})"
                index = writer.index(to, rows.length) if rows.length > 1 else constant_index(0)
                (self.result or rows).store(writer, row, index, word, f"p{e}")
        tile.barrier()

    def _digit(self, word: str) -> str:
        return f"(u32(sort_key({word}) >> {integer(self.shift)}) & {DIGITS - 1}u)"

    def _finished(self, writer: Writer, shared: Sequence[str], workgroups: int) -> Kernel:
        return Kernel(
            kernel_template(writer, WORKGROUP, shared),
            workgroup_grid(workgroups),
            tuple(writer.reads),
            tuple(writer.writes),
            0,  # the passes share texts
            (self.rows.equation,),
            is_proved=writer.is_proved,
        )
