"""Programs loaded on a device, and the arrays that they take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorken_core.errors import BackendError
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Shape
from tensorken_core.source_line import Origin, users_line
from tensorken_wgpu.device.device import Device, Memory, Source, Window
from tensorken_wgpu.device.encoding import Dispatch
from tensorken_wgpu.execution.planning import Plan
from tensorken_wgpu.execution.slots import slots
from tensorken_wgpu.execution.tuning import best
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import Text, generic_text, specialised_text

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable
    from tensorken_wgpu.kernels.kernel import Kernel

HOT_RUNS = 8
"""After this many runs a kernel is specialised for its shape."""

MIN_HOT_WORK, MAX_HOT_WORK = 2**13, 2**18
"""Kernels with less work than the first are never specialised; kernels with more than the second, at once."""


@dataclass(slots=True, eq=False)
class Array:
    """Elements in row-major order on a device; None is the memory of an array without elements.

    It is immutable by convention: a frozen dataclass takes four times as long to create, and a training step creates
    many.
    """

    shape: Shape
    dtype: DType
    memory: Memory | None


@dataclass(slots=True, eq=False)
class Recorded:
    """A run of a program: its outputs and its kernels."""

    outputs: list[Array]
    dispatches: list[Dispatch]


class LoadedProgram:
    """A program on a device.

    Args:
        inputs: of the program.
        constants: of the program, and their memory.
        outputs: of the program.
        plan: its kernels.
        device: runs them.
        target: the properties of the device that the plan used.

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
        given = [*inputs, *constants, *plan.stacked]
        memory_indices = {v: i for i, v in enumerate(given)}
        slot_of, sizes = slots(plan.steps, frozenset(plan.outputs), target.binding_size, plan.stacked)
        self._sizes = tuple(sizes)
        memory_indices |= {v: len(given) + slot for v, slot in slot_of.items()}
        self._device = device
        self._constants = [*constants.values()]
        self._has_stacks = bool(plan.stacked)
        self._steps = [
            LoadedKernel(kernel, memory_indices, device, target)
            for kernel in best([step.kernel for step in plan.steps], device)
        ]
        self._compile(self._steps)
        self._bound = sorted({index for step in self._steps for index in step.bound})
        self._runs = 0
        self._kernels = object()  # identifies the current kernels
        self._outputs = [
            (v.shape, v.dtype, memory_indices.get(kept))
            for v, kept in zip(outputs, plan.outputs, strict=True)
        ]
        self._output_slots = sorted({slot_of[v] for v in plan.outputs if v in slot_of})

    def __call__(
        self, inputs: Iterable[Array], step: int | None = None, stacks: Sequence[Memory | None] = ()
    ) -> list[Array]:
        """Submit the program and return its outputs, which may not be computed yet.

        Args:
            inputs: of the program.
            step: the number of the step, if the program is a part of a loop's step.
            stacks: the memory of the loop's stacks, of which the program writes this step.
        """
        if self._runs < HOT_RUNS:
            self._runs += 1
            if self._runs == HOT_RUNS:
                self._specialise()
        return self.recorded(inputs, step, stacks, self.allocated()).outputs

    def recorded(
        self,
        inputs: Iterable[Array],
        step: int | None,
        stacks: Sequence[Memory | None],
        computed: Sequence[Memory],
    ) -> Recorded:
        """Submit the program, as `__call__` does; returns its outputs and kernels.

        Args:
            inputs: of the program.
            step: the number of the step.
            stacks: the memory of the loop's stacks.
            computed: the memory of the values that it computes, from `allocated`.
        """
        memories: list[Any] = [x.memory for x in inputs] + self._constants
        if self._has_stacks:
            memories += stacks
        memories += computed
        keys = tuple([memories[i].key for i in self._bound])
        dispatches = self._device.repeat(
            (self._kernels, keys), lambda: [kernel.dispatch(memories) for kernel in self._steps], step
        )
        outputs = [
            Array(shape, dtype, None if index is None else memories[index])
            for shape, dtype, index in self._outputs
        ]
        return Recorded(outputs, dispatches)

    def _specialise(self) -> None:
        """Compile hot kernels again for their shapes."""
        if hot := [step for step in self._steps if step.is_hot]:
            for step in hot:
                step.specialise()
            self._compile(hot)
            self._kernels = object()

    def _compile(self, steps: Sequence[LoadedKernel]) -> None:
        """Compile kernels, several at once.

        Raises:
            BackendError: if the device refuses one.
        """
        self._device.compile([step.source for step in steps])
        for step in steps:
            step.load()

    @property
    def is_hot(self) -> bool:
        """Whether the kernels stay the same from now on."""
        return self._runs >= HOT_RUNS

    def allocated(self, shared: Sequence[Memory] | None = None) -> list[Memory]:
        """Memory for the values that the program computes.

        Args:
            shared: the memory of an earlier run, whose values that are no outputs are not needed any more.
        """
        try:
            if shared is None:
                return self._device.allocate_all(self._sizes)
            result = [*shared]
            new = self._device.allocate_all(tuple([self._sizes[slot] for slot in self._output_slots]))
            for slot, memory in zip(self._output_slots, new, strict=True):
                result[slot] = memory
            return result
        except BackendError as error:
            largest = max(self._steps, key=lambda step: step.writes)
            raise _with_kernel(error, largest.kernel) from None


