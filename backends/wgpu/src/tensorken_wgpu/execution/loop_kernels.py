"""Loop kernels: one kernel runs a loop of elementwise ops, each invocation for one element of the carries.

The carries stay in variables of the invocation, so a step reads its slices and writes its stacks, and nothing else.
Each invocation computes the carries of one element again.  A `while_loop` whose condition depends on such carries
ends in the kernel.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING

from tensorken.kernels.element_indices import STEP
from tensorken.kernels.elements import INLINE
from tensorken.kernels.index_expressions import IndexExpression, constant_index, written_variable
from tensorken_core.program.program import Variable
from tensorken_wgpu.execution.planning import MAX_COMPUTED, Plan, Step
from tensorken_wgpu.kernels.kernel import WORKGROUP, Kernel, kernel_template, workgroup_grid
from tensorken_wgpu.wgsl.ops import OPS, TYPES
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_wgpu.execution.steps import RecordedLoop

MAX_STEPS = 1024
"""The most steps of one kernel; more steps take several, as systems end kernels that run for seconds."""


def loop_plan(loop: RecordedLoop, target: Target) -> Plan | None:
    """The plan of a program that runs `MAX_STEPS` steps of a loop, of which its number counts.

    None if an element of a carry depends on other elements of carries, or there are too many values.
    """
    step = loop.step
    sizes = {prod(v.shape) for v in (*[step.inputs[i] for i in loop.carried], *step.outputs)}
    if len(sizes | {1}) > 2 or 0 in sizes or len(step.equations) > MAX_COMPUTED:
        return None
    if not all([e.op.name in OPS or e.op.name in INLINE for e in step.equations]):
        return None
    writing = _Writing(loop, max(sizes), target)
    kernel = writing.kernel()
    if len(kernel.reads) + len(kernel.writes) > target.bindings or writing.reads_other_elements:
        return None
    stacked = tuple(step.outputs[len(loop.carried) :])
    return Plan((Step(kernel, ()),), (*writing.last, *stacked), stacked)


class _Writing:
    """Writes the kernel of a loop.

    Args:
        loop: the loop.
        count: of the elements of the largest carry or stacked value.
        target: the device.

    Attributes:
        last: the values of the carries after the steps.
    """

    def __init__(self, loop: RecordedLoop, count: int, target: Target) -> None:
        self.loop = loop
        self.count = count
        self.carries = [loop.step.inputs[i] for i in loop.carried]
        self.last = [Variable(v.shape, v.dtype) for v in self.carries]
        step = loop.step
        producers = {v: e for e in step.equations for v in e.results}
        self.writer = Writer(producers, {*step.inputs, *step.constants}, frozenset(), target=target)
        self.index = written_variable("t", count)

    @property
    def reads_other_elements(self) -> bool:
        """Whether a step needs elements of carries that the invocation does not have."""
        return not self.writer.loads.keys().isdisjoint(self.carries)

    def kernel(self) -> Kernel:
        """The kernel."""
        writer, loop = self.writer, self.loop
        writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
        writer.line(f"if (t >= {integer(self.count)}) {{ return; }}")
        if loop.length is not None:
            writer.line(f"let first = {STEP} * {MAX_STEPS}u;")
        names = [writer.new_name() for _ in self.carries]
        for v, name in zip(self.carries, names, strict=True):
            writer.line(f"var {name}: {TYPES[v.dtype.name]} = {writer.load(v, self._index_of(v))};")
        with writer.block(f"for (var k = 0u; k < {MAX_STEPS}u; k += 1u)"):
            for v, name in zip(self.carries, names, strict=True):
                writer.define(v, self._index_of(v), name)
            self._step(names)
        for v, name in zip(self.last, names, strict=True):
            self._store(v, name)
        steps = min(loop.length or MAX_STEPS, MAX_STEPS)
        return Kernel(
            kernel_template(writer, WORKGROUP),
            workgroup_grid(-(-self.count // WORKGROUP)),
            tuple(writer.reads),
            tuple(writer.writes),
            self.count * steps,
            loop.step.equations,
            is_proved=writer.is_proved,
        )

    def _step(self, names: list[str]) -> None:
        """Write the body of the loop: the results of a step, which then replace the carries."""
        writer, loop = self.writer, self.loop
        if loop.length is not None:
            writer.line(f"if (first + k >= {integer(loop.length)}) {{ break; }}")
            last = integer(loop.length - 1)
            writer.line(f"let {STEP} = {f'{last} - (first + k)' if loop.reverse else 'first + k'};")
        if loop.predicate is not None:
            writer.line(f"if (!({self._value(loop.predicate)})) {{ break; }}")
        outputs = [*loop.step.outputs]
        values = [self._value(v) for v in outputs]
        after = []
        for v, value in zip(outputs[: len(names)], values, strict=False):
            after.append(writer.new_name())
            writer.line(f"let {after[-1]}: {TYPES[v.dtype.name]} = {value};")
        for v, value in zip(outputs[len(names) :], values[len(names) :], strict=True):
            self._store(v, value)
        for name, value in zip(names, after, strict=True):
            writer.line(f"{name} = {value};")

    def _value(self, v: Variable) -> str:
        return self.writer.value(v, self.writer.element(v.shape, self._index_of(v)))

    def _store(self, v: Variable, value: str) -> None:
        """Write an element; one invocation writes a single element."""
        is_single = prod(v.shape) == 1 < self.count
        with self.writer.block("if (t == 0u)") if is_single else nullcontext():
            self.writer.store(v, [(self._index_of(v), value)])

    def _index_of(self, v: Variable) -> IndexExpression:
        return self.index if prod(v.shape) == self.count else constant_index(0)
