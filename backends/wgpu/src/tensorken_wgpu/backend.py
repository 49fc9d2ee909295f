"""The interpreter: arrays in the memory of a GPU, and programs as kernels."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.control_flow.scan_op import SCAN
from tensorken.kernels.elements import INLINE
from tensorken.kernels.positions import with_positions
from tensorken.kernels.rows import REDUCTIONS
from tensorken.programs.lost_memory import forget_memory
from tensorken_core.errors import BackendError, DTypeError
from tensorken_core.language.dtypes import DType, int32, int64
from tensorken_core.language.op import OPS as LANGUAGE, Op
from tensorken_core.language.shapes import Shape
from tensorken_wgpu import declarations
from tensorken_wgpu.device.device import Device, Memory
from tensorken_wgpu.execution.copies import run_as_copy
from tensorken_wgpu.execution.loops import Backend, checking, compiled
from tensorken_wgpu.execution.planning import Plan, plan
from tensorken_wgpu.execution.programs import Array, LoadedProgram, add_context
from tensorken_wgpu.execution.reloading import ReloadingProgram
from tensorken_wgpu.kernels import cumulative, sorting
from tensorken_wgpu.kernels.fourier import OPS as FOURIER, has_kernels
from tensorken_wgpu.wgsl.dtypes import FORMATS, narrowed, packed, size_of, widened
from tensorken_wgpu.wgsl.ops import OPS
from tensorken_wgpu.wgsl.single_op import Value, single
from tensorken_wgpu.wgsl.target import Target, has_software_kernels

if TYPE_CHECKING:
    from tensorken_core.program.program import Program

MAX_SINGLE_OPS = 512
"""The most single ops that are cached, one for each shape and dtype of the operands."""

MAX_HOST_FILL = 2**24
"""The host sends up to this many bytes of equal elements; more are written by a kernel, which must be compiled
first."""

_SUPPORTED = OPS | INLINE | REDUCTIONS | FOURIER | cumulative.OPS | sorting.OPS
_EXPAND = LANGUAGE["expand"]


class Wgpu(Backend):
    """A GPU, through WebGPU.  Wrap it in `Lazy`, which collects many ops into one program.

    Args:
        device: the GPU.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        is_software = has_software_kernels(device.is_software)
        self.target = Target(
            device.bindings,
            int(device.limits["max-storage-buffer-binding-size"]),
            is_software,
            fast_64_bit=is_software and "shader-int64" in device.features,
            workgroup_memory=int(device.limits["max-compute-workgroup-storage-size"]),
        )
        self._single_ops: dict[Any, ReloadingProgram] = {}
        declarations.declare(self, declarations.file())

    def __repr__(self) -> str:
        return f"Wgpu({self._device.choice!r})"

    @property
    def device(self) -> Device:
        """The GPU.  A lost device is reopened; the contents of its memory are gone."""
        if self._device.lost is not None:
            self._device = self._device.reopened()
            forget_memory()
        return self._device

    # ---- values --------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        self._check_dtype("new", dtype)
        if isinstance(data, bytes | bytearray | memoryview | array.array):
            flat: Any = memoryview(data).cast("B")
            flat = widened(bytes(flat)) if dtype.kind == "bool" else flat
            return self._upload("new", shape, flat, dtype)
        return self._upload("new", shape, packed(data, dtype.name), dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        self._check_dtype("full", dtype)
        element, count = packed([value], dtype.name), prod(shape)
        if len(element) * count <= MAX_HOST_FILL:
            return self._upload("full", shape, element * count, dtype)
        return Array(shape, dtype, self._filled(element, len(element) * count))

    def _filled(self, element: bytes, size: int) -> Memory:
        """Memory of this size filled with copies of one element, bit for bit, by a kernel."""
        dtype = int64 if len(element) == int64.itemsize else int32
        word = (element * dtype.itemsize)[: dtype.itemsize]  # two float16 fill a word
        try:
            self.device.check_size(size)
        except BackendError as error:
            raise add_context(error, "full") from None
        filled = self.interpret(_EXPAND, [self.new((1,), word, dtype)], ((-(-size // len(word)),),))
        memory: Memory = filled.memory
        return memory

    def _upload(self, op: str, shape: Shape, data: Any, dtype: DType) -> Array:
        try:
            return Array(shape, dtype, self.device.upload(data) if len(data) else None)
        except BackendError as error:
            raise add_context(error, op) from None

    def ravel(self, x: Array) -> Any:
        if x.memory is None:
            return []
        size = size_of(x)
        data: Any = self.device.read(x.memory, size + -size % 4).cast("B")[:size]
        if x.dtype.kind == "bool":
            return memoryview(narrowed(data)).cast("?")
        format = FORMATS[x.dtype.name]
        return [*struct.unpack(f"<{len(data) // 2}e", data)] if format == "e" else data.cast(format)

    def shape(self, x: Array) -> Shape:
        return x.shape

    def dtype(self, x: Array) -> DType:
        return x.dtype

    def realize(self, x: Array) -> Array:
        self.device.submit()
        return x

    # ---- ops -----------------------------------------------------------------------------------------------

    def has(self, op: Op) -> bool:
        return op.name in _SUPPORTED

    @property
    def scan(self) -> Op | None:
        """The op `scan`, as all its steps are one program, see `loops`; None if the device cannot number steps."""
        return SCAN if self.device.has_steps else None

    def runs_body(self, op: Op, operands: Sequence[Any]) -> bool:
        """Whether an op that this backend has runs its body for these operands."""
        if op.name in cumulative.OPS:
            return not cumulative.has_kernels(operands[0], self.target)
        if op.name in sorting.OPS:
            return not sorting.has_kernels(operands[0], self.target)
        return op.name in FOURIER and not has_kernels(operands[0], self.target)

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        result = run_as_copy(op.name, self, operands, params)
        if result is not None:
            return result
        if not self.has(op) or self.runs_body(op, operands):
            return super().interpret(op, operands, params)
        key = op, *[(x.shape, x.dtype) for x in operands], repr(params)  # repr distinguishes 0.0 and -0.0
        loaded = self._single_ops.get(key)
        if loaded is None:
            program: Any = single(op, [Value(x.shape, x.dtype) for x in operands], params)
            for v in program.outputs:
                self._check_dtype(op.name, v.dtype)
            if len(self._single_ops) >= MAX_SINGLE_OPS:
                self._single_ops.clear()
            loaded = self._single_ops[key] = self.load(program)
        results = loaded(operands)
        return results[0] if op.results == 1 else tuple(results)

    def compile(self, program: Program) -> Callable[..., Sequence[Array]]:
        for e in program.equations:
            for v in e.results:
                self._check_dtype(e.op.name, v.dtype)
        return checking(compiled(program, self), program, self)

    def load(self, program: Program, planned: Plan | None = None) -> ReloadingProgram:
        if planned is None:
            if not self.target.is_software:
                program = with_positions(program, self)
            planned = plan(program, self.target)
        outside = [*program.constants, *[v for v in planned.outputs if getattr(v, "value", None) is not None]]

        def load(device: Device) -> LoadedProgram:
            constants = {v: program.outside(v, self).memory for v in outside}
            constants |= {v: self.new(v.shape, v.numbers, v.dtype).memory for v in planned.tables}
            return LoadedProgram(program.inputs, constants, program.outputs, planned, device, self.target)

        return ReloadingProgram(load, self)

    def _check_dtype(self, op: str, dtype: DType) -> None:
        supported = self.capabilities.dtypes
        if dtype.name not in supported:
            raise DTypeError(
                f"{op}: {self.device.name} has no {dtype.name}, only {', '.join(supported)}; cast to one of these first"
            )
