"""Fourier transforms of powers of two: kernels whose workgroups transform in their own memory.

A workgroup has 1024 elements, four per invocation.  It transforms them by stages of radix 4 and 2, in the order of
T. G. Stockham, "High-speed convolution and correlation", 1966, which needs no permutation of bits.  So a transform of
up to 1024 elements is one kernel, for many rows.  A longer one is a product of radixes of up to 128, with a kernel, a
pass, for each: a workgroup transforms neighbouring columns of a matrix of `radix` rows, and so reads and writes runs
of neighbours.  float32 is computed with twice its digits, and rounded once by each pass.

The first pass computes the operands from values in memory, see `prologues`, and the last one more values from the
results, see `epilogues`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, written_variable
from tensorken_wgpu.kernels.epilogues import run_epilogue
from tensorken_wgpu.kernels.kernel import Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.kernels.roots import PARTS, Table, table_of
from tensorken_wgpu.wgsl.dtypes import Value as HasShape, size_of
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.language.shapes import Shape
    from tensorken_core.program.program import Equation, Variable

ELEMENTS = 1024
"""The complex numbers of a workgroup, which take 16 KiB: no device has less workgroup memory."""

MAX_RADIX = 128
"""The largest radix of a pass of a long transform: a workgroup has at least 8 columns, 32 neighbouring bytes."""

MIN_LENGTH = 4
"""Shorter transforms are sums of two elements, which are fused with other ops."""

MIN_FUSED = 2**14
"""From this many elements on, elementwise ops before and after a transform are fused into its kernels.

