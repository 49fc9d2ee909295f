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
from tensorken_wgpu.device import Device, Memory, groups_of
from tensorken_wgpu.kernels import INLINE, WHOLE
from tensorken_wgpu.planning import Step, plan
from tensorken_wgpu.single import Value, single
from tensorken_wgpu.wgsl import OF_KIND, OPAQUE

if TYPE_CHECKING:
    from tensorken.programs.program import Program, Variable

_FORMATS = {"float32": "f", "int32": "i", "bool": "I"}
_OWN = frozenset().union(INLINE, WHOLE, *OF_KIND.values())


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

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"))

    def __init__(self, device: Device) -> None:
        self.device = device

    def __repr__(self) -> str:
        return f"Wgpu({self.device.name!r})"

    # ---- values --------------------------------------------------------------------------------------------

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        _check("new", dtype)
        if not prod(shape):
            return Array(shape, dtype, None)
        if isinstance(data, bytes | bytearray | memoryview | array.array) and dtype.kind != "bool":
            flat = memoryview(data).cast("B")
        else:
            flat = memoryview(array.array(_FORMATS[dtype.name], [*data])).cast("B")
        return Array(shape, dtype, self.device.written(flat))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        return self.new(shape, [value] * prod(shape), dtype)

    def ravel(self, x: Array) -> Any:
        if x.memory is None:
            return []
        found = self.device.read(x.memory, 4 * prod(x.shape))
        if x.dtype.kind == "bool":
            return memoryview(bytes(found.cast("B")[::4])).cast("?")
        flat = found.cast("B")
        return flat.cast("f") if x.dtype.kind == "float" else flat.cast("i")

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
        _check(op.name, program.outputs[0].dtype)
        return Compiled(program, self)(operands)[0]

    def compile(self, program: Program) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
        for e in program.equations:
            for v in e.results:
                _check(e.op.name, v.dtype)
        if all([self.has(e.op) for e in program.equations]):
            return Compiled(program, self)
        return None


def _check(op: str, dtype: DType) -> None:
    if dtype.name not in _FORMATS:
        raise DTypeError(
            f"{op}: wgpu has no {dtype.name}, only {', '.join(_FORMATS)}; cast to one of these first"
        )


class Compiled:
    """A program as kernels."""

    def __init__(self, program: Program, backend: Wgpu) -> None:
        self.program = program
        self.backend = backend
        self._steps: list[Step] | None = None
        self._constants: dict[Variable, Memory | None] = {}

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        program, backend, device = self.program, self.backend, self.backend.device
        if self._steps is None:
            self._constants = {v: program.outside(v, backend).memory for v in program.constants}
            self._steps = plan(program, device.bindings - 1)
        memories: dict[Variable, Memory | None] = dict(self._constants)
        memories.update({v: x.memory for v, x in zip(program.inputs, inputs, strict=True)})
        opaque = device.uniform(struct.pack("<4I", *OPAQUE))
        for step in self._steps:
            reads = [memories[x] for x in step.kernel.reads]
            result = device.allocate(4 * step.kernel.count)
            pipeline = device.pipeline(step.kernel.text, len(reads), 1)
            bound = [*[m for m in reads if m is not None], result]
            device.run(pipeline, opaque, bound, groups_of(step.kernel.count))
            memories[step.result] = result
            for v in step.dead:
                del memories[v]
        given = dict(zip(program.inputs, inputs, strict=True))
        return [given[v] if v in given else self._output(v, memories) for v in program.outputs]

    def _output(self, v: Variable, memories: dict[Variable, Memory | None]) -> Array:
        value = getattr(v, "value", None)
        if value is not None:
            return self.backend.full(v.shape, value, v.dtype)
        return Array(v.shape, v.dtype, memories.get(v))
