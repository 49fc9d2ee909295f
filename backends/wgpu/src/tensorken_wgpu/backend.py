"""The backend: arrays in the memory of a GPU, and programs as kernels."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_core.errors import BackendError, DTypeError
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DType, int32, int64
from tensorken_core.language.op import OPS as LANGUAGE, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_wgpu.copies import copied
from tensorken_wgpu.device import Device, Memory
from tensorken_wgpu.dtypes import FORMATS, declared, narrowed, packed, size_of, widened
from tensorken_wgpu.functions import ERRORS
from tensorken_wgpu.planning import plan
from tensorken_wgpu.programs import Array, Ready, noted
from tensorken_wgpu.renewal import Renewed
from tensorken_wgpu.single import Value, single
from tensorken_wgpu.subnormals import flushed
from tensorken_wgpu.target import Target
from tensorken_wgpu.wgsl import OPS
from tensorken_wgpu.writer import FOLDS, INLINE

if TYPE_CHECKING:
    from tensorken_core.program.program import Program

SINGLE = 512
"""How many single ops, each for operands of some shapes, are kept ready."""

FILLED = 2**24
"""Up to so many bytes that are equal elements come from the host: a kernel that fills memory is not ready at once."""

_OWN = OPS | INLINE | FOLDS
_EXPAND = LANGUAGE["expand"]


class Wgpu(RawTensor[Array]):
    """A GPU, by way of WebGPU.  To be wrapped in `Lazy`, which brings many ops together into one program.

    Args:
        device: the GPU.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.target = Target(
            device.bindings,
            int(device.limits["max-storage-buffer-binding-size"]),
            device.is_software,
            in_pairs=device.is_software and "shader-int64" in device.features,
        )
        self._single: dict[Any, Renewed] = {}
        self.capabilities = Capabilities(dtypes=declared(device.features), ulp=ERRORS)
        self.capabilities = replace(self.capabilities, flushes_subnormals=flushed(self))

    def __repr__(self) -> str:
        return f"Wgpu({self._device.choice!r})"

    @property
    def device(self) -> Device:
        """The GPU.  One that was lost is opened anew; what was in its memory is gone."""
        if self._device.lost is not None:
            self._device = self._device.reopened()
        return self._device

    # ---- values --------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        self._check("new", dtype)
        if isinstance(data, bytes | bytearray | memoryview | array.array):
            flat: Any = memoryview(data).cast("B")
            flat = widened(bytes(flat)) if dtype.kind == "bool" else flat
            return self._written("new", shape, flat, dtype)
        return self._written("new", shape, packed(data, dtype.name), dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        self._check("full", dtype)
        element, count = packed([value], dtype.name), prod(shape)
        if len(element) * count <= FILLED:
            return self._written("full", shape, element * count, dtype)
        return Array(shape, dtype, self._filled(element, len(element) * count))

    def _filled(self, element: bytes, size: int) -> Memory:
        """Memory of so many bytes that are one element again and again; it is filled there, with its very bits."""
        dtype = int64 if len(element) == int64.itemsize else int32
        word = (element * dtype.itemsize)[: dtype.itemsize]  # into which a float16 goes twice
        try:
            self.device.check_size(size)
        except BackendError as error:
            raise noted(error, "full") from None
        filled = self.interpret(_EXPAND, [self.new((1,), word, dtype)], ((-(-size // len(word)),),))
        memory: Memory = filled.memory
        return memory

    def _written(self, op: str, shape: Shape, data: Any, dtype: DType) -> Array:
        try:
            return Array(shape, dtype, self.device.written(data) if len(data) else None)
        except BackendError as error:
            raise noted(error, op) from None

    def ravel(self, x: Array) -> Any:
        if x.memory is None:
            return []
        size = size_of(x)
        found: Any = self.device.read(x.memory, size + -size % 4).cast("B")[:size]
        if x.dtype.kind == "bool":
            return memoryview(narrowed(found)).cast("?")
        format = FORMATS[x.dtype.name]
        return [*struct.unpack(f"<{len(found) // 2}e", found)] if format == "e" else found.cast(format)

    def shape(self, x: Array) -> Shape:
        return x.shape

    def dtype(self, x: Array) -> DType:
        return x.dtype

    def realize(self, x: Array) -> Array:
        self.device.submit()
        return x

    # ---- ops -----------------------------------------------------------------------------------------------

    def has(self, op: Op) -> bool:
        return op.name in _OWN

    def interpret(self, op: Op, operands: Sequence[Array], params: tuple[Any, ...]) -> Any:
        result = copied(op.name, self, operands, params)
        if result is not None:
            return result
        if not self.has(op):
            return super().interpret(op, operands, params)
        key = op, *[(x.shape, x.dtype) for x in operands], repr(params)  # where 0.0 is not -0.0
        ready = self._single.get(key)
        if ready is None:
            program: Any = single(op, [Value(x.shape, x.dtype) for x in operands], params)
            self._check(op.name, program.outputs[0].dtype)
            if len(self._single) >= SINGLE:
                self._single.clear()
            ready = self._single[key] = self._ready(program)
        return ready(operands)[0]

    def compile(self, program: Program) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
        for e in program.equations:
            for v in e.results:
                self._check(e.op.name, v.dtype)
        if not all([self.has(e.op) for e in program.equations]):
            return None
        return self._ready(program)

    def _ready(self, program: Program) -> Renewed:
        how = plan(program, self.target)
        outside = [*program.constants, *[v for v in how.outputs if getattr(v, "value", None) is not None]]

        def on(device: Device) -> Ready:
            constants = {v: program.outside(v, self).memory for v in outside}
            return Ready(program.inputs, constants, program.outputs, how, device, self.target)

        return Renewed(on, self)

    def _check(self, op: str, dtype: DType) -> None:
        there = self.capabilities.dtypes
        if dtype.name not in there:
            raise DTypeError(
                f"{op}: {self.device.name} has no {dtype.name}, only {', '.join(there)}; cast to one of these first"
            )
