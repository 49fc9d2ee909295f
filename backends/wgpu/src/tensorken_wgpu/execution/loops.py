"""Loops: run programs with loops, whose steps are submitted one after the other without waiting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tensorken.programs.pieces import joined, pieces, runner_of
from tensorken_core.program.program import Equation, Program
from tensorken_wgpu.device.device import Memory
from tensorken_wgpu.execution.loop_kernels import MAX_STEPS, loop_plan
from tensorken_wgpu.execution.planning import Plan
from tensorken_wgpu.execution.programs import Array, Recorded
from tensorken_wgpu.execution.reloading import HasDevice, ReloadingProgram
from tensorken_wgpu.execution.steps import RECORDED, RecordedLoop, with_recorded_loops, work_of
from tensorken_wgpu.wgsl.dtypes import SIZES
from tensorken_wgpu.wgsl.target import Target

Run = Callable[..., Sequence[Array]]

MAX_AHEAD = 64
"""The most steps of a `while_loop` that are submitted before the condition is read."""

MAX_WORK_AHEAD = 2**30
"""The most work of such steps, see `work_of`, as they are computed in vain once the condition is False."""

MAX_PERIOD = 6
"""The most steps after which the carries may be in the same memories again: two, or more if a step exchanges them."""


class Backend(HasDevice):
    """A backend that runs programs."""

    target: Target

    @abstractmethod
    def load(self, program: Program, planned: Plan | None = None) -> ReloadingProgram:
        """A function that runs a program of ops that have kernels, see `LoadedProgram`; planned here if it is not."""


def compiled(program: Program, backend: Backend) -> Run:
    """A function that runs a program, which may have ops without kernels, such as loops and branches.

    The program is cut at these ops: the equations between them are compiled.  Loops are recorded where possible; else
    they run step by step, and branches read their predicate.

    Args:
        program: after the passes.
        backend: runs it.
    """
    if not all([backend.has(e.op) for e in program.equations]) and backend.device.has_steps:
        program = with_recorded_loops(program, backend.has, backend.target.binding_size)
    if all([backend.has(e.op) for e in program.equations]):
        return backend.load(program)
    parts = pieces(program, lambda e: not backend.has(e.op))
    return joined(program, [(part, _run_of(part, backend)) for part in parts], backend)


def checking(run: Run, program: Program, backend: Backend) -> Run:
    """The function that runs a program; it refuses values of other dtypes and shapes than those of the inputs."""
    if isinstance(run, ReloadingProgram):
        run.typed = Program(program.inputs, (), (), name=program.name)
        return run

    def checked(xs: Sequence[Array], *context: Any) -> Sequence[Array]:
        program.check_inputs(backend, xs, repeats=True)
        return run(xs, *context)

    return checked


def _run_of(part: Equation | Program, backend: Backend) -> Run:
    if isinstance(part, Program):
        return backend.load(part)
    if part.op is RECORDED:
        (loop,) = part.params
        if loop.condition is None:
            return _Counted(loop, backend)
        return _Conditional(loop, loop.condition, backend)
    run = runner_of(part, backend)
    return lambda xs, *_: run(xs)


class _Steps:
    """Runs steps of a loop.

    Args:
        loop: the loop.
        backend: runs it.

    Attributes:
        per_run: how many steps run at once.
    """

    def __init__(self, loop: RecordedLoop, backend: Backend) -> None:
        self._carried = loop.carried
        self._backend = backend
        planned = loop_plan(loop, backend.target)
        self._run = compiled(loop.step, backend) if planned is None else backend.load(loop.step, planned)
        self.per_run = 1 if planned is None else MAX_STEPS

    def __call__(
        self, values: list[Array], steps: Sequence[int | None], stacks: Sequence[Memory | None] = ()
    ) -> None:
        """Submit steps, and replace the carries among the values.

        Args:
            values: the operands of the first step.
            steps: the numbers of the steps, in order; of the runs, if several steps run at once.
            stacks: the memory of the stacks.
        """
        run = self._run
        if isinstance(run, ReloadingProgram):
            self._repeat(run, values, steps, stacks)
            return
        for step in steps:
            self._replace(values, run(values, step, stacks))

    def _repeat(
        self,
        run: ReloadingProgram,
        values: list[Array],
        steps: Sequence[int | None],
        stacks: Sequence[Memory | None],
    ) -> None:
        """Submit the steps of one program.

        Once the carries are in the same memories as before an earlier step, all following steps run the kernels of
        the steps from there on.
        """
        program = run.loaded()
        pending = iter(steps)
        recent: list[Recorded] = []
        before: dict[tuple[int | None, ...], int] = {}  # by the memories of the carries, indices in `recent`
        blocks: list[list[Memory]] = []  # each the memory of the values that a step computes
        for step in pending:
            if not program.is_hot or len(recent) == MAX_PERIOD:
                self._replace(values, program(values, step, stacks))
                continue
            carries = [values[i].memory for i in self._carried]
            keys = tuple([None if memory is None else memory.key for memory in carries])
            first = before.setdefault(keys, len(recent))
            if first < len(recent):
                period, rest = recent[first:], [step, *pending]
                self._backend.device.repeat_steps([each.dispatches for each in period], rest)
                self._replace(values, period[(len(rest) - 1) % len(period)].outputs)
                return
            block = next((block for block in blocks if not {x.key for x in block} & {*keys}), None)
            if block is None:
                block = program.allocated(blocks[0] if blocks else None)
                blocks.append(block)
            recent.append(program.recorded(values, step, stacks, block))
            self._replace(values, recent[-1].outputs)

    def _replace(self, values: list[Array], outputs: Sequence[Array]) -> None:
        for i, y in zip(self._carried, outputs, strict=False):
            values[i] = y


class _Counted:
    """Runs a loop of a known number of steps."""

    def __init__(self, loop: RecordedLoop, backend: Backend) -> None:
        self._loop = loop
        self._backend = backend
        self._steps = _Steps(loop, backend)

    def __call__(self, inputs: Sequence[Array], *_: Any) -> list[Array]:
        loop, device = self._loop, self._backend.device
        stacks = []
        for v in loop.stacked:
            size = prod(v.shape) * SIZES[v.dtype.name]
            stacks.append(Array(v.shape, v.dtype, device.allocate(size) if size else None))
        values = [*inputs]
        runs = range(-(-(loop.length or 0) // self._steps.per_run))
        falls = loop.reverse and self._steps.per_run == 1
        self._steps(values, runs[::-1] if falls else runs, [x.memory for x in stacks])
        return [*[values[i] for i in loop.carried], *stacks]


class _Conditional:
    """Runs a loop with a condition, which is read after several steps: once it is False, steps keep all values."""

    def __init__(self, loop: RecordedLoop, condition: Program, backend: Backend) -> None:
        self._carried = loop.carried
        self._backend = backend
        self._steps = _Steps(loop, backend)
        self._condition = compiled(condition, backend)
        work = self._steps.per_run * work_of(loop.step)
        self._most = min(max(MAX_WORK_AHEAD // max(work, 1), 1), MAX_AHEAD)
        self._steps_before = 1  # of the last run

    def __call__(self, inputs: Sequence[Array], *_: Any) -> list[Array]:
        values = [*inputs]
        taken, ahead = 0, min(self._steps_before, self._most)
        while True:
            self._steps(values, [None] * ahead)
            taken += ahead
            (goes_on,) = self._condition(values)
            if not self._backend.ravel(goes_on)[0]:
                break
            ahead = min(taken, self._most)
        self._steps_before = taken
        return [values[i] for i in self._carried]
