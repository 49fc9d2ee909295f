"""Showing: the kernels of a plan, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorken.kernels.elements import INLINE
from tensorken.kernels.nests import FusionGroup
from tensorken.programs.compiled import Kernel as ShownKernel
from tensorken.programs.costs import flop_count, size_in_bytes
from tensorken_core.program.program import Equation
from tensorken_llvm.axes import loops_of
from tensorken_llvm.control_flow import ControlFlow
from tensorken_llvm.convolutions import Convolution
from tensorken_llvm.plans import Kernel, Plan
from tensorken_llvm.products import MatrixProduct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorken_core.program.program import Variable


def shown_kernels(plan: Plan) -> list[ShownKernel]:
    """The kernels and calls of a plan, in the order in which they run; each loop is followed by what a step runs."""
    found = []
    for step in plan.steps:
        if isinstance(step, Equation):
            name = "numpy"
            reads: Sequence[Variable] = step.operands
            writes: Sequence[Variable] = step.results
            equations: list[Equation] = [step]
            loops: tuple[int, ...] = ()
        else:
            name, equations, loops = _contents(plan, step)
            reads, writes = (*step.reads, *step.replaces.values()), step.writes
        ops = tuple([e.op.name for e in equations if e.op.name not in _MOVEMENTS or len(equations) == 1])
        found.append(ShownKernel(name, ops, loops, _bytes(reads), _bytes(writes), _flop(equations)))
        if isinstance(step, Kernel) and isinstance(step.computes, ControlFlow):
            for inner in step.computes.plans:
                found += shown_kernels(inner)
    return found


_MOVEMENTS = INLINE - {"cast"}
"""Ops that only change the index at which a kernel reads."""


def _contents(plan: Plan, kernel: Kernel) -> tuple[str, list[Equation], tuple[int, ...]]:
    """The name of a kernel, its equations and its loops."""
    computes = kernel.computes
    if isinstance(computes, FusionGroup):
        loops = loops_of(computes, plan.lowered.producers, plan.lowered.kept)
        return (
            "kernel",
            equations_of(plan, computes),
            tuple([loop.size for loop in (*loops.outer, *loops.inner)]),
        )
    if isinstance(computes, MatrixProduct):
        axes = (*computes.batch, *computes.summed)
        equation = plan.lowered.producers[computes.result]
        return computes.routine, [equation], tuple([axis.size for axis in axes if axis.size > 1])
    equation = plan.lowered.producers[kernel.writes[0]]
    if isinstance(computes, Convolution):
        return "convolution", [equation], ()
    if not isinstance(computes, ControlFlow):
        return "kernel", [equation], ()
    name = "branch" if equation.op.name == "cond" else "loop"
    return name, [equation], (equation.params[-2],) if equation.op.name == "scan" else ()


def equations_of(plan: Plan, group: FusionGroup) -> list[Equation]:
    """The equations that a kernel computes, each after those of its operands."""
    producers, kept = plan.lowered.producers, plan.lowered.kept
    found: dict[Equation, None] = {}
    done: set[Variable] = set()
    pending = list(reversed(group.values))
    while pending:
        v = pending[-1]
        equation = producers.get(v) if v not in kept or v in group.values else None
        missing = [] if equation is None or v in done else [x for x in equation.operands if x not in done]
        if missing and equation not in found:
            pending += missing
            continue
        if equation is not None:
            found[equation] = None
        done.add(v)
        pending.pop()
    return list(found)


def _bytes(values: Iterable[Variable]) -> int:
    return size_in_bytes([(v.shape, v.dtype) for v in values if not hasattr(v, "value")])


def _flop(equations: Sequence[Equation]) -> int:
    return sum(
        [
            flop_count(e.op, [v.shape for v in e.operands], e.params, [v.shape for v in e.results])
            for e in equations
        ]
    )
