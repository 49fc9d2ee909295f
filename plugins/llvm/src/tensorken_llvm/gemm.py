"""Products of matrices as machine code, for sizes at which BLAS spends much of its time on copies of the operands.

A block of the result stays in vector registers while the columns of the first matrix and the rows of the second one are
multiplied; the structure is that of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
(2008), without its copies of the first matrix.  Each element is the sum of its products in order, by fused
multiply-adds, so results do not depend on how the rows or columns are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder, declared, new_function
from tensorken_llvm.dtypes import BIT, DOUBLE, FLOAT, INT32, INT64, POINTER, index_number
from tensorken_llvm.machine import target_features

ROWS = 6
"""Rows of a block in registers."""

PANEL_BYTES = 2**17
"""The most bytes of the copied columns of the second matrix: they are on the stack, and in the second-level cache."""

MIN_ROWS = 16
MIN_COLUMNS = 16
MIN_INNER = 8
"""Smaller products are left to kernels and BLAS."""

MAX_WORK = 2**28
"""The most multiplications: for more, BLAS copies both operands, which pays off."""

MAX_INNER_ACROSS = 384
"""The largest inner size where neighbours along the inner axis of the first matrix are on different pages."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vector registers.

    Attributes:
        element: the type of an element.
        width: elements of a vector.
        count: vectors along a row of a block in registers.
    """

    element: Any
    width: int
    count: int

    @property
    def type(self) -> Any:
        """The type of a vector."""
        return ir.VectorType(self.element, self.width)

    @property
    def bytes(self) -> int:
        """Of an element."""
        return 4 if self.element is FLOAT else 8

    @property
    def columns(self) -> int:
        """Columns of a block in registers."""
        return self.width * self.count


def vectors_of(dtype: str) -> Vectors | None:
    """The vectors of the CPU for a dtype; None if it has none with fused multiply-adds, or another dtype."""
    elements = {"float32": (FLOAT, 4), "float64": (DOUBLE, 8)}
    if dtype not in elements:
        return None
    element, size = elements[dtype]
    features = target_features()
    if features.get("avx512f"):
        return Vectors(element, 64 // size, 4)
    if features.get("avx2") and features.get("fma"):
        return Vectors(element, 32 // size, 2)
    return None


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices: result (rows x columns) = first (rows x inner) @ second (inner x columns).

    Strides are in elements.  The rows of the result are contiguous; so are the rows or columns of the second matrix.

    Attributes:
        vectors: of the CPU.
        rows: see above.
        columns: see above.
        inner: see above.
        first: the strides of the first matrix along rows and along the inner axis.
        second: the strides of the second matrix along the inner axis and along columns; one of them is 1.
        result: the stride of the result along rows.
    """

    vectors: Vectors
    rows: int
    columns: int
    inner: int
    first: tuple[int, int]
    second: tuple[int, int]
    result: int

    @property
    def depth(self) -> int:
        """The inner size of a copied panel."""
        most = PANEL_BYTES // (self.vectors.columns * self.vectors.bytes)
        parts = -(-self.inner // most)
        width = self.vectors.width
        return -(-self.inner // (parts * width)) * width

    @property
    def is_fast(self) -> bool:
        """Whether machine code is right for the sizes and strides."""
        is_across = self.first[1] * self.vectors.bytes >= 1024 and self.inner > MAX_INNER_ACROSS
        return (
            not is_across
            and self.rows >= MIN_ROWS
            and self.columns >= MIN_COLUMNS
            and self.inner >= MIN_INNER
            and self.rows * self.columns * self.inner <= MAX_WORK
            and 1 in self.second
        )


def write_product(module: ir.Module, product: Product) -> ir.Function:
    """The function that computes a product.

    Its arguments are pointers to both operands and to the result, and whether to add to the result.
    """
    name = f"gemm {product}"
    found = module.globals.get(name)
    return _Writer(module, product, name).write() if found is None else found


def _function(module: ir.Module, name: str, arguments: Sequence[Any], inlining: str) -> ir.Function:
    function = new_function(module, name, arguments)
    function.attributes.add(inlining)
    function.attributes.add("nounwind")
    return function


class _Writer:
    """Writes the functions of a product."""

    def __init__(self, module: ir.Module, product: Product, name: str) -> None:
        self.module, self.product, self.name = module, product, name
        self.vectors = product.vectors

    def write(self) -> ir.Function:
        """The loops over panels of columns, and over blocks of rows."""
        product, vectors = self.product, self.vectors
        function = _function(self.module, self.name, [POINTER, POINTER, POINTER, BIT], "noinline")
        first, second, result, adds = function.args
        for argument in (first, second, result):
            argument.add_attribute("noalias")
        b = Builder(function.append_basic_block("entry"))
        panel = b.alloca(vectors.type, ir.Constant(INT32, product.depth * vectors.count))
        panel.align = 64
        full, rest = divmod(product.columns, vectors.columns)

        def columns(depth_start: Any, depth: Any, start: Any, count: int) -> None:
            self._copy_panel(b, panel, second, depth_start, depth, start, count)
            blocks, last = divmod(product.rows, ROWS)
            a = self._address(b, first, b.mul(depth_start, index_number(product.first[1])))
            y = self._address(b, result, start)
            or_adds = b.or_(adds, b.icmp_unsigned("!=", depth_start, index_number(0)))

            def block(i: Any, rows: int) -> None:
                row = b.mul(i, index_number(ROWS))
                b.call(
                    self._block(rows, count),
                    [
                        self._address(b, a, b.mul(row, index_number(product.first[0]))),
                        panel,
                        self._address(b, y, b.mul(row, index_number(product.result))),
                        depth,
                        or_adds,
                    ],
                )

            if blocks:
                b.loop(blocks, lambda i: block(i, ROWS))
            if last:
                block(index_number(blocks), last)

        def part(p: Any) -> None:
            depth_start = b.mul(p, index_number(product.depth))
            left = b.sub(index_number(product.inner), depth_start)
            whole = index_number(product.depth)
            depth = b.select(b.icmp_unsigned("<", left, whole), left, whole)
            if full:
                b.loop(
                    full,
                    lambda j: columns(
                        depth_start, depth, b.mul(j, index_number(vectors.columns)), vectors.columns
                    ),
                )
            if rest:
                columns(depth_start, depth, index_number(full * vectors.columns), rest)

        b.loop(-(-product.inner // product.depth), part)
        b.ret_void()
        return function

    def _address(self, b: Builder, pointer: Any, offset: Any) -> Any:
        return b.gep(pointer, [offset], source_etype=self.vectors.element)

    def _load(self, b: Builder, pointer: Any, count: int) -> Any:
        """The first elements of a vector; the others are 0."""
        vectors = self.vectors
        if count >= vectors.width:
            return b.load(pointer, align=vectors.bytes, typ=vectors.type)
        suffix = f"v{vectors.width}f{8 * vectors.bytes}"
        types = [POINTER, INT32, ir.VectorType(BIT, vectors.width), vectors.type]
        load = declared(self.module, f"llvm.masked.load.{suffix}.p0", vectors.type, types)
        zeros = ir.Constant(vectors.type, [0.0] * vectors.width)
        return b.call(load, [pointer, ir.Constant(INT32, vectors.bytes), self._mask(count), zeros])

    def _store(self, b: Builder, x: Any, pointer: Any, count: int) -> None:
        vectors = self.vectors
        if count >= vectors.width:
            b.store(x, pointer, align=vectors.bytes)
            return
        suffix = f"v{vectors.width}f{8 * vectors.bytes}"
        types = [vectors.type, POINTER, INT32, ir.VectorType(BIT, vectors.width)]
        store = declared(self.module, f"llvm.masked.store.{suffix}.p0", ir.VoidType(), types)
        b.call(store, [x, pointer, ir.Constant(INT32, vectors.bytes), self._mask(count)])

    def _mask(self, count: int) -> ir.Constant:
        width = self.vectors.width
        return ir.Constant(ir.VectorType(BIT, width), [int(i < count) for i in range(width)])

    def _counts(self, columns: int) -> list[int]:
        """How many elements of each vector along a row are used."""
        width = self.vectors.width
        return [min(width, columns - start) for start in range(0, columns, width)]

    # ---- panels --------------------------------------------------------------------------------------------

    def _copy_panel(
        self, b: Builder, panel: Any, second: Any, depth_start: Any, depth: Any, start: Any, columns: int
    ) -> None:
        """Copy columns of the second matrix, so that the elements of each inner index are contiguous."""
        along_inner, along_columns = self.product.second
        offset = b.add(
            b.mul(depth_start, index_number(along_inner)), b.mul(start, index_number(along_columns))
        )
        source = self._address(b, second, offset)
        if along_columns == 1:
            b.loop(depth, lambda k: self._copy_row(b, panel, source, k, columns))
            return
        width = self.vectors.width
        blocks = b.udiv(depth, index_number(width))
        for v, count in enumerate(self._counts(columns)):
            self._for(b, blocks, lambda p, v=v, count=count: self._transpose(b, panel, source, p, v, count))  # type: ignore[misc]
        done = b.mul(blocks, index_number(width))

        def copy(k: Any) -> None:
            inner = b.add(done, k)
            for v, count in enumerate(self._counts(columns)):
                row: Any = ir.Constant(self.vectors.type, [0.0] * width)
                for i in range(count):
                    offset = b.add(index_number((v * width + i) * along_columns), inner)
                    x = b.load(self._address(b, source, offset), typ=self.vectors.element)
                    row = b.insert_element(row, x, ir.Constant(INT32, i))
                self._store(b, row, self._in_panel(b, panel, inner, v), width)

        self._for(b, b.sub(depth, done), copy)

    def _for(self, b: Builder, count: Any, body: Callable[[Any], None]) -> None:
        """A loop that may have no iterations."""
        with b.if_then(b.icmp_unsigned("!=", count, index_number(0))):
            b.loop(count, body)

    def _in_panel(self, b: Builder, panel: Any, inner: Any, v: int) -> Any:
        offset = b.add(b.mul(inner, index_number(self.vectors.columns)), index_number(v * self.vectors.width))
        return self._address(b, panel, offset)

    def _copy_row(self, b: Builder, panel: Any, source: Any, k: Any, columns: int) -> None:
        offset = b.mul(k, index_number(self.product.second[0]))
        for v, count in enumerate(self._counts(columns)):
            place = b.add(offset, index_number(v * self.vectors.width))
            x = self._load(b, self._address(b, source, place), count)
            self._store(b, x, self._in_panel(b, panel, k, v), self.vectors.width)

    def _transpose(self, b: Builder, panel: Any, source: Any, block: Any, v: int, count: int) -> None:
        """Copy a square of elements: exchange squares of 1, 2, 4, ... elements across the diagonal."""
        width = self.vectors.width
        inner = b.mul(block, index_number(width))
        rows = []
        for i in range(width):
            if i < count:
                offset = b.add(inner, index_number((v * width + i) * self.product.second[1]))
                rows.append(self._load(b, self._address(b, source, offset), width))
            else:
                rows.append(ir.Constant(self.vectors.type, [0.0] * width))
        step = 1
        while step < width:
            low = [c if not c & step else width + c - step for c in range(width)]
            high = [c + step if not c & step else width + c for c in range(width)]
            for i in [i for i in range(width) if not i & step]:
                x, y = rows[i], rows[i + step]
                rows[i], rows[i + step] = [
                    b.shuffle_vector(x, y, ir.Constant(ir.VectorType(INT32, width), order))
                    for order in (low, high)
                ]
            step *= 2
        for i, row in enumerate(rows):
            self._store(b, row, self._in_panel(b, panel, b.add(inner, index_number(i)), v), width)

    # ---- blocks --------------------------------------------------------------------------------------------

    def _block(self, rows: int, columns: int) -> ir.Function:
        """The function that computes some rows and columns of the result, which stay in registers.

        Its arguments are pointers to the rows of the first matrix, to the panel and to the result, the inner size, and
        whether to add to the result.
        """
        name = f"{self.name} {rows} {columns}"
        found = self.module.globals.get(name)
        if found is not None:
            return found
        vectors, product = self.vectors, self.product
        function = _function(self.module, name, [POINTER, POINTER, POINTER, INT64, BIT], "noinline")
        first, panel, result, depth, adds = function.args
        for argument in (first, panel, result):
            argument.add_attribute("noalias")
        counts = self._counts(columns)
        places = [(r, v) for r in range(rows) for v in range(len(counts))]
        entry, load, head, after = [
            function.append_basic_block(x) for x in ("entry", "load", "head", "after")
        ]
        Builder(entry).cbranch(adds, load, head)

        def place(b: Builder, r: int, v: int) -> Any:
            return self._address(b, result, index_number(r * product.result + v * vectors.width))

        b = Builder(load)
        loaded = [self._load(b, place(b, r, v), counts[v]) for r, v in places]
        b.branch(head)
        b = Builder(head)
        k = b.phi(INT64)
        sums = [b.phi(vectors.type) for _ in places]
        zeros = ir.Constant(vectors.type, [0.0] * vectors.width)
        k.add_incoming(index_number(0), entry)
        k.add_incoming(index_number(0), load)
        for total, x in zip(sums, loaded, strict=True):
            total.add_incoming(zeros, entry)
            total.add_incoming(x, load)
        fma = declared(
            self.module, f"llvm.fma.v{vectors.width}f{8 * vectors.bytes}", vectors.type, [vectors.type] * 3
        )
        row = [
            b.load(self._in_panel(b, panel, k, v), align=vectors.bytes, typ=vectors.type)
            for v in range(len(counts))
        ]
        undefined = ir.Constant(vectors.type, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(INT32, vectors.width), [0] * vectors.width)
        new: list[Any] = []
        for r in range(rows):
            offset = b.add(b.mul(k, index_number(product.first[1])), index_number(r * product.first[0]))
            x = b.load(self._address(b, first, offset), typ=vectors.element)
            one = b.insert_element(undefined, x, ir.Constant(INT32, 0))
            repeated = b.shuffle_vector(one, undefined, everywhere)
            new += [b.call(fma, [repeated, row[v], sums[len(new) + v]]) for v in range(len(counts))]
        following = b.add(k, index_number(1), flags=("nuw", "nsw"))
        k.add_incoming(following, head)
        for total, x in zip(sums, new, strict=True):
            total.add_incoming(x, head)
        b.cbranch(b.icmp_unsigned("<", following, depth), head, after)
        b = Builder(after)
        for (r, v), x in zip(places, new, strict=True):
            self._store(b, x, place(b, r, v), counts[v])
        b.ret_void()
        return function
