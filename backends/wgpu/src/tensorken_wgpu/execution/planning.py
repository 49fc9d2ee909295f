"""Planning: the kernels of a program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tensorken.kernels.keeping import Costs, reshape_sources
from tensorken.kernels.lowering import Lowered, lower
from tensorken.kernels.nests import CountingNest, FusionGroup
from tensorken.programs.ops import STEP_STACK
from tensorken_wgpu.attention.rewriting import with_attentions
from tensorken_wgpu.kernels import contractions, cumulative, fourier, scatters, shared_rows, sorting
from tensorken_wgpu.kernels.column_sums import joint_kernels
from tensorken_wgpu.kernels.epilogues import with_epilogues
from tensorken_wgpu.kernels.kernel import Kernel, divide_rows, kernels_of
from tensorken_wgpu.kernels.layouts import has_layout
from tensorken_wgpu.kernels.prologues import Sources, sources_of
from tensorken_wgpu.kernels.roots import Table
from tensorken_wgpu.kernels.scatters import has_scatter_kernels
from tensorken_wgpu.kernels.shared_rows import can_share
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.target import Target

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

MAX_TOTAL_ITERATIONS = 2**15
"""The most iterations of one invocation over all loops of a kernel; see `MAX_ITERATIONS` of kernels."""

MAX_COMPUTED = 400
"""The most elements and indices that a fused kernel computes: each is a line."""

COSTS = Costs()

GPU_COSTS = Costs(recomputed=32, read=16)
"""A GPU computes dozens of operations in the time in which it writes and reads an element of memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A kernel, and the values that no later kernel needs."""

    kernel: Kernel
    dead: tuple[Variable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The kernels of a program.

    Attributes:
        steps: the kernels, in order.
        outputs: for each output of the program the value in memory with the same elements.
        stacked: the outputs that are stored in stacks, which the caller provides.
    """

    steps: tuple[Step, ...]
    outputs: tuple[Variable, ...]
    stacked: tuple[Variable, ...] = ()

    @property
    def tables(self) -> list[Any]:
        """The constants that kernels read and the program does not have."""
        read: list[Any] = [x for step in self.steps for x in step.kernel.reads]
        return [*dict.fromkeys([x for x in read if isinstance(x, Table)])]


@dataclass(frozen=True, slots=True)
class FusionTarget:
    """The properties of a device that fusion depends on.

    Attributes:
        device: the device.
        sources: for each Fourier transform, cumulative sum, sort and attention the values that it reads.
    """

    device: Target
    sources: Sources

    @property
    def costs(self) -> Costs:
        """The costs of computing values again."""
        return COSTS if self.device.is_software else GPU_COSTS

    @property
    def max_operands(self) -> int:
        """The most values that one kernel may read and write."""
        return self.device.bindings

    def runs_alone(self, equation: Equation) -> bool:
        """Whether an op has its own kernels."""
        return has_scatter_kernels(equation, self.device)

    def read_by_call(self, equation: Equation) -> Collection[Variable] | None:
        """The values that a Fourier transform, a cumulative sum, a sort or an attention reads."""
        return self.sources.get(equation)

    def fits(self, operands: Collection[Variable], count: int) -> bool:
        """Whether the operands can be bound, and the text is not too long."""
        windows = [len(self.device.windows(size_of(v))) for v in operands]
        return sum(windows) <= self.device.bindings and count <= MAX_COMPUTED

    def can_reduce(self, nest: CountingNest) -> bool:
        """Whether one kernel can reduce the rows, as they are divided."""
        if has_layout(nest.rows, self.device):
            return can_share(nest, self.device)
        division = divide_rows(nest.rows, self.device)
        if division.parts > 1:  # one loop, and all values have one element per row
            return nest.loops == 2 and all(map(nest.group.is_outer, nest.group.values))
        return nest.loops * nest.rows.length <= MAX_TOTAL_ITERATIONS * division.invocations


def plan(program: Program, target: Target) -> Plan:
    """Plan the kernels of a program."""
    program = with_epilogues(sorting.with_joint_sorts(program), fourier.is_fused)
    program, attentions = with_attentions(program, target)
    transforms = {e: fourier.is_fused(e) for e in program.equations if e.op.name in fourier.OPS}
    transforms |= {e: True for e in program.equations if e.op.name in cumulative.OPS}
    sorts = {e: sorting.is_fused(e) for e in program.equations if e.op.name in sorting.OPS}
    fewer = replace(target, bindings=target.bindings - sorting.OTHERS)
    sources = {
        **sources_of(program, transforms, target),
        **sources_of(program, {e: True for e, is_fused in sorts.items() if is_fused}, fewer),
        **{e: e.operands for e in attentions},
    }
    if not all(sorts.values()):
        stored = reshape_sources(program)
        sources |= {e: [stored.get(x, x) for x in e.operands] for e in sorts if e not in sources}
    lowered = lower(program, FusionTarget(target, sources))
    joint = joint_kernels(lowered, target)
    kernels = [
        kernel
        for i, group in enumerate(lowered.groups)
        for kernel in joint.get(i)
        or attentions.get(lowered.producers[group.values[0]])
        or _kernels(group, lowered, sources, target)
    ]
    last = {x: i for i, kernel in enumerate(kernels) for x in (*kernel.writes, *kernel.reads)}
    last.update(dict.fromkeys([*lowered.outputs, *program.inputs, *program.constants], len(kernels)))
    steps = []
    for i, kernel in enumerate(kernels):
        dead = [x for x in (*kernel.reads, *kernel.writes) if last[x] == i]
        steps.append(Step(kernel, tuple(dead)))
    stacked = [v for e in program.equations if e.op is STEP_STACK for v in e.results]
    return Plan(tuple(steps), lowered.outputs, tuple(stacked))


def _kernels(group: FusionGroup, lowered: Lowered, sources: Sources, target: Target) -> list[Kernel]:
    producers, kept = lowered.producers, lowered.kept
    first = group.values[0]
    if producers[first].op.name in cumulative.OPS:
        return cumulative.kernels(producers[first], producers, sources[producers[first]], target)
    if producers[first].op.name in sorting.OPS:
        return sorting.kernels(producers[first], producers, sources[producers[first]], target)
    if producers[first] in sources:
        return fourier.kernels(producers[first], producers, sources[producers[first]], target)
    if has_scatter_kernels(producers[first], target):
        return scatters.kernels(group, producers, kept, target)
    for write in (contractions.kernels, shared_rows.kernels):
        if (written := write(group, producers, kept, target)) is not None:
            return written
    return kernels_of(group, producers, kept, target)
