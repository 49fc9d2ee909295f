"""Convolutions as machine code: products of the kernels and the windows, without a copy of all windows.

The windows of some positions are copied to a panel of the product, which stays in the cache (gemm.py).  Padding, and
zeros between the elements of the input, are ops before the convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken import Tensor
from tensorken.ops.convolution import padded, windows_of
from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken.programs.passes.inner_programs import with_inner_programs
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor
from tensorken_llvm.builder import Builder, declared, new_function
from tensorken_llvm.dtypes import BIT, INT32, INT64, POINTER, index_number
from tensorken_llvm.gemm import Product, Vectors, vectors_of, write_product
from tensorken_llvm.routines import EquationRoutine
from tensorken_llvm.threads import Split, write_split

if TYPE_CHECKING:
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Equation, Program, Variable

CONVOLUTION = OPS["convolution"]

PANEL_BYTES = 2**17
"""The most bytes of a panel: it is on the stack, and in the second-level cache."""

MAX_WORK = 2**28
"""The most multiplications for an image: for more, the products of the body copy both operands, which pays off."""

MIN_INNER = 8
"""The least inner size of the product."""

MAX_INPUTS = 4
"""The most channels of the input for each output: for more, the body multiplies elements instead of windows."""

MAX_PIECES = 4
"""The most rows of windows that the elements of a vector are from; for more, elements are copied one by one."""

MIN_SPLIT = 2**21
"""Convolutions with at least this many multiplications are divided among threads: some 50 microseconds."""

MIN_CHUNK = 2**20
"""The least multiplications that a thread takes."""

MIN_PARTS = 16
"""Images of a small batch are divided, so that there are so many parts."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The sizes of a convolution without padding.

    Attributes:
        vectors: of the CPU.
        count: of images.
        groups: of channels.
        outputs: of a group.
        inputs: channels of a group.
        sizes: of the input, along the spatial axes.
        kernel: the same for the kernel.
        windows: their number along each spatial axis.
        strides: the distances between windows.
        dilation: the distances between the elements of a window.
    """

    vectors: Vectors
    count: int
    groups: int
    outputs: int
    inputs: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    windows: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def columns(self) -> int:
        """The windows of an image: the columns of the product."""
        return prod(self.windows)

    @property
    def elements(self) -> int:
        """The elements of a window in one channel."""
        return prod(self.kernel)

    @property
    def work(self) -> int:
        """The multiplications for one image and group."""
        return self.outputs * self.columns * self.inputs * self.elements

    @property
    def channels(self) -> int:
        """The channels whose windows are in a panel at the same time; 0 if one is too large."""
        most = PANEL_BYTES // (self.vectors.columns * self.vectors.bytes * self.elements)
        return 0 if most == 0 else -(-self.inputs // -(-self.inputs // most))

    @property
    def panels(self) -> int:
        """The number of panels of an image; the last one may have less columns."""
        return -(-self.columns // self.vectors.columns)

    @property
    def parts(self) -> int:
        """How many parts an image and group is divided into for threads."""
        return min(-(-MIN_PARTS // (self.count * self.groups)), self.panels)

    @property
    def plane_strides(self) -> tuple[int, ...]:
        """The distances between neighbours along the spatial axes of the input."""
        return tuple([prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes))])

    @property
    def pieces(self) -> int:
        """The most rows of windows that the elements of one vector are from."""
        width, row = self.vectors.width, self.windows[-1]
        return 1 if row % width == 0 else (width - 2) // row + 2

    @property
    def is_fast(self) -> bool:
        """Whether this code is faster than the products and sums that the body of the op has."""
        return (
            self.elements > 1
            and self.channels > 0
            and self.inputs <= MAX_INPUTS * self.outputs
            and self.inputs * self.elements >= MIN_INNER
            and 4 * self.columns >= 3 * self.vectors.columns
            and self.work <= MAX_WORK
        )


def geometry_of(equation: Equation) -> Geometry | None:
    """The sizes of a convolution after its padding; None if its dtype or its sizes are not for this code."""
    x, kernel = equation.operands
    strides, padding, input_dilation, dilation, groups = equation.params
    vectors = vectors_of(x.dtype.name)
    if vectors is None or len(x.shape) < 3 or 0 in (*x.shape, *kernel.shape):
        return None
    windows = windows_of(x.shape[2:], kernel.shape[2:], strides, padding, input_dilation, dilation)
    sizes = x.shape[2:]
    if _has_padding(equation.params):
        sizes = tuple(
            [
                (count - 1) * stride + (k - 1) * step + 1
                for count, stride, k, step in zip(windows, strides, kernel.shape[2:], dilation, strict=True)
            ]
        )
    return Geometry(
        vectors=vectors,
        count=x.shape[0],
        groups=groups,
        outputs=kernel.shape[0] // groups,
        inputs=kernel.shape[1],
        sizes=sizes,
        kernel=kernel.shape[2:],
        windows=windows,
        strides=strides,
        dilation=dilation,
    )


def _has_padding(params: tuple[Any, ...]) -> bool:
    """Whether there are zeros around or between the elements of the input, or some are cut."""
    _, padding, input_dilation, _, _ = params
    return any([pads != (0, 0) for pads in padding]) or any([step != 1 for step in input_dilation])


# ---- programs ----------------------------------------------------------------------------------------------


def with_convolutions_lowered(program: Program, backend: RawTensor[Any]) -> Program:
    """The program with convolutions without padding that this code computes, and the bodies of all others."""
    program = with_inner_programs(program, lambda inner: with_convolutions_lowered(inner, backend))
    if CONVOLUTION not in program.ops:
        return program
    writer = _Lowering(backend)
    known: dict[Variable, Variable] = {}
    for e in writer.equations_of(program, known):
        ys = run(writer, e.op, e.operands, e.params)
        known.update(zip(e.results, (ys,) if e.op.results == 1 else ys, strict=True))
    return writer.program_from(program, [known.get(v, v) for v in program.outputs])


class _Lowering(EquationWriter):
    """Writes padding before convolutions that this code computes, and the bodies of all others."""

    def interpret(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...]) -> Any:
        if op is not CONVOLUTION:
            return super().interpret(op, operands, params)
        assert self.source is not None
        geometry = geometry_of(self.source)
        if geometry is None or not geometry.is_fast:
            return RawTensor.interpret(self, op, operands, params)
        x, kernel = operands
        if _has_padding(params):
            strides, padding, input_dilation, dilation, groups = params
            image = Tensor(self, x, x.shape, x.dtype)
            facts = geometry.kernel, geometry.windows, strides, padding, input_dilation, dilation
            x = padded(image, *facts).representation
            rank = len(geometry.sizes)
            params = strides, ((0, 0),) * rank, (1,) * rank, dilation, groups
        return super().interpret(op, [x, kernel], params)


@dataclass(frozen=True, slots=True, eq=False)
class Convolution(EquationRoutine):
    """A convolution as machine code.

    Attributes:
        geometry: its sizes.
    """

    geometry: Geometry

    @property
    def work(self) -> int:
        """The multiplications."""
        return self.geometry.count * self.geometry.groups * self.geometry.work

    def write(self, module: ir.Module) -> ir.Function:
        """The function, whose arguments are pointers to the input, the kernel and the result."""
        return write_convolution(module, self.geometry)


def is_convolution(equation: Equation) -> bool:
    """Whether an op is a convolution; `with_convolutions_lowered` has left those that this code computes."""
    return equation.op is CONVOLUTION


def convolutions(program: Program) -> dict[Equation, Convolution]:
    """The convolutions of a program."""
    found: dict[Equation, Convolution] = {}
    for e in program.equations:
        geometry = geometry_of(e) if is_convolution(e) else None
        if geometry is not None:
            found[e] = Convolution(e, geometry)
    return found


# ---- code --------------------------------------------------------------------------------------------------


def write_convolution(module: ir.Module, geometry: Geometry) -> ir.Function:
    """The function that computes a convolution; its arguments are pointers to the input, the kernel and the result."""
    name = f"convolution {geometry}"
    found = module.globals.get(name)
    return _Writer(module, geometry, name).write_all() if found is None else found


def _separate(module: ir.Module, name: str, arguments: Sequence[Any]) -> ir.Function:
    function = new_function(module, name, arguments)
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    return function


class _Writer:
    """Writes the functions of a convolution."""

    def __init__(self, module: ir.Module, geometry: Geometry, name: str) -> None:
        self.module, self.geometry, self.name = module, geometry, name
        self.vectors = geometry.vectors

    def write_all(self) -> ir.Function:
        """The loop over the parts of all images and groups, which is divided among threads."""
        geometry = self.geometry
        function = new_function(self.module, self.name, [POINTER] * 3)
        count = geometry.count * geometry.groups * geometry.parts
        total = geometry.count * geometry.groups * geometry.work
        part = new_function(self.module, f"{self.name} part", [*[POINTER] * 3, INT64, INT64])
        b = Builder(part.append_basic_block("entry"))
        *pointers, begin, end = part.args
        of_image = self._write_image()
        b.loop(end, lambda i: self._call_image(b, of_image, pointers, i), first=begin)
        b.ret_void()
        b = Builder(function.append_basic_block("entry"))
        if total < MIN_SPLIT or count == 1:
            b.call(part, [*function.args, index_number(0), index_number(count)])
        else:
            split = Split(count, -(-count * MIN_CHUNK // total))
            write_split(self.module, f"{self.name} parts", part, function.args, split, b)
        b.ret_void()
        return function

    def _call_image(self, b: Builder, of_image: ir.Function, pointers: Sequence[Any], i: Any) -> None:
        """Write the call for one part of an image and group."""
        geometry, (x, kernel, y) = self.geometry, pointers
        image = b.udiv(i, index_number(geometry.parts))
        group = b.urem(image, index_number(geometry.groups))
        part = b.urem(i, index_number(geometry.parts))
        panels = -(-geometry.panels // geometry.parts)
        first = b.mul(part, index_number(panels))
        last = b.intrinsic("umin", b.add(first, index_number(panels)), index_number(geometry.panels))
        plane, inner = prod(geometry.sizes), geometry.inputs * geometry.elements
        arguments = [
            self._address(b, x, b.mul(image, index_number(geometry.inputs * plane))),
            self._address(b, kernel, b.mul(group, index_number(geometry.outputs * inner))),
            self._address(b, y, b.mul(image, index_number(geometry.outputs * geometry.columns))),
        ]
        with b.if_then(b.icmp_unsigned("<", first, last)):
            b.call(of_image, [*arguments, first, last])

    def _write_image(self) -> ir.Function:
        """The function of some panels of an image and group: the loop over parts of the channels."""
        geometry, vectors = self.geometry, self.vectors
        types = [*[POINTER] * 3, INT64, INT64]
        function = _separate(self.module, f"{self.name} image", types)
        for argument in function.args[:3]:
            argument.add_attribute("noalias")
        b = Builder(function.append_basic_block("entry"))
        depth = geometry.channels * geometry.elements
        full, rest = divmod(geometry.inputs, geometry.channels)
        with b.scratch(depth * vectors.columns * vectors.bytes) as panel:
            if full:
                b.loop(full, lambda p: self._write_part(b, function.args, panel, p, geometry.channels))
            if rest:
                self._write_part(b, function.args, panel, index_number(full), rest)
        b.ret_void()
        return function

    def _write_part(self, b: Builder, arguments: Sequence[Any], panel: Any, p: Any, channels: int) -> None:
        """Write the loop over panels for some channels.

        Args:
            b: writes the instructions.
            arguments: of the function of an image.
            panel: memory for it.
            p: the index of these channels, in a register.
            channels: their number.
        """
        geometry, vectors = self.geometry, self.vectors
        x, kernel, y, first, last = arguments
        before = b.mul(p, index_number(geometry.channels))
        source = self._address(b, x, b.mul(before, index_number(prod(geometry.sizes))))
        weights = self._address(b, kernel, b.mul(before, index_number(geometry.elements)))
        adds = b.icmp_unsigned("!=", p, index_number(0))

        def columns(j: Any, count: int) -> None:
            start = b.mul(j, index_number(vectors.columns))
            b.call(self._copying(channels, count), [panel, source, start])
            product = Product(
                vectors=vectors,
                rows=geometry.outputs,
                columns=count,
                inner=channels * geometry.elements,
                first=(geometry.inputs * geometry.elements, 1),
                second=(vectors.columns, 1),
                result=geometry.columns,
            )
            b.call(write_product(self.module, product), [weights, panel, self._address(b, y, start), adds])

        full, rest = divmod(geometry.columns, vectors.columns)

        def one(j: Any) -> None:
            if not full or not rest:
                columns(j, vectors.columns if full else rest)
                return
            with b.if_else(b.icmp_unsigned("<", j, index_number(full))) as (then, otherwise):
                with then:
                    columns(j, vectors.columns)
                with otherwise:
                    columns(j, rest)

        b.loop(last, one, first=first)

    def _address(self, b: Builder, pointer: Any, offset: Any) -> Any:
        return b.gep(pointer, [offset], source_etype=self.vectors.element)

    # ---- panels --------------------------------------------------------------------------------------------

    def _copying(self, channels: int, count: int) -> ir.Function:
        """The function that copies the elements of some windows; those at one place of the windows are contiguous.

        Its arguments are pointers to the panel and to the first channel, and the first window.
        """
        name = f"{self.name} panel {channels} {count}"
        found = self.module.globals.get(name)
        if found is not None:
            return found
        function = _separate(self.module, name, [POINTER, POINTER, INT64])
        geometry, (panel, source, start) = self.geometry, function.args
        for argument in (panel, source):
            argument.add_attribute("noalias")
        b = Builder(function.append_basic_block("entry"))
        is_dense = geometry.strides[-1] == 1 and geometry.pieces <= MAX_PIECES
        copy = (self._vectors if is_dense else self._single)(b, panel, source, start, count)

        def channel(c: Any) -> None:
            offset = b.mul(c, index_number(prod(geometry.sizes)))
            self._at_elements(b, offset, b.mul(c, index_number(geometry.elements)), 0, copy)

        b.loop(channels, channel)
        b.ret_void()
        return function

    def _at_elements(
        self, b: Builder, offset: Any, inner: Any, axis: int, copy: Callable[[Any, Any], None]
    ) -> None:
        """Write the loops over the elements of a window, for each the offset in the input and the inner index."""
        geometry = self.geometry
        if axis == len(geometry.kernel):
            copy(offset, inner)
            return
        step = geometry.plane_strides[axis] * geometry.dilation[axis]
        inside = prod(geometry.kernel[axis + 1 :])

        def element(j: Any) -> None:
            further = b.add(offset, b.mul(j, index_number(step)))
            self._at_elements(b, further, b.add(inner, b.mul(j, index_number(inside))), axis + 1, copy)

        b.loop(geometry.kernel[axis], element)

    def _used(self, columns: int) -> list[int]:
        """How many elements of each vector of a row of the panel are used."""
        width = self.vectors.width
        return [min(width, columns - start) for start in range(0, columns, width)]

    def _offset_of_row(self, b: Builder, row: Any) -> Any:
        """The offset in the input of the first window of a row of windows along the last axis."""
        geometry = self.geometry
        offset: Any = index_number(0)
        for axis in reversed(range(len(geometry.windows) - 1)):
            size, step = geometry.windows[axis], geometry.strides[axis] * geometry.plane_strides[axis]
            index = b.urem(row, index_number(size)) if axis else row
            row = b.udiv(row, index_number(size))
            offset = b.add(offset, b.mul(index, index_number(step)))
        return offset

    def _vectors(
        self, b: Builder, panel: Any, source: Any, start: Any, count: int
    ) -> Callable[[Any, Any], None]:
        """What copies vectors, from one or several rows of windows whose neighbours are neighbours in the input."""
        vectors, row_size = self.vectors, self.geometry.windows[-1]
        width = vectors.width
        lanes = ir.Constant(ir.VectorType(INT32, width), list(range(width)))
        found: list[list[tuple[Any, Any]]] = []
        for v, used in enumerate(self._used(count)):
            place = b.add(start, index_number(v * width))
            row = b.udiv(place, index_number(row_size))
            column = b.urem(place, index_number(row_size))
            pieces: list[tuple[Any, Any]] = []
            for piece in range(self.geometry.pieces):
                before = b.sub(index_number(piece * row_size), column)  # the lanes of earlier rows
                offset = b.sub(self._offset_of_row(b, b.add(row, index_number(piece))), before)
                end = b.add(before, index_number(row_size))
                first, last = [self._repeated(b, b.trunc(x, INT32)) for x in (before, end)]
                mask = b.and_(b.icmp_signed(">=", lanes, first), b.icmp_signed("<", lanes, last))
                if used < width:
                    flags = [int(i < used) for i in range(width)]
                    mask = b.and_(mask, ir.Constant(mask.type, flags))
                pieces.append((self._address(b, source, offset), mask))
            found.append(pieces)
        suffix = f"v{width}f{8 * vectors.bytes}"
        types = [POINTER, INT32, ir.VectorType(BIT, width), vectors.type]
        load = declared(self.module, f"llvm.masked.load.{suffix}.p0", vectors.type, types)

        def copy(offset: Any, inner: Any) -> None:
            for v, (used, pieces) in enumerate(zip(self._used(count), found, strict=True)):
                x: Any = ir.Constant(vectors.type, [0.0] * width)
                for address, mask in pieces:
                    place = self._address(b, address, offset)
                    if len(pieces) == 1 and used == width:
                        x = b.load(place, align=vectors.bytes, typ=vectors.type)
                    else:
                        x = b.call(load, [place, ir.Constant(INT32, vectors.bytes), mask, x])
                offset_in_row = b.add(b.mul(inner, index_number(vectors.columns)), index_number(v * width))
                b.store(x, self._address(b, panel, offset_in_row), align=vectors.bytes)

        return copy

    def _repeated(self, b: Builder, x: Any) -> Any:
        type_ = ir.VectorType(x.type, self.vectors.width)
        one = b.insert_element(ir.Constant(type_, ir.Undefined), x, ir.Constant(INT32, 0))
        order = ir.Constant(ir.VectorType(INT32, self.vectors.width), [0] * self.vectors.width)
        return b.shuffle_vector(one, ir.Constant(type_, ir.Undefined), order)

    def _single(
        self, b: Builder, panel: Any, source: Any, start: Any, count: int
    ) -> Callable[[Any, Any], None]:
        """What copies elements one by one; those of the last vector without a window are those of the last window."""
        geometry, vectors = self.geometry, self.vectors
        columns = len(self._used(count)) * vectors.width
        offsets = b.alloca(INT64, ir.Constant(INT32, columns))

        def note(i: Any) -> None:
            place = b.add(start, b.intrinsic("umin", i, index_number(count - 1)))
            row_size = index_number(geometry.windows[-1])
            across = b.mul(b.urem(place, row_size), index_number(geometry.strides[-1]))
            offset = b.add(self._offset_of_row(b, b.udiv(place, row_size)), across)
            b.store(offset, b.gep(offsets, [i], source_etype=INT64))

        b.loop(columns, note)

        def copy(offset: Any, inner: Any) -> None:
            base = self._address(b, source, offset)
            target = self._address(b, panel, b.mul(inner, index_number(vectors.columns)))

            def element(i: Any) -> None:
                place = b.load(b.gep(offsets, [i], source_etype=INT64), typ=INT64)
                x = b.load(self._address(b, base, place), typ=vectors.element)
                b.store(x, self._address(b, target, i))

            b.loop(columns, element)

        return copy