Small transforms share kernels, as a driver takes long to compile them: Mesa's software driver 0.1 to 0.3 s.
"""

OPS = frozenset({"fft"})
"""The ops of these kernels."""

_TYPES = {"float32": "vec4<f32>", "float64": "vec2<f64>"}
"""The types of complex numbers in a kernel; see `functions.complex_numbers`."""

_SUFFIXES = {"float32": "", "float64": "_f64"}
"""Of the functions of complex numbers."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Transforms of columns: of the elements at distance n / radix.

    Attributes:
        n: the length of the whole transform.
        radix: the length of a column.
        done: the product of the radixes of earlier passes.
    """

    n: int
    radix: int
    done: int

    @property
    def columns(self) -> int:
        """The columns of a row."""
        return self.n // self.radix

    @property
    def is_whole(self) -> bool:
        """Whether a column is a whole row."""
        return self.radix == self.n

    @property
    def rest(self) -> int:
        """The product of the radixes of later passes."""
        return self.n // (self.radix * self.done)


def has_kernels(operand: HasShape, target: Target) -> bool:
    """Whether the transform of operands of this shape has these kernels; if not, the body of the op runs."""
    n = operand.shape[-1]
    return (
        0 not in operand.shape
        and n >= MIN_LENGTH
        and n.bit_count() == 1
        and 4 * len(target.windows(size_of(operand))) < target.bindings
    )


def is_fused(equation: Equation) -> bool:
    """Whether an equation is a transform into whose kernels other ops are fused."""
    return equation.op.name in OPS and prod(equation.operands[0].shape) >= MIN_FUSED


def radixes(n: int) -> list[int]:
    """The radixes of the passes, the largest first.

    >>> radixes(1024), radixes(2**17)
    ([1024], [64, 64, 32])
    """
    if n <= ELEMENTS:
        return [n]
    bits, most = n.bit_length() - 1, MAX_RADIX.bit_length() - 1
    count = -(-bits // most)
    return [1 << (bits + count - 1 - i) // count for i in range(count)]


def kernels(
    equation: Equation,
    producers: Mapping[Variable, Equation],
    sources: Collection[Variable],
    target: Target,
) -> list[Kernel]:
    """The kernels of a transform: one for each pass.

    Args:
        equation: the transform.
        producers: for each computed value its equation.
        sources: the values in memory from which its operands are computed.
        target: the device.
    """
    results: list[Any] = list(equation.results)
    operands: list[Any] = list(equation.operands)
    epilogues = list(getattr(equation, "epilogues", ((), ())))
    if equation.params[0]:  # the inverse is the transform with both parts exchanged, of operands and results
        results.reverse()
        operands.reverse()
        epilogues.reverse()
    shape, dtype = operands[0].shape, operands[0].dtype
    n, table = shape[-1], table_of(shape[-1], dtype)
    found, done = [], 1
    for radix in radixes(n):
        step = Pass(n, radix, done)
        done *= radix
        is_last = done == n
        written: list[Any] = results if is_last else [Value(shape, dtype) for _ in results]
        after = epilogues if is_last else [(), ()]
        writer = _PassWriter(
            step, operands, written, after, table, Writer(producers, sources, frozenset(), target=target)
        )
        found.append(writer.kernel(equation))
        operands, sources = written, tuple(written)
    return found


class _PassWriter:
    """Writes the kernel of a pass.

    Args:
        step: the pass.
        operands: the real and imaginary parts.
        results: likewise.
        epilogues: for each result the ops after the transform.
        table: of the roots.
        writer: writes the kernel.
    """

    def __init__(
        self,
        step: Pass,
        operands: Sequence[Any],
        results: Sequence[Any],
        epilogues: Sequence[Sequence[Equation]],
        table: Table,
        writer: Writer,
    ) -> None:
        self.step = step
        self.operands = operands
        self.results = results
        self.epilogues = epilogues
        self.table = table
        self.writer = writer
        self.shape, dtype = operands[0].shape, operands[0].dtype.name
        self.type, self.suffix, self.parts = _TYPES[dtype], _SUFFIXES[dtype], PARTS[dtype]
        self.quarter = step.radix // 4
        self.width = ELEMENTS // step.radix
        self.rows = prod(self.shape[:-1])

    def kernel(self, equation: Equation) -> Kernel:
        """The kernel, of a part of an equation."""
        writer, step = self.writer, self.step
        stages = _stages(step.radix)
        writer.line("let block = w.x + w.y * n.x;")
        for q in range(4):
            writer.line(f"var z{q} = {self.type}();")
        for name in ("b", "c", "row", "column"):
            writer.line(f"var {name} = 0u;")
        self._choose_columns(across=not step.is_whole)
        self._load()
        for i, (radix, done) in enumerate(stages):
            is_last = i == len(stages) - 1
            if is_last and step.done == 1 and not step.is_whole:
                self._choose_columns(across=False)  # the results of a column are neighbours
            if i:
                for q in range(4):
                    writer.line(f"z{q} = columns[{self._shared(f'b + {q * self.quarter}u')}];")
            self._transform(radix)
            if is_last:
                self._store()
            else:
                self._exchange(radix, done, has_read=i > 0)
        shared = f"var<workgroup> columns: array<{self.type}, {ELEMENTS}>;"
        text = kernel_template(writer, ELEMENTS // 4, [shared] if len(stages) > 1 else [])
        workgroups = workgroup_grid(-(-self.rows * step.columns // self.width))
        work = prod(self.shape)
        reads, writes = tuple(writer.reads), tuple(writer.writes)
        return Kernel(text, workgroups, reads, writes, work, (equation,), is_proved=writer.is_proved)

    def _choose_columns(self, across: bool) -> None:
        """Write the column c of the workgroup that an invocation has, and its index b within a quarter of the column.

        Args:
            across: whether neighbouring invocations have neighbouring columns.
        """
        writer, width = self.writer, self.width
        first, size, second = ("c", width, "b") if across else ("b", self.quarter, "c")
        writer.line(f"{first} = l % {size}u;")
        writer.line(f"{second} = l / {size}u;")
        if self.step.is_whole:
            writer.line(f"row = block * {width}u + c;")
        else:
            per_row = integer(self.step.columns // width)
            writer.line(f"row = block / {per_row};")
            writer.line(f"column = (block % {per_row}) * {width}u + c;")

    def _shared(self, element: str) -> str:
        """The position of an element of the column in the memory of the workgroup."""
        return (
            f"c * {self.step.radix}u + {element}"
            if self.step.is_whole
            else f"({element}) * {self.width}u + c"
        )

    def _load(self) -> None:
        """Write the first stage's reads from memory: the elements b, and those one, two and three quarters further."""
        writer = self.writer
        with writer.block(f"if (row < {integer(self.rows)})"):
            for q in range(4):
                position = f"(b + {q * self.quarter}u) * {integer(self.step.columns)} + column"
                index = writer.index(position, self.step.n)
                parts = [writer.value(v, self._index(v.shape, index)) for v in self.operands]
                writer.line(f"z{q} = complex_number{self.suffix}({', '.join(parts)});")

    def _index(self, shape: Shape, position: IndexExpression) -> ElementIndex:
        """The index of the element of the row at a position."""
        outer = self.writer.element(shape[:-1], written_variable("row", self.rows)).indices
        return ElementIndex(shape, self.writer, [*outer, position])

    def _transform(self, radix: int) -> None:
        """Write the transform of length 4 of the invocation's elements, or two of length 2."""
        line, suffix = self.writer.line, self.suffix
        with self.writer.block(""):
            for name, a, b in (
                ("s0", "z0", "z2"),
                ("d0", "z0", "-z2"),
                ("s1", "z1", "z3"),
                ("d1", "z1", "-z3"),
            ):
                line(f"let {name} = complex_sum{suffix}({a}, {b});")
            if radix == 2:
                results = ["s0", "s1", "d0", "d1"]
            else:
                line(f"let t = complex_turn{suffix}(d1);")
                pairs = ("s0", "s1"), ("d0", "t"), ("s0", "-s1"), ("d0", "-t")
                results = [f"complex_sum{suffix}({a}, {b})" for a, b in pairs]
            for q, result in enumerate(results):
                line(f"z{q} = {result};")

    def _exchange(self, radix: int, done: int, has_read: bool) -> None:
        """Write a stage's results, times roots, to the memory of the workgroup, where the next stage reads them."""
        writer = self.writer
        if has_read:
            writer.line("workgroupBarrier();")
        j, d = (f"(b / {done}u)", f"b % {done}u") if done > 1 else ("b", "0u")
        step = self.table.coarse * done // self.step.radix
        for q in range(radix):
            if q:
                self._multiply(q, self._root(f"{j} * {q * step}u"))
            writer.line(f"columns[{self._shared(f'({j} * {radix}u + {q}u) * {done}u + {d}')}] = z{q};")
        writer.line("workgroupBarrier();")

    def _root(self, index: str) -> str:
        """The root at an index of the table."""
        writer = self.writer
        table: Any = self.table
        name = writer.reads.setdefault(table, f"x{len(writer.reads)}")
        start = writer.named(("start", index), f"({index}) * {self.parts}u")
        return f"{self.type}({', '.join([f'{name}[{start} + {i}u]' for i in range(self.parts)])})"

    def _multiply(self, q: int, number: str) -> None:
        self.writer.line(f"z{q} = complex_product{self.suffix}(z{q}, {number});")

    def _store(self) -> None:
        """Write the last stage's results to memory, times roots if there are later passes."""
        writer, step, suffix = self.writer, self.step, self.suffix
        j, d = (
            ("column", "0u")
            if step.done == 1
            else (f"column / {integer(step.done)}", f"column % {integer(step.done)}")
        )
        with writer.block(f"if (row < {integer(self.rows)})"):
            for q in range(4):
                k = writer.named(("k", q), f"b + {q * self.quarter}u")
                position = k
                if not step.is_whole:
                    start = writer.named("start", f"({j}) * {integer(step.radix * step.done)} + {d}")
                    position = f"{start} + {k} * {integer(step.done)}"
                if step.rest > 1:
                    turn = writer.named(("turn", q), f"({j}) * {k} * {integer(step.done)}")
                    fine = integer(self.table.fine)
                    high = writer.named(("high", q), self._root(f"{turn} / {fine}"))
                    low = self._root(f"{turn} % {fine} + {self.table.coarse}u")
                    product = f"complex_product{suffix}({high}, {low})"
                    self._multiply(q, f"complex_sum{suffix}({high}, {product})")
                parts = writer.named(("parts", q), f"complex_parts{suffix}(z{q})")
                index = self._index(self.shape, writer.index(position, step.n))
                for v, part, epilogue in zip(self.results, "xy", self.epilogues, strict=True):
                    element, moved = run_epilogue(writer, epilogue, f"{parts}.{part}", index)
                    writer.store(v, [(moved.linear, element)])


def _stages(radix: int) -> list[tuple[int, int]]:
    """The stages of a workgroup: for each its radix, and the product of those of earlier ones.

    >>> _stages(32)
    [(4, 1), (4, 4), (2, 16)]
    """
    found, done = [], 1
    while done < radix:
        found.append((min(4, radix // done), done))
        done *= 4
    return found
