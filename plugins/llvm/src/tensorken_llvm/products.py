"""Products of matrices: calls of BLAS, or machine code of ours (gemm.py), that read their operands where they lie.

A movement op before a product only changes the strides with which BLAS reads the value before that op.  Axes that
BLAS has no arguments for are loops around its calls; sums over several axes are added up call by call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken.kernels.element_indices import INDICES_BEFORE, ElementIndex
from tensorken.kernels.elements import INLINE
from tensorken.kernels.index_expressions import IndexExpression, variable
from tensorken.kernels.keeping import unmoved
from tensorken.kernels.products import Axis as ProductAxis, axes_of
from tensorken.kernels.rows import rows_of
from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken_core.language.op import OPS, run
from tensorken_core.program.program import Variable
from tensorken_llvm.blas import GEMM, MIN_THREADED, NOT_TRANSPOSED, ROW_MAJOR, TRANSPOSED, Blas
from tensorken_llvm.builder import Builder, new_function
from tensorken_llvm.dtypes import BIT, INT64, POINTER, STORED, index_number
from tensorken_llvm.gemm import Product, vectors_of, write_product
from tensorken_llvm.packing import packed_size, write_packed_product, write_packing
from tensorken_llvm.routines import Routine
from tensorken_llvm.threads import Split, thread_count, write_split

if TYPE_CHECKING:
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.program.program import Equation, Program

PERMUTE = OPS["permute"]

MIN_WORK = 1024
"""Products of matrices with fewer multiplications are kernels, which also compute other values."""

MIN_SPLIT = 2**21
"""Products with at least this many multiplications are divided among threads: some 50 microseconds."""

MIN_CHUNK = 2**20
"""The least multiplications that a thread takes."""

MIN_PART = 2**23
"""The least multiplications of a part of one product: the other operand may be copied for each part."""

MIN_AXIS = 128
"""The least rows or columns of a part."""

MAX_PARTS = 16
"""The most parts of one product."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value in memory as an operand of a product.

    Attributes:
        value: in memory.
        offset: the row-major index of its first element that is read.
        strides: between elements that are neighbours along each axis of the product.
    """

    value: Variable
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a product, or several that are stored as one.

    Attributes:
        size: along it.
        first: the stride of the first operand along it.
        second: the stride of the second operand.
        result: the stride of the result.
    """

    size: int = 1
    first: int = 0
    second: int = 0
    result: int = 0

    def swapped(self) -> Axis:
        """The axis for the operands in the other order."""
        return Axis(self.size, self.second, self.first, self.result)

    def merged(self, inner: Axis) -> Axis | None:
        """This axis and the following one as one; None if they are not stored as one."""
        outer = self.first, self.second, self.result
        if outer != tuple([inner.size * stride for stride in (inner.first, inner.second, inner.result)]):
            return None
        return Axis(self.size * inner.size, inner.first, inner.second, inner.result)


@dataclass(frozen=True, slots=True)
class Matrix:
    """How BLAS reads a matrix.

    Attributes:
        is_transposed: whether its columns are contiguous in memory, and not its rows.
        stride: between neighbouring columns or rows.
    """

    is_transposed: bool
    stride: int


def _matrix(rows: int, row_stride: int, columns: int, column_stride: int) -> Matrix | None:
    """A matrix with these sizes and strides; None if BLAS cannot read it."""
    if (column_stride == 1 or columns == 1) and (row_stride >= columns or rows == 1):
        return Matrix(False, max(row_stride, columns))
    if (row_stride == 1 or rows == 1) and (column_stride >= rows or columns == 1):
        return Matrix(True, max(column_stride, rows))
    return None


