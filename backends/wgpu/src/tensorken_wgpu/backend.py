"""The backend: arrays in the memory of a GPU, and programs as kernels."""

from __future__ import annotations

import array
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.errors import DTypeError
from tensorken.spec.capabilities import Capabilities
from tensorken.spec.dtypes import DType
from tensorken.spec.op import Op
from tensorken.spec.raw import RawTensor
from tensorken.spec.shapes import Shape
from tensorken_wgpu.device import Device, Memory, Pipeline, Uniform
from tensorken_wgpu.dtypes import FORMATS, SIZES, declared, packed
from tensorken_wgpu.planning import Step, plan as planned
from tensorken_wgpu.single import Value, single
from tensorken_wgpu.target import Target
from tensorken_wgpu.templates import Text, general, special
from tensorken_wgpu.wgsl import OPS
from tensorken_wgpu.writer import FOLDS, INLINE

if TYPE_CHECKING:
    from tensorken.programs.program import Program, Variable

HOT = 8
"""How often a kernel runs before it is written anew for its shape."""

SMALL, LARGE = 2**13, 2**18
"""What looks at no more elements stays as it is; what looks at more is written for its shape at once."""

_OWN = OPS | INLINE | FOLDS


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Elements in row-major order on a device; of no elements there is no memory."""

    shape: Shape
    dtype: DType
    memory: Memory | None


class Wgpu(RawTensor[Array]):
    """A GPU, by way of WebGPU.  To be wrapped in `Lazy`, which brings many ops together into one program.

    Args:
        device: the GPU.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.target = Target(
            device.bindings, int(device.limits["max-storage-buffer-binding-size"]), device.is_software
        )
        self.capabilities = Capabilities(dtypes=declared(device.features))

    def __repr__(self) -> str:
        return f"Wgpu({self.device.name!r})"

    # ---- values --------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        self._check("new", dtype)
        if isinstance(data, bytes | bytearray | memoryview | array.array) and dtype.kind != "bool":
            return self._written(shape, memoryview(data).cast("B"), dtype)
        return self._written(shape, packed(data, dtype.name), dtype)

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        self._check("full", dtype)
        return self._written(shape, packed([value], dtype.name) * prod(shape), dtype)

    def _written(self, shape: Shape, data: Any, dtype: DType) -> Array:
        if not len(data):
            return Array(shape, dtype, None)
        if len(data) % 4:  # devices take whole words
            data = bytes(data) + bytes(-len(data) % 4)
        return Array(shape, dtype, self.device.written(memoryview(data)))

    def ravel(self, x: Array) -> Any:
        if x.memory is None:
            return []
        size = SIZES[x.dtype.name] * prod(x.shape)
        found: Any = self.device.read(x.memory, size + -size % 4).cast("B")[:size]
        if x.dtype.kind == "bool":
            return memoryview(bytes(found[::4])).cast("?")
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
        if not self.has(op):
            return super().interpret(op, operands, params)
        program: Any = single(op, [Value(x.shape, x.dtype) for x in operands], params)
        self._check(op.name, program.outputs[0].dtype)
        return Compiled(program, self)(operands)[0]

    def compile(self, program: Program) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
        for e in program.equations:
            for v in e.results:
                self._check(e.op.name, v.dtype)
        if all([self.has(e.op) for e in program.equations]):
            return Compiled(program, self)
        return None

    def _check(self, op: str, dtype: DType) -> None:
        there = self.capabilities.dtypes
        if dtype.name not in there:
            raise DTypeError(
                f"{op}: {self.device.name} has no {dtype.name}, only {', '.join(there)}; cast to one of these first"
            )


class Loaded:
    """A step of a program, ready to be run: first as the kernel of many shapes, when it is hot as one of its own."""

    def __init__(self, step: Step, device: Device) -> None:
        self.step = step
        self._device = device
        self._runs = 0
        self.pipeline, self.uniform = self._load(special if step.kernel.work > LARGE else general)

    def _load(self, made: Callable[[str], Text]) -> tuple[Pipeline, Uniform]:
        kernel = self.step.kernel
        text = made(kernel.template)
        pipeline = self._device.pipeline(text.code, len(kernel.reads), len(kernel.writes))
        return pipeline, self._device.uniform(text.uniform)

    def run(self, memories: dict[Variable, Any]) -> None:
        """Have it wait to be run; what it computes gets memory, and what nobody needs any more is let go."""
        kernel, device = self.step.kernel, self._device
        self._runs += 1
        if self._runs == HOT and SMALL < kernel.work <= LARGE:
            self.pipeline, self.uniform = self._load(special)
        for v in kernel.writes:
            memories[v] = device.allocate(prod(v.shape) * SIZES[v.dtype.name])
        bound = [memories[v] for v in (*kernel.reads, *kernel.writes)]
        device.run(self.pipeline, self.uniform, bound, kernel.groups)
        for v in self.step.dead:
            del memories[v]


class Compiled:
    """A program as kernels."""

    def __init__(self, program: Program, backend: Wgpu) -> None:
        self.program = program
        self.backend = backend
        self._steps: list[Loaded] | None = None
        self._outputs: tuple[Variable, ...] = ()
        self._constants: dict[Variable, Memory | None] = {}

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        if self._steps is None:
            self._steps = self._load()
        memories: dict[Variable, Memory | None] = dict(self._constants)
        for v, x in zip(self.program.inputs, inputs, strict=True):
            memories[v] = x.memory
        for step in self._steps:
            step.run(memories)
        outputs = zip(self.program.outputs, self._outputs, strict=True)
        return [self._output(v, kept, memories) for v, kept in outputs]

    def _load(self) -> list[Loaded]:
        program, backend = self.program, self.backend
        self._constants = {v: program.outside(v, backend).memory for v in program.constants}
        plan = planned(program, backend.target)
        self._outputs = plan.outputs
        return [Loaded(step, backend.device) for step in plan.steps]

    def _output(self, v: Variable, kept: Variable, memories: dict[Variable, Memory | None]) -> Array:
        value = getattr(kept, "value", None)
        if value is not None:
            return self.backend.full(v.shape, value, v.dtype)
        return Array(v.shape, v.dtype, memories.get(kept))
