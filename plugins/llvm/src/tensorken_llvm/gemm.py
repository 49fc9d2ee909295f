"""Products of matrices as machine code.

A block of the result stays in vector registers while some columns of the first matrix and rows of the second one are
multiplied; the structure is that of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
(2008).  An operand is copied only if its elements are too far apart for the caches.  Each element is the sum of its
products in order, by fused multiply-adds, so results do not depend on how the rows or columns are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder, declared, new_function
from tensorken_llvm.dtypes import BIT, DOUBLE, FLOAT, INT32, INT64, POINTER, index_number
from tensorken_llvm.machine import target_features

MIN_ROWS = 4
MIN_COLUMNS = 8
MIN_INNER = 4
"""Smaller products are left to kernels and BLAS."""

MAX_DEPTH = 512
"""The largest inner size of a panel."""

MAX_FAR_DEPTH = 128
"""The same where the second matrix is large and read in place: its rows may share few sets of the caches."""

COPIED_BYTES = 2**10
"""The most bytes of a row of a copied panel of the first matrix: the panel stays in the first-level cache."""

FIRST_BYTES = 2**17
SECOND_BYTES = 2**19
"""The most bytes of copied panels of each matrix: they are on the stack, and stay in the second-level cache."""

NEAR_FIRST = 2**17
NEAR_SECOND = 2**16
"""Matrices whose rows along the inner axis are spread over at most so many bytes are read in place."""

MAX_READS = 3
"""A second matrix that is read at most so often is read in place."""

AHEAD = 16
COPIED_AHEAD = 8
"""How many inner indices ahead rows of the second matrix, and rows to copy, are fetched into the cache."""

PREFETCHED = 2**15
"""Matrices spread over at most so many bytes are not fetched ahead."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vector registers.

    Attributes:
        element: the type of an element.
        width: elements of a vector.
        rows: of a block in registers.
        count: vectors along a row of such a block.
    """

    element: Any
    width: int
    rows: int
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

    def rounded(self, count: int) -> int:
        """The elements of the vectors with so many elements."""
        return -(-count // self.width) * self.width


def vectors_of(dtype: str) -> Vectors | None:
    """The vectors of the CPU for a dtype; None if it has none with fused multiply-adds, or another dtype."""
    elements = {"float32": (FLOAT, 4), "float64": (DOUBLE, 8)}
    if dtype not in elements:
        return None
    element, size = elements[dtype]
    features = target_features()
    if features.get("avx512f"):
        return Vectors(element, 64 // size, 14, 2)
    if features.get("avx2") and features.get("fma"):
        return Vectors(element, 32 // size, 6, 2)
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
        """The inner size of the panels."""
        vectors = self.vectors
        most = MAX_FAR_DEPTH if self._is_second_far and not self.copies_second else MAX_DEPTH
        if self.copies_first:
            most = min(most, COPIED_BYTES // vectors.bytes)
        parts = -(-self.inner // most)
        return -(-self.inner // (parts * vectors.width)) * vectors.width

    @property
    def block_rows(self) -> int:
        """Rows of a block in registers."""
        return -(-self.rows // -(-self.rows // self.vectors.rows))

    @property
    def copies_first(self) -> bool:
        """Whether panels of the first matrix are copied."""
        is_far = self.inner * self.first[1] * self.vectors.bytes > NEAR_FIRST
        return self.first[1] != 1 and is_far and self.columns > self.vectors.columns

    @property
    def copies_second(self) -> bool:
        """Whether panels of the second matrix are copied."""
        return self.second[1] != 1 or (self._is_second_far and self.rows > MAX_READS * self.vectors.rows)

    @property
    def is_panel(self) -> bool:
        """Whether the second matrix has the layout of one panel, which is read where it is."""
        width = self.vectors.columns
        return self.second == (width, 1) and self.columns <= width

    @property
    def _is_second_far(self) -> bool:
        return not self.is_panel and self.inner * self.second[0] * self.vectors.bytes > NEAR_SECOND

    @property
    def is_fast(self) -> bool:
        """Whether machine code is right for the sizes and strides."""
        return (
            self.rows >= MIN_ROWS
            and self.columns >= MIN_COLUMNS
            and self.inner >= MIN_INNER
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


def _opaque(b: Builder, pointer: Any) -> Any:
    """The same pointer; LLVM does not know from what it is computed, so it does not compute it again in loops."""
    return b.call(ir.InlineAsm(ir.FunctionType(POINTER, [POINTER]), "", "=r,0"), [pointer])


def _for(b: Builder, count: Any, body: Callable[[Any], None]) -> None:
    """A loop that may have no iterations."""
    with b.if_then(b.icmp_unsigned("!=", count, index_number(0))):
        b.loop(count, body)


class _Panels:
    """The panels of an operand: so many rows of the first matrix, or columns of the second one, that are read together.

    Panels are copied in groups, so that the elements of each inner index are contiguous, or read in place.

    Args:
        writer: of the product.
        b: writes the instructions.
        count: of the rows or columns.
        size: of a panel.
        strides: of the matrix along its rows or columns, and along the inner axis.
        group: the most panels of a group.
        copies: whether the panels are copied.

    Attributes:
        size_of_copies: the bytes of the panels of a group, if they are copied, else 0.
        memory: for them, which the caller provides.
    """

    memory: Any

    def __init__(
        self,
        writer: _Writer,
        b: Builder,
        count: int,
        size: int,
        strides: tuple[int, int],
        group: int,
        copies: bool,
    ) -> None:
        self.writer, self.b, self.size, self.strides, self.copies = writer, b, size, strides, copies
        self.count, self.last = divmod(count, size)
        total = -(-count // size)
        self.groups = -(-total // group)
        self.group = -(-total // self.groups)
        vectors = writer.vectors
        self.elements = writer.product.depth * vectors.rounded(size)
        self.size_of_copies = self.group * self.elements * vectors.bytes if copies else 0

    def each_group(self, matrix: Any, start: Any, depth: Any, body: Callable[[], None]) -> None:
        """Run a body for each group of panels; the inner indices are so many from a start."""
        b, address = self.b, self.writer.address

        def group(g: Any) -> None:
            self.begin = b.mul(g, index_number(self.group))
            self.source = address(b, matrix, b.mul(start, index_number(self.strides[1])))
            self.is_last = b.icmp_unsigned("==", g, index_number(self.groups - 1))
            left, most = b.sub(index_number(self.count), self.begin), index_number(self.group)
            self.full = b.select(b.icmp_unsigned("<", left, most), left, most)
            if self.copies and self.count:
                with b.if_then(b.icmp_unsigned("!=", self.full, index_number(0))):
                    self._copy(index_number(0), self.size, depth, self.full)
            if self.copies and self.last:
                with b.if_then(self.is_last):
                    self._copy(self.full, self.last, depth, index_number(1))
            body()

        b.loop(self.groups, group)

    def each(self, body: Callable[[Any, Any, int], None]) -> None:
        """Run a body for each panel of the group, which gets its first index, its address, and its size."""
        b = self.b

        def panel(j: Any, size: int) -> None:
            body(
                b.mul(b.add(self.begin, j), index_number(self.size)),
                self._copied(j) if self.copies else self._original(j),
                size,
            )

        if self.count:
            _for(b, self.full, lambda j: panel(j, self.size))
        if self.last:
            with b.if_then(self.is_last):
                panel(self.full, self.last)

    def _copy(self, first: Any, size: int, depth: Any, count: Any) -> None:
        """Copy so many panels of a size, the first of which is given."""
        arguments = [self._copied(first), self._original(first), depth, count]
        self.writer.copy(self.b, size, self.strides, arguments)

    def _original(self, j: Any) -> Any:
        """Where a panel of the group is in its matrix."""
        index = self.b.mul(self.b.add(self.begin, j), index_number(self.size * self.strides[0]))
        return self.writer.address(self.b, self.source, index)

    def _copied(self, j: Any) -> Any:
        """Where a panel of the group is copied to."""
        return self.writer.address(self.b, self.memory, self.b.mul(j, index_number(self.elements)))


class _Writer:
    """Writes the functions of a product."""

    def __init__(self, module: ir.Module, product: Product, name: str) -> None:
        self.module, self.product, self.name = module, product, name
        self.vectors = product.vectors

    def write(self) -> ir.Function:
        """The function of the product."""
        function = _function(self.module, self.name, [POINTER, POINTER, POINTER, BIT], "noinline")
        for argument in function.args[:3]:
            argument.add_attribute("noalias")
        b = Builder(function.append_basic_block("entry"))
        rows, columns = self._panels(b)
        with ExitStack() as stack:
            for panels in (rows, columns):
                if panels.copies:
                    panels.memory = stack.enter_context(b.scratch(panels.size_of_copies))
            self._write_loops(b, function.args, rows, columns)
        b.ret_void()
        return function

    def _write_loops(self, b: Builder, arguments: Sequence[Any], rows: _Panels, columns: _Panels) -> None:
        """Write the loops over parts of the inner axis, groups of columns and of rows, and blocks."""
        product, (first, second, result, adds) = self.product, arguments

        def part(p: Any) -> None:
            start = b.mul(p, index_number(product.depth))
            left, most = b.sub(index_number(product.inner), start), index_number(product.depth)
            depth = b.select(b.icmp_unsigned("<", left, most), left, most)
            or_adds = b.or_(adds, b.icmp_unsigned("!=", p, index_number(0)))

            def blocks(row: Any, x: Any, m: int) -> None:
                def block(column: Any, c: Any, n: int) -> None:
                    offset = b.add(b.mul(row, index_number(product.result)), column)
                    self.block(b, m, n, [x, c, self.address(b, result, offset), depth, or_adds])

                columns.each(block)

            def groups_of_rows() -> None:
                rows.each_group(first, start, depth, lambda: rows.each(blocks))

            columns.each_group(second, start, depth, groups_of_rows)

        b.loop(-(-product.inner // product.depth), part)

    def _panels(self, b: Builder) -> tuple[_Panels, _Panels]:
        """The panels of both operands: those that are copied together, all rows, or one panel of columns."""
        product, vectors = self.product, self.vectors
        height, width = product.block_rows, vectors.columns

        def fitting(size: int, most: int) -> int:
            return max(1, most // (product.depth * vectors.rounded(size) * vectors.bytes))

        group = fitting(height, FIRST_BYTES) if product.copies_first else product.rows
        rows = _Panels(self, b, product.rows, height, product.first, group, product.copies_first)
        group = fitting(width, SECOND_BYTES) if product.copies_second else 1
        second = product.second[::-1]
        return rows, _Panels(self, b, product.columns, width, second, group, product.copies_second)

    def address(self, b: Builder, pointer: Any, offset: Any) -> Any:
        """So many elements after a pointer."""
        return b.gep(pointer, [offset], source_etype=self.vectors.element)

    def load(self, b: Builder, pointer: Any, count: int) -> Any:
        """The first elements of a vector; the others are 0."""
        vectors = self.vectors
        if count >= vectors.width:
            return b.load(pointer, align=vectors.bytes, typ=vectors.type)
        suffix = f"v{vectors.width}f{8 * vectors.bytes}"
        types = [POINTER, INT32, ir.VectorType(BIT, vectors.width), vectors.type]
        load = declared(self.module, f"llvm.masked.load.{suffix}.p0", vectors.type, types)
        zeros = ir.Constant(vectors.type, [0.0] * vectors.width)
        return b.call(load, [pointer, ir.Constant(INT32, vectors.bytes), self._mask(count), zeros])

    def prefetch(self, b: Builder, pointer: Any) -> None:
        """Fetch memory that is read soon into the cache; the address need not be valid."""
        types = [POINTER, INT32, INT32, INT32]
        prefetch = declared(self.module, "llvm.prefetch.p0", ir.VoidType(), types)
        b.call(prefetch, [pointer, *[ir.Constant(INT32, x) for x in (0, 3, 1)]])

    def store(self, b: Builder, x: Any, pointer: Any, count: int) -> None:
        """Store the first elements of a vector."""
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

    def counts(self, columns: int) -> list[int]:
        """How many elements of each vector along a row are used."""
        width = self.vectors.width
        return [min(width, columns - start) for start in range(0, columns, width)]

    def transposed(self, b: Builder, rows: list[Any]) -> list[Any]:
        """The columns of a square: squares of 1, 2, 4, ... elements are exchanged across the diagonal."""
        width, step = self.vectors.width, 1
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
        return rows

    # ---- panels --------------------------------------------------------------------------------------------

    def copy(self, b: Builder, size: int, strides: tuple[int, int], arguments: Sequence[Any]) -> None:
        """Copy panels, so that the elements of each inner index are contiguous.

        Args:
            b: writes the call.
            size: of a panel: its rows or columns.
            strides: of the matrix along these, and along the inner axis.
            arguments: pointers to the copies and to the matrix, the inner size, and the number of panels.
        """
        contiguous = strides.index(1) if 1 in strides else None
        sizes = [*strides, self.product.depth]
        b.call(self._copy_function(size, contiguous), [*arguments, *map(index_number, sizes)])

    def _copy_function(self, size: int, contiguous: int | None) -> ir.Function:
        """The function that copies panels.  Its further arguments are the strides, and the inner size of the copies.

        Args:
            size: of a panel.
            contiguous: which stride is 1, if any.
        """
        vectors = self.vectors
        name = f"copy {vectors} {size} {contiguous}"
        found = self.module.globals.get(name)
        if found is not None:
            return found
        function = _function(self.module, name, [POINTER, POINTER, *[INT64] * 5], "noinline")
        target, source, depth, count, along, along_inner, between = function.args
        for argument in (target, source):
            argument.add_attribute("noalias")
        if contiguous is not None:
            along, along_inner = [
                index_number(1) if i == contiguous else x for i, x in enumerate((along, along_inner))
            ]
        b = Builder(function.append_basic_block("entry"))
        width, counts = vectors.width, self.counts(size)

        def original(j: Any, k: Any, i: Any) -> Any:
            offset = b.mul(b.add(b.mul(j, index_number(size)), i), along)
            return self.address(b, source, b.add(offset, b.mul(k, along_inner)))

        def copied(j: Any, k: Any, i: Any) -> Any:
            row = b.add(b.mul(j, between), k)
            return self.address(b, target, b.add(b.mul(row, index_number(vectors.rounded(size))), i))

        def copy_row(j: Any, k: Any) -> None:
            for v, used in enumerate(counts):
                i = index_number(v * width)
                self.prefetch(b, original(j, b.add(k, index_number(COPIED_AHEAD)), i))
                self.store(b, self.load(b, original(j, k, i), used), copied(j, k, i), used)

        def copy_square(j: Any, k: Any, v: int) -> None:
            rows: list[Any] = [ir.Constant(vectors.type, ir.Undefined)] * width
            for i in range(counts[v]):
                rows[i] = self.load(b, original(j, k, index_number(v * width + i)), width)
            for i, row in enumerate(self.transposed(b, rows)):
                at = copied(j, b.add(k, index_number(i)), index_number(v * width))
                self.store(b, row, at, counts[v])

        def copy_element(j: Any, k: Any, i: Any) -> None:
            b.store(b.load(original(j, k, i), typ=vectors.element), copied(j, k, i))

        def copy_panel(j: Any) -> None:
            done = index_number(0)
            if contiguous == 1:
                squares = b.udiv(depth, index_number(width))
                for v in range(len(counts)):
                    _for(b, squares, lambda q, v=v: copy_square(j, b.mul(q, index_number(width)), v))  # type: ignore[misc]
                done = b.mul(squares, index_number(width))
            _for(b, b.sub(depth, done), lambda k: b.loop(size, lambda i: copy_element(j, b.add(done, k), i)))

        if contiguous == 0:
            b.loop(depth, lambda k: b.loop(count, lambda j: copy_row(j, k)))
        else:
            b.loop(count, copy_panel)
        b.ret_void()
        return function

    # ---- blocks --------------------------------------------------------------------------------------------

    def block(self, b: Builder, rows: int, columns: int, arguments: Sequence[Any]) -> None:
        """Compute some rows and columns of the result, which stay in registers.

        Args:
            b: writes the call.
            rows: so many.
            columns: so many.
            arguments: pointers to the rows of the first matrix, to the panel and to the result, the inner size, and
                whether to add to the result.
        """
        vectors, product = self.vectors, self.product
        first = (1, vectors.rounded(rows)) if product.copies_first else product.first
        second = vectors.rounded(columns) if product.copies_second else product.second[0]
        is_far = not product.copies_second and product.inner * second * vectors.bytes > PREFETCHED
        function = self._block_function(rows, columns, first[0] == 1, is_far)
        b.call(function, [*arguments, *map(index_number, (*first, second, product.result))])

    def _block_function(self, rows: int, columns: int, is_column: bool, is_far: bool) -> ir.Function:
        """The function that computes a block.

        Its further arguments are the strides of the first matrix, of the panel, and of the result along its rows.

        Args:
            rows: of the block.
            columns: of the block.
            is_column: whether the elements of the first matrix for an inner index are contiguous.
            is_far: whether rows of the panel are fetched into the cache before they are read.
        """
        vectors = self.vectors
        name = f"block {vectors} {rows} {columns} {is_column} {is_far}"
        found = self.module.globals.get(name)
        if found is not None:
            return found
        types = [POINTER, POINTER, POINTER, INT64, BIT, *[INT64] * 4]
        function = _function(self.module, name, types, "noinline")
        first, panel, result, depth, adds, along_rows, along_inner, between, stride = function.args
        for argument in (first, panel, result):
            argument.add_attribute("noalias")
        counts = self.counts(columns)
        places = [(r, v) for r in range(rows) for v in range(len(counts))]
        entry, load, head, after = [
            function.append_basic_block(x) for x in ("entry", "load", "head", "after")
        ]
        b = Builder(entry)
        if is_column:
            rows_at = [self.address(b, first, index_number(r)) for r in range(rows)]
        else:
            offsets = [b.mul(along_rows, index_number(r)) for r in range(rows)]
            rows_at = [_opaque(b, self.address(b, first, offset)) for offset in offsets]
        ahead = b.mul(between, index_number(AHEAD)) if is_far else None
        b.cbranch(adds, load, head)

        def place(b: Builder, r: int, v: int) -> Any:
            offset = b.add(b.mul(stride, index_number(r)), index_number(v * vectors.width))
            return self.address(b, result, offset)

        b = Builder(load)
        loaded = [self.load(b, place(b, r, v), counts[v]) for r, v in places]
        b.branch(head)
        b = Builder(head)
        k, along, at = b.phi(INT64), b.phi(INT64), b.phi(POINTER)
        sums = [b.phi(vectors.type) for _ in places]
        phis = (k, along, at, *sums)
        zeros = ir.Constant(vectors.type, [0.0] * vectors.width)
        for block, values in ((entry, [zeros] * len(sums)), (load, loaded)):
            for phi, x in zip(phis, (index_number(0), index_number(0), panel, *values), strict=True):
                phi.add_incoming(x, block)
        fma = declared(
            self.module, f"llvm.fma.v{vectors.width}f{8 * vectors.bytes}", vectors.type, [vectors.type] * 3
        )

        def in_row(pointer: Any, v: int) -> Any:
            return self.address(b, pointer, index_number(v * vectors.width))

        row = [self.load(b, in_row(at, v), count) for v, count in enumerate(counts)]
        if ahead is not None:
            for v in range(len(counts)):
                self.prefetch(b, in_row(self.address(b, at, ahead), v))
        undefined = ir.Constant(vectors.type, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(INT32, vectors.width), [0] * vectors.width)
        new: list[Any] = []
        for r in range(rows):
            x = b.load(self.address(b, rows_at[r], along), typ=vectors.element)
            one = b.insert_element(undefined, x, ir.Constant(INT32, 0))
            repeated = b.shuffle_vector(one, undefined, everywhere)
            new += [b.call(fma, [repeated, row[v], sums[len(new) + v]]) for v in range(len(counts))]
        following = b.add(k, index_number(1), flags=("nuw", "nsw"))
        next_ = (following, b.add(along, along_inner), self.address(b, at, between))
        for phi, x in zip(phis, (*next_, *new), strict=True):
            phi.add_incoming(x, head)
        b.cbranch(b.icmp_unsigned("<", following, depth), head, after)
        b = Builder(after)
        for (r, v), x in zip(places, new, strict=True):
            self.store(b, x, place(b, r, v), counts[v])
        b.ret_void()
        return function