@dataclass(frozen=True, slots=True)
class MatrixProduct(Routine):
    """Products of matrices that BLAS computes: first @ second, whose rows are contiguous in memory.

    Attributes:
        blas: the library.
        result: the value that is computed.
        first: the operand with the rows.
        second: the operand with the columns.
        rows: of the first operand and the result.
        columns: of the second operand and the result.
        inner: the axis that is summed by BLAS.
        batch: axes with one product for each index.
        summed: axes whose products are added up.
        is_own: whether it is machine code of ours.
        is_packed: whether the second operand is a copy with the layout of `write_packing`.
    """

    blas: Blas
    result: Variable
    first: Operand
    second: Operand
    rows: Axis
    columns: Axis
    inner: Axis
    batch: tuple[Axis, ...]
    summed: tuple[Axis, ...]
    is_own: bool = False
    is_packed: bool = False

    @property
    def reads(self) -> tuple[Variable, ...]:
        """The values in memory that it reads."""
        return tuple(dict.fromkeys([self.first.value, self.second.value]))

    @property
    def writes(self) -> tuple[Variable, ...]:
        """The result."""
        return (self.result,)

    @property
    def routine(self) -> str:
        """The routine of BLAS; for machine code of ours "gemm"."""
        return "gemm" if self.is_own else GEMM[self.result.dtype.name]

    @property
    def work(self) -> int:
        """The multiplications of one call."""
        return self.rows.size * self.columns.size * self.inner.size

    @property
    def largest(self) -> int:
        """The most elements of an operand or the result: no size or stride is larger."""
        return max([prod(v.shape) for v in (*self.reads, self.result)])

    def swapped(self) -> MatrixProduct:
        """The transposed product, which writes the same elements."""
        batch, summed = [tuple([axis.swapped() for axis in axes]) for axes in (self.batch, self.summed)]
        rows, columns, inner = self.columns.swapped(), self.rows.swapped(), self.inner.swapped()
        return MatrixProduct(
            self.blas, self.result, self.second, self.first, rows, columns, inner, batch, summed
        )

    def is_possible(self) -> bool:
        """Whether BLAS can read and write these matrices."""
        first, second, result = self._matrices()
        return first is not None and second is not None and result is not None and not result.is_transposed

    def _matrices(self) -> tuple[Matrix | None, Matrix | None, Matrix | None]:
        """The operands and the result, as BLAS reads and writes them."""
        rows, columns, inner = self.rows, self.columns, self.inner
        return (
            _matrix(rows.size, rows.first, inner.size, inner.first),
            _matrix(inner.size, inner.second, columns.size, columns.second),
            _matrix(rows.size, rows.result, columns.size, columns.result),
        )

    def write(self, module: ir.Module) -> ir.Function:
        """The function that computes it, whose arguments are pointers to the values that it reads, and its result."""
        values = [*self.reads, self.result]
        name = module.get_unique_name("product")
        function = new_function(module, name, [POINTER] * len(values))
        b = Builder(function.append_basic_block("entry"))
        is_guarded = not self.is_own and self.work >= MIN_THREADED
        with self.blas.one_thread(b) if is_guarded else nullcontext():
            self._write_parts(module, name, function, b)
        b.ret_void()
        return function

    def _write_parts(self, module: ir.Module, name: str, function: ir.Function, b: Builder) -> None:
        split = self.split()
        if split is None:
            self._write_calls(b, function.args, None)
        else:
            part = new_function(module, f"{name}.part", [*[x.type for x in function.args], INT64, INT64])
            inner = Builder(part.append_basic_block("entry"))
            self._write_calls(inner, part.args[:-2], part.args[-2:])
            inner.ret_void()
            write_split(module, f"{name}.parts", part, function.args, split, b)

    def _write_calls(self, b: Builder, arguments: Sequence[Any], bounds: Sequence[Any] | None) -> None:
        """Write calls of BLAS.

        Args:
            b: writes the instructions.
            arguments: pointers to the values.
            bounds: the first, and the one after the last, of the indices along the split axis; None for all.
        """
        pointers = dict(zip([*self.reads, self.result], arguments, strict=True))
        element = STORED[self.result.dtype.name]

        def address(operand: Operand, offsets: Sequence[tuple[Any, int]]) -> Any:
            total: Any = index_number(operand.offset)
            for i, stride in offsets:
                total = b.add(total, b.mul(i, index_number(stride)))
            return b.gep(pointers[operand.value], [total], source_etype=element)

        def call(batch: Sequence[Any], summed: Sequence[Any]) -> None:
            axes = [*zip(batch, self._loops(), strict=True), *zip(summed, self.summed, strict=True)]
            addresses = [
                address(self.first, [(i, axis.first) for i, axis in axes]),
                address(self.second, [(i, axis.second) for i, axis in axes]),
                address(Operand(self.result, 0, ()), [(i, axis.result) for i, axis in axes]),
            ]
            adds: Any = ir.Constant(BIT, 0)
            for i in summed:
                adds = b.or_(adds, b.icmp_signed("!=", i, index_number(0)))
            if self.is_own:
                for_packing = write_packed_product if self.is_packed else write_product
                b.call(for_packing(b.module, self._own()), [*addresses, adds])
            else:
                self._call(b, addresses, adds)

        _write_loops(
            b,
            self._loops(),
            lambda batch: _write_loops(b, self.summed, lambda summed: call(batch, summed)),
            bounds=bounds,
        )

    # ---- threads -------------------------------------------------------------------------------------------

    def divided(self) -> MatrixProduct:
        """The product as several of parts of its columns or rows, which threads can compute; itself if it is small.

        The parts depend on the sizes alone.  BLAS may round their elements in another way than those of the product.
        Machine code of ours copies the second matrix more often than the first one, so its columns are divided.
        """
        operands = ("columns", "second"), ("rows", "first")
        for name, operand in operands if self.is_own else operands[::-1]:
            axis: Axis = getattr(self, name)
            most = min(MAX_PARTS, axis.size // MIN_AXIS, self.work // MIN_PART)
            count = max([n for n in range(1, most + 1) if axis.size % n == 0], default=1)
            if count > 1 and prod([x.size for x in self.batch]) < count:
                size = axis.size // count
                strides = {operand: size * getattr(axis, operand), "result": size * axis.result}
                changes: Any = {
                    name: replace(axis, size=size),
                    "batch": (Axis(count, **strides), *self.batch),
                }
                return replace(self, **changes)
        return self

    def split(self) -> Split | None:
        """How the first loop is divided among threads; None if the products are too few or too small."""
        total = self.work * prod([axis.size for axis in (*self.batch, *self.summed)])
        count = self._loops()[0].size if self.batch else 1
        if total < MIN_SPLIT or count == 1:
            return None
        return Split(count, -(-count * MIN_CHUNK // total))

    def _loops(self) -> tuple[Axis, ...]:
        """The batch axes, the largest first."""
        return tuple(sorted(self.batch, key=lambda axis: -axis.size))

    # ---- calls ---------------------------------------------------------------------------------------------

    def is_faster_here(self) -> bool:
        """Whether machine code of ours is faster than BLAS."""
        vectors = vectors_of(self.result.dtype.name)
        return vectors is not None and self.columns.result == 1 and self._own().is_fast

    def _own(self) -> Product:
        """What machine code of ours computes."""
        vectors = vectors_of(self.result.dtype.name)
        assert vectors is not None
        return Product(
            vectors=vectors,
            rows=self.rows.size,
            columns=self.columns.size,
            inner=self.inner.size,
            first=(self.rows.first, self.inner.first),
            second=(self.inner.second, self.columns.second),
            result=self.rows.result,
        )

    def packed(self) -> MatrixProduct | None:
        """The product with a packed second operand; None if it is not one matrix that machine code of ours reads."""
        is_one = not self.summed and all([axis.second == 0 for axis in self.batch])
        if not self.is_own or self.is_packed or not is_one or self.first.value is self.second.value:
            return None
        size = packed_size(self._own())
        second = Operand(Variable((size,), self.result.dtype), 0, ())
        return replace(self, second=second, is_packed=True)

    def write_packing(self, module: ir.Module) -> ir.Function:
        """The function that packs the second operand: its arguments are pointers to that value, and to the memory."""
        name = module.get_unique_name("pack")
        function = new_function(module, name, [POINTER, POINTER])
        b = Builder(function.append_basic_block("entry"))
        source, target = function.args
        element = STORED[self.result.dtype.name]
        first = b.gep(source, [index_number(self.second.offset)], source_etype=element)
        b.call(write_packing(module, self._own()), [first, target])
        b.ret_void()
        return function

    def _call(self, b: Builder, pointers: Sequence[Any], adds: Any) -> None:
        """Write a call of BLAS, which adds to the result or replaces it."""
        first, second, result = self._matrices()
        assert first and second and result
        a, c, y = pointers
        element = STORED[self.result.dtype.name]
        beta = b.select(adds, ir.Constant(element, 1.0), ir.Constant(element, 0.0))
        flags = [ROW_MAJOR, *[TRANSPOSED if x.is_transposed else NOT_TRANSPOSED for x in (first, second)]]
        sizes = self.rows.size, self.columns.size, self.inner.size
        operands = [1.0, a, first.stride, c, second.stride, beta, y, result.stride]
        self.blas.call_gemm(b, self.result.dtype.name, [*flags, *sizes, *operands])


def _write_loops(
    b: Builder,
    axes: Sequence[Axis],
    body: Callable[[Sequence[Any]], None],
    indices: Sequence[Any] = (),
    bounds: Sequence[Any] | None = None,
) -> None:
    """Write a loop for each axis; the body gets an index for each.

    Args:
        b: writes the instructions.
        axes: the outermost first.
        body: of the loops.
        indices: of loops around these.
        bounds: the first, and the one after the last, of the indices of the first loop; None for all.
    """
    if len(indices) == len(axes):
        body(indices)
        return
    first, count = bounds or (None, axes[len(indices)].size)
    b.loop(count, lambda i: _write_loops(b, axes, body, (*indices, i)), first=first)


# ---- layouts -----------------------------------------------------------------------------------------------


def matrix_products(program: Program, blas: Blas) -> dict[Equation, MatrixProduct]:
    """The products of a program that BLAS computes."""
    producers = {v: e for e in program.equations for v in e.results}
    found: dict[Equation, MatrixProduct] = {}
    for e in program.equations:
        product = product_of(e, blas, producers)
        if product is not None:
            found[e] = product.divided() if thread_count() > 1 else product
    return found


def product_of(
    equation: Equation, blas: Blas, producers: Mapping[Variable, Equation] = MappingProxyType({})
) -> MatrixProduct | None:
    """The product of matrices that an op is; None if it is another op, or BLAS cannot read or write the layouts.

    Args:
        equation: the op.
        blas: the library.
        producers: of values before the operands.
    """
    product = _matrix_product(equation, producers, blas) if is_product(equation) else None
    if product is None or product.largest >= 2 ** (blas.integer.width - 1):
        return None
    return replace(product, is_own=product.is_faster_here())


def with_matrices_last(program: Program, backend: RawTensor[Any], blas: Blas) -> Program:
    """The program with moved operands and results of contractions whose layouts BLAS cannot read or write.

    Where no value before the new movement op has a layout for BLAS, a kernel copies the operand.
    """
    producers = {v: e for e in program.equations for v in e.results}
    moved = {e for e in program.equations if is_product(e) and _matrix_product(e, producers, blas) is None}
    if not moved:
        return program
    writer = EquationWriter(backend)
    known: dict[Variable, Variable] = {}
    for old, e in zip(program.equations, writer.equations_of(program, known), strict=True):
        if old in moved:
            ys = [_with_matrices_last(writer, e)]
        else:
            found = run(writer, e.op, e.operands, e.params)
            ys = [found] if e.op.results == 1 else found
        known.update(zip(old.results, ys, strict=True))
    return writer.program_from(program, [known.get(v, v) for v in program.outputs])


def _with_matrices_last(writer: EquationWriter, equation: Equation) -> Variable:
    """A contraction of operands whose axes are in the order batch, rows, columns and inner."""
    dimensions = ["" if axis is None else axis.dimension for axis in axes_of(equation)]
    ranks = ["", "batch", "rows", "columns", "inner"]
    order = sorted(range(len(dimensions)), key=lambda i: ranks.index(dimensions[i]))
    operands = [writer.interpret(PERMUTE, [x], (tuple(order),)) for x in equation.operands]
    summed = tuple([i for i, axis in enumerate(order) if axis in equation.params[0]])
    y = writer.interpret(equation.op, operands, (summed,))
    inverse = tuple([order.index(i) for i in range(len(order))])
    found: Variable = writer.interpret(PERMUTE, [y], (inverse,))
    return found


def is_product(equation: Equation) -> bool:
    """Whether an op is a contraction that BLAS computes if it can read the operands."""
    if equation.op.name != "fused_multiply_add" or is_kernel(equation):
        return False
    inner = [axis for axis in axes_of(equation) if axis is not None and axis.dimension == "inner"]
    return all([all(axis.present) for axis in inner])


def is_kernel(equation: Equation) -> bool:
    """Whether a kernel computes a contraction as fast as a library.

    It does for a matrix and a vector, for small matrices, and for the dtypes without a routine, which numpy multiplies
    element by element.
    """
    axes = [axis for axis in axes_of(equation) if axis is not None]
    is_empty = not all([axis.size for axis in axes])
    if equation.results[0].dtype.name not in GEMM or rows_of(equation).owner is None or is_empty:
        return True
    return prod([axis.size for axis in axes if axis.dimension != "batch"]) < MIN_WORK


def _matrix_product(
    equation: Equation, producers: Mapping[Variable, Equation], blas: Blas
) -> MatrixProduct | None:
    """The largest product of matrices that a contraction repeats; None if BLAS cannot read or write the layouts."""
    axes = axes_of(equation)
    first, second = [[*_operands(axes, x, producers)] for x in equation.operands]
    for a, b in itertools.product(first, second):
        found = [*_products_of(blas, equation.results[0], axes, a, b)]
        if found:
            return max(found, key=lambda x: x.work)
    return None


def _operands(
    axes: Sequence[ProductAxis | None], x: Variable, producers: Mapping[Variable, Equation]
) -> Iterator[Operand]:
    """The values that the elements of an operand are read from with strides: before movement ops first."""
    sizes = {f"axis {i}": 1 if axis is None else axis.size for i, axis in enumerate(axes)}
    indices = [variable(name, size) for name, size in sizes.items()]
    element = ElementIndex([*sizes.values()], _QUOTIENTS, indices).before_expand(x.shape)
    found: list[Operand] = []
    while True:
        index = element.linear
        if index.terms.keys() <= sizes.keys():
            found.append(Operand(x, index.constant, tuple([index.terms.get(name, 0) for name in sizes])))
        equation = producers.get(x)
        if equation is None or equation.op.name not in INDICES_BEFORE:
            break
        (before,) = equation.operands
        if equation.op.name == "crop" and not is_in_memory(before, producers):
            break
        element = INDICES_BEFORE[equation.op.name](element, before.shape, *equation.params)
        x = before
    if hasattr(x, "value"):  # a number, which is not in memory
        return
    yield from reversed(found)


def is_in_memory(x: Variable, producers: Mapping[Variable, Equation]) -> bool:
    """Whether all elements of a value are in memory, whoever reads them."""
    equation = producers.get(unmoved(x, producers))
    return equation is None or not (equation.op.elementwise or equation.op.name in INLINE)


class _Quotients:
    """Names quotients and other indices that are no sums of the variables of axes."""

    def divide(self, dividend: IndexExpression, operator: str, divisor: int, size: int) -> IndexExpression:
        """See `IndexTarget`."""
        return variable(f"({dividend}) {operator} {divisor}", size)

    def bounded(self, index: IndexExpression, size: int) -> IndexExpression:
        """See `IndexTarget`."""
        return variable(f"({index}) below {size}", size)


_QUOTIENTS = _Quotients()


def _products_of(
    blas: Blas, result: Variable, axes: Sequence[ProductAxis | None], first: Operand, second: Operand
) -> Iterator[MatrixProduct]:
    """The products of matrices that BLAS can compute, for each choice of rows, columns and inner axis."""
    strides = [prod(result.shape[i + 1 :]) if n > 1 else 0 for i, n in enumerate(result.shape)]
    dimensions: dict[str, list[Axis]] = {name: [] for name in ("batch", "rows", "columns", "inner")}
    for axis, *found in zip(axes, first.strides, second.strides, strides, strict=True):
        if axis is not None:
            dimensions[axis.dimension].append(Axis(axis.size, *found))
    batch, rows, columns, inner = [_merged(found) for found in dimensions.values()]
    no_axis = [Axis()]
    for m, n, k in itertools.product(rows or no_axis, columns or no_axis, inner or no_axis):
        loops = (*batch, *[x for x in (*rows, *columns) if x is not m and x is not n])
        summed = tuple([x for x in inner if x is not k])
        product = MatrixProduct(blas, result, first, second, m, n, k, loops, summed)
        swapped = product.swapped()
        if product.is_possible() or swapped.is_possible():
            yield product if product.is_possible() else swapped


def _merged(axes: Sequence[Axis]) -> list[Axis]:
    """The axes, of which those that are stored as one are merged; the outermost first."""
    found: list[Axis] = []
    for axis in sorted(axes, key=lambda x: (x.result, x.first, x.second), reverse=True):
        merged = found[-1].merged(axis) if found else None
        if merged is None:
            found.append(axis)
        else:
            found[-1] = merged
    return found