class LoadedKernel:
    """A kernel of a program on a device: first its generic text, and once it is hot the specialised one; see `load`.

    Args:
        kernel: to run.
        memory_indices: for each value of the program the index of its memory.
        device: runs it.
        target: the properties of the device.

    Attributes:
        bound: the indices of the memories that it reads, then of the memories that it writes.
        writes: the number of bytes that it writes.
        source: its text, to be compiled.
    """

    def __init__(
        self, kernel: Kernel, memory_indices: dict[Variable, int], device: Device, target: Target
    ) -> None:
        self.kernel = kernel
        self._device = device
        self.bound = [memory_indices[v] for v in (*kernel.reads, *kernel.writes)]
        self.writes = sum(map(size_of, kernel.writes))
        self._windows = [target.windows(size_of(v)) for v in (*kernel.reads, *kernel.writes)]
        parts = [len(windows) for windows in self._windows]
        self._counts = sum(parts[: len(kernel.reads)]), sum(parts[len(kernel.reads) :])
        try:
            for v in kernel.writes:
                device.check_size(size_of(v))
            if sum(parts) > target.bindings:
                raise BackendError(
                    f"wgpu: a kernel needs {sum(parts)} bindings, as its tensors are larger than "
                    f"{target.binding_size} bytes, but {device.name} has {target.bindings}; split the tensors"
                )
        except BackendError as error:
            raise _with_kernel(error, kernel) from None
        self._write(specialised_text if kernel.work > MAX_HOT_WORK else generic_text)

    def _write(self, make: Callable[[str], Text]) -> None:
        text = make(self.kernel.template)
        self._uniform_data = text.uniform
        self.source = Source(text.code, *self._counts, self.kernel.is_proved)

    @property
    def is_hot(self) -> bool:
        """Whether it is worth specialising for its shape when it runs often, and is not specialised already."""
        return MIN_HOT_WORK < self.kernel.work <= MAX_HOT_WORK

    def specialise(self) -> None:
        """Write the text for its shape; `load` makes it take effect."""
        self._write(specialised_text)

    def load(self) -> None:
        """Get the kernel from the device, compiled.

        Raises:
            BackendError: if the device refuses it.
        """
        try:
            self._pipeline = self._device.pipeline(*self.source)
        except BackendError as error:
            raise _with_kernel(error, self.kernel) from None
        self._uniform = self._device.uniform(self._uniform_data)

    def dispatch(self, memories: Sequence[Memory]) -> Dispatch:
        """The dispatch of the kernel on the memories of a program.

        Raises:
            BackendError: if the device refuses it.
        """
        bound: list[Memory | Window] = []
        for index, windows in zip(self.bound, self._windows, strict=True):
            memory = memories[index]
            bound += [memory] if len(windows) == 1 else [Window(memory, *part) for part in windows]
        try:
            return self._device.make_dispatch(self._pipeline, self._uniform, bound, self.kernel.workgroups)
        except BackendError as error:
            raise _with_kernel(error, self.kernel) from None


def _with_kernel(error: BackendError, kernel: Kernel) -> BackendError:
    """Add to an error the ops that were being computed, and the user's lines that they come from."""
    names = ", ".join([e.op.name for e in kernel.equations])
    return add_context(error, names, [e.origin for e in kernel.equations if hasattr(e, "origin")])


def add_context(error: BackendError, names: str, origins: Sequence[Origin | None] = ()) -> BackendError:
    """Add to an error the ops, and the user's lines that they come from, or the running line if none is known."""
    cached: Sequence[Origin | None] = [line for line in origins if line is not None]
    lines = dict.fromkeys([str(line) for line in cached or [users_line()] if line is not None])
    error.add_note(f"computing {names}" + "".join([f"\n  at {line}" for line in lines]))
    return error
