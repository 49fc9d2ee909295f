"""Programs: what runs one on a device, and the arrays that it takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.errors import BackendError
from tensorken.spec.dtypes import DType
from tensorken.spec.shapes import Shape
from tensorken_wgpu.device import Device, Memory, Window
from tensorken_wgpu.dtypes import SIZES
from tensorken_wgpu.planning import Plan, Step
from tensorken_wgpu.target import Target
from tensorken_wgpu.templates import Text, general, special

if TYPE_CHECKING:
    from tensorken.programs.program import Equation, Variable
    from tensorken_wgpu.kernels import Kernel

HOT = 8
"""How often a kernel runs before it is written anew for its shape."""

SMALL, LARGE = 2**13, 2**18
"""What looks at no more elements stays as it is; what looks at more is written for its shape at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Elements in row-major order on a device; of no elements there is no memory."""

    shape: Shape
    dtype: DType
    memory: Memory | None


class Ready:
    """A program, ready to be run.

    Args:
        inputs: what it is given.
        constants: what it has of its own, and where that is.
        outputs: what results.
        plan: how.
        device: where.
        target: what was known of it.

    Raises:
        BackendError: if the device refuses a kernel.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        constants: dict[Variable, Memory | None],
        outputs: Sequence[Variable],
        plan: Plan,
        device: Device,
        target: Target,
    ) -> None:
        written = [v for step in plan.steps for v in step.kernel.writes]
        places = {v: i for i, v in enumerate([*inputs, *constants, *written])}
        self._constants = [*constants.values()]
        self._later: list[Memory | None] = [None] * len(written)
        self._steps = [Loaded(step, places, device, target) for step in plan.steps]
        self._outputs = [
            (v.shape, v.dtype, places.get(kept)) for v, kept in zip(outputs, plan.outputs, strict=True)
        ]

    def __call__(self, inputs: Iterable[Array]) -> list[Array]:
        """The outputs; they are being computed."""
        memories = [x.memory for x in inputs] + self._constants + self._later
        for step in self._steps:
            step.run(memories)
        return [
            Array(shape, dtype, None if place is None else memories[place])
            for shape, dtype, place in self._outputs
        ]


class Loaded:
    """A step of a program, ready to be run: first as the kernel of many shapes, when it is hot as one of its own.

    Args:
        step: what to run.
        places: for each value of the program where among the memories it is.
        device: where to run it.
        target: what was known of it.
    """

    def __init__(self, step: Step, places: dict[Variable, int], device: Device, target: Target) -> None:
        kernel = self._kernel = step.kernel
        self._device = device
        self._runs = 0
        self._bound = [places[v] for v in (*kernel.reads, *kernel.writes)]
        self._writes = [(places[v], _size(v)) for v in kernel.writes]
        windows = {places[v]: target.windows(_size(v)) for v in (*kernel.reads, *kernel.writes)}
        self._counts = [
            sum([len(windows[places[v]]) for v in found]) for found in (kernel.reads, kernel.writes)
        ]
        self._large = windows if sum(self._counts) > len(self._bound) else None
        if sum(self._counts) > target.bindings:
            raise _told(
                BackendError(
                    f"wgpu: a kernel of tensors that are bound in {sum(self._counts)} parts, as they are larger than "
                    f"{target.binding_size} bytes, but {device.name} takes {target.bindings}; split them"
                ),
                kernel,
            )
        self._dead = [places[v] for v in step.dead]
        self._load(special if kernel.work > LARGE else general)

    def _load(self, made: Callable[[str], Text]) -> None:
        kernel = self._kernel
        text = made(kernel.template)
        try:
            self._pipeline = self._device.pipeline(text.code, *self._counts)
        except BackendError as error:
            raise _told(error, kernel) from None
        self._uniform = self._device.uniform(text.uniform)

    def run(self, memories: list[Memory | None]) -> None:
        """Have it wait to be run; what it computes gets memory, and what nobody needs any more is let go."""
        self._runs += 1
        if self._runs == HOT and SMALL < self._kernel.work <= LARGE:
            self._load(special)
        try:
            for place, size in self._writes:
                memories[place] = self._device.allocate(size)
            bound: list[Any] = [memories[place] for place in self._bound]
            if self._large:
                bound = self._windows(memories, self._large)
            self._device.run(self._pipeline, self._uniform, bound, self._kernel.groups)
        except BackendError as error:
            raise _told(error, self._kernel) from None
        for place in self._dead:
            memories[place] = None

    def _windows(self, memories: list[Memory | None], windows: dict[int, list[tuple[int, int]]]) -> list[Any]:
        """What is bound, where some memories are bound in parts."""
        bound: list[Any] = []
        for place in self._bound:
            memory: Any = memories[place]
            parts = windows[place]
            bound += [memory] if len(parts) == 1 else [Window(memory, *part) for part in parts]
        return bound


def _size(v: Variable) -> int:
    return prod(v.shape) * SIZES[v.dtype.name]


def _told(error: BackendError, kernel: Kernel) -> BackendError:
    """The error, with what was to be computed, and for which line of the user's."""
    names = ", ".join([e.op.name for e in kernel.of])
    lines = dict.fromkeys([str(e.origin) for e in kernel.of if _origin(e) is not None])
    error.add_note(f"computing {names}" + "".join([f"\n  at {line}" for line in lines]))
    return error


def _origin(equation: Equation) -> Any:
    return getattr(equation, "origin", None)
