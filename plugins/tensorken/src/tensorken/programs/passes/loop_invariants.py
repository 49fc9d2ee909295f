"""Loop invariants: hoist equations with the same results at each step out of the loop."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.inner_programs import runs_programs
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Equation, Literal, Program, Variable

_EXPAND = OPS["expand"]


class _SplitStep(NamedTuple):
    """A step split in two.

    Attributes:
        before: the equations that depend only on fixed inputs.
        results: the results of these equations that the step uses.
        step: the remaining program.
    """

    before: tuple[Equation, ...]
    results: tuple[Variable, ...]
    step: Program


def with_loop_invariants_hoisted(program: Program) -> Program:
    """Move equations of loops that depend only on fixed inputs before the loop; their results become inputs of the
    loop.

    Equations in the scope of a checkpoint are not moved, since they are recomputed instead of stored.  Equations
    that run programs are not moved, because they might not terminate where the loop has no steps; nor are opaque
    ops.  Bit for bit the same.
    """
    if not runs_programs(program):
        return program
    written: list[Equation] = []
    for equation in program.equations:
        written += (
            _hoisted(equation, equation.op.higher_order)
            if equation.op.higher_order is not None
            else [equation]
        )
    if len(written) == len(program.equations):
        return program
    return program.changed(equations=tuple(written))


def _hoisted(equation: Equation, rules: HigherOrderRules[Op]) -> list[Equation]:
    """The hoisted equations, followed by the equation that runs the loop."""
    parts = rules.layout(equation.params)
    if not parts.is_loop:
        return [equation]
    splits = [p.once(("invariants", parts.fixed), lambda p=p: _split(p, parts.fixed)) for p in parts.programs]
    if not any([d.before for d in splits]):
        return [equation]
    written: list[Equation] = []
    operands = list(equation.operands)
    for p, (before, results, _) in zip(parts.programs, splits, strict=True):
        values: dict[Variable, Variable] = dict(zip(p.inputs, equation.operands, strict=True))
        for e in before:
            fresh = tuple([Variable(v.shape, v.dtype) for v in e.results])
            values.update(zip(e.results, fresh, strict=True))
            operands_before = tuple([values.get(v, v) for v in e.operands])
            written.append(Equation(e.op, operands_before, e.params, fresh, e.origin, equation.scope))
        operands += [values[v] for v in results]
    programs = tuple([_with_inputs_of(splits, i) for i in range(len(splits))])
    inputs = [*range(len(parts.fixed)), *[None] * (len(operands) - len(equation.operands))]
    params = rules.with_programs(equation.params, programs, inputs, range(len(equation.results)))
    return [
        *written,
        Equation(equation.op, tuple(operands), params, equation.results, equation.origin, equation.scope),
    ]


def _with_inputs_of(splits: list[_SplitStep], i: int) -> Program:
    """The step with the hoisted values of all programs of the loop as inputs."""
    step = splits[i].step
    more = [
        v if i == j else Variable(v.shape, v.dtype) for j, other in enumerate(splits) for v in other.results
    ]
    return step.changed(inputs=(*step.inputs, *more))


def _split(program: Program, fixed: tuple[bool, ...]) -> _SplitStep:
    invariant = {v for v, is_fixed in zip(program.inputs, fixed, strict=True) if is_fixed}
    hoistable: set[Variable] = set()
    for e in program.equations:
        if (
            not e.scope
            and e.op.higher_order is None
            and not e.op.opaque
            and all([v in invariant or isinstance(v, Literal) for v in e.operands])
        ):
            invariant.update(e.results)
            if e.op is not _EXPAND:  # an expand computes nothing, and its result is larger than its operand
                hoistable.update(e.results)
    if not hoistable:
        return _SplitStep((), (), program)
    rest = tuple([e for e in program.equations if hoistable.isdisjoint(e.results)])
    step = without_dead_code(program.changed(equations=rest))
    used = dict.fromkeys([*[v for e in step.equations for v in e.operands], *step.outputs])
    results = tuple([v for v in used if v in hoistable])
    return _SplitStep(_leading_to(program, results), results, step)


def _leading_to(program: Program, results: Collection[Variable]) -> tuple[Equation, ...]:
    needed = set(results)
    equations: list[Equation] = []
    for e in reversed(program.equations):
        if not needed.isdisjoint(e.results):
            equations.append(e)
            needed.update(e.operands)
    return tuple(reversed(equations))
