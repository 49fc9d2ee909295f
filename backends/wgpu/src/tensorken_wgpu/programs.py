"""Programs: what runs one on a device, and the arrays that it takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorken_core.errors import BackendError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Shape
from tensorken_core.source_line import Origin, users_line
from tensorken_wgpu.device import Device, Memory, Window
from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.encoding import Waiting
from tensorken_wgpu.planning import Plan
from tensorken_wgpu.slots import slots
from tensorken_wgpu.target import Target
from tensorken_wgpu.templates import Text, general, special
from tensorken_wgpu.tuning import best

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable
    from tensorken_wgpu.kernels import Kernel

HOT = 8
"""How often a kernel runs before it is written anew for its shape."""

SMALL, LARGE = 2**13, 2**18
"""What looks at no more elements stays as it is; what looks at more is written for its shape at once."""


@dataclass(slots=True, eq=False)
class Array:
    """Elements in row-major order on a device; of no elements there is no memory.

    Nobody changes one; a frozen dataclass would take four times as long to make, and a step makes many.
    """

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
        before = [*inputs, *constants]
        places = {v: i for i, v in enumerate(before)}
        found, sizes = slots(plan.steps, frozenset(plan.outputs), target.binding_size)
        self._sizes = tuple(sizes)
        places |= {v: len(before) + slot for v, slot in found.items()}
        self._device = device
        self._constants = [*constants.values()]
        self._steps = [Loaded(best(step.kernel, device), places, device, target) for step in plan.steps]
        self._bound = sorted({place for step in self._steps for place in step.bound})
        self._runs = 0
        self._kernels = object()  # as they are now
        self._outputs = [
            (v.shape, v.dtype, places.get(kept)) for v, kept in zip(outputs, plan.outputs, strict=True)
        ]

    def __call__(self, inputs: Iterable[Array]) -> list[Array]:
        """The outputs; they are being computed."""
        if self._runs < HOT:
            self._runs += 1
            if self._runs == HOT and any([step.specialised() for step in self._steps]):
                self._kernels = object()
        given = [x.memory for x in inputs]
        memories: list[Any] = given + self._constants + self._allocated()
        places = tuple([memories[i].place for i in self._bound])
        self._device.repeat(
            (self._kernels, places), lambda: [step.bound_to(memories) for step in self._steps]
        )
        return [
            Array(shape, dtype, None if place is None else memories[place])
            for shape, dtype, place in self._outputs
        ]

    def _allocated(self) -> list[Memory]:
        try:
            return self._device.allocate_all(self._sizes)
        except BackendError as error:
            largest = max(self._steps, key=lambda step: step.writes)
            raise _told(error, largest.kernel) from None


class Loaded:
    """A kernel of a program, ready to be run: first as that of many shapes, when it is hot as one of its own.

    Args:
        kernel: what to run.
        places: for each value of the program where among the memories it is.
        device: where to run it.
        target: what was known of it.

    Attributes:
        bound: the places of what it reads, then of what it writes.
        writes: how many bytes.
    """

    def __init__(self, kernel: Kernel, places: dict[Variable, int], device: Device, target: Target) -> None:
        self.kernel = kernel
        self._device = device
        self.bound = [places[v] for v in (*kernel.reads, *kernel.writes)]
        self.writes = sum(map(size_of, kernel.writes))
        self._windows = [target.windows(size_of(v)) for v in (*kernel.reads, *kernel.writes)]
        parts = [len(windows) for windows in self._windows]
        self._counts = sum(parts[: len(kernel.reads)]), sum(parts[len(kernel.reads) :])
        try:
            for v in kernel.writes:
                device.check_size(size_of(v))
            if sum(parts) > target.bindings:
                raise BackendError(
                    f"wgpu: a kernel of tensors that are bound in {sum(parts)} parts, as they are larger than "
                    f"{target.binding_size} bytes, but {device.name} takes {target.bindings}; split them"
                )
        except BackendError as error:
            raise _told(error, kernel) from None
        self._load(special if kernel.work > LARGE else general)

    def _load(self, made: Callable[[str], Text]) -> None:
        kernel = self.kernel
        text = made(kernel.template)
        try:
            self._pipeline = self._device.pipeline(text.code, *self._counts)
        except BackendError as error:
            raise _told(error, kernel) from None
        self._uniform = self._device.uniform(text.uniform)

    def specialised(self) -> bool:
        """Whether it is written anew for its shape, now that it is hot."""
        if not SMALL < self.kernel.work <= LARGE:
            return False
        self._load(special)
        return True

    def bound_to(self, memories: Sequence[Memory]) -> Waiting:
        """The kernel as it waits to be run, on the memories of a program.

        Raises:
            BackendError: if the device refuses it.
        """
        bound: list[Memory | Window] = []
        for place, windows in zip(self.bound, self._windows, strict=True):
            memory = memories[place]
            bound += [memory] if len(windows) == 1 else [Window(memory, *part) for part in windows]
        try:
            return self._device.bound(self._pipeline, self._uniform, bound, self.kernel.groups)
        except BackendError as error:
            raise _told(error, self.kernel) from None


def _told(error: BackendError, kernel: Kernel) -> BackendError:
    """The error, with what was to be computed, and for which lines of the user's."""
    names = ", ".join([e.op.name for e in kernel.of])
    return noted(error, names, [e.origin for e in kernel.of if hasattr(e, "origin")])


def noted(error: BackendError, names: str, origins: Sequence[Origin | None] = ()) -> BackendError:
    """The error, with what was to be computed, and for which lines: where none is known, for that which is running."""
    known: Sequence[Origin | None] = [line for line in origins if line is not None]
    lines = dict.fromkeys([str(line) for line in known or [users_line()] if line is not None])
    error.add_note(f"computing {names}" + "".join([f"\n  at {line}" for line in lines]))
    return error
