"""Invariants: what is the same at each step of a loop is computed once, before it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken.programs.passes.inner_programs import runs_programs
from tensorken_core.language.higher_order import HigherOrderRules
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Equation, Literal, Program, Variable

_EXPAND = OPS["expand"]


class _Divided(NamedTuple):
    """A step in two.

    Attributes:
        before: equations of fixed inputs alone.
        results: what these give that the step uses.
        step: what is left.
    """

    before: tuple[Equation, ...]
    results: tuple[Variable, ...]
    step: Program


def with_loop_invariants_hoisted(program: Program) -> Program:
    """What loops compute of fixed inputs alone is computed before them, and is a further input.

    Not what has a scope of its own, as it is computed again lest it be kept, nor what runs programs, as it might never
    end where the loop has no steps.  Bit for bit the same.
    """
    if not runs_programs(program):
        return program
    written: list[Equation] = []
    for equation in program.equations:
        written += (
            _divided(equation, equation.op.higher_order)
            if equation.op.higher_order is not None
            else [equation]
        )
    if len(written) == len(program.equations):
        return program
    return program.changed(equations=tuple(written))


def _divided(equation: Equation, whole: HigherOrderRules[Op]) -> list[Equation]:
    """The equation, after those that need not be in its programs."""
    parts = whole.layout(equation.params)
    if not parts.is_loop:
        return [equation]
    divided = [
        p.once(("invariants", parts.fixed), lambda p=p: _two_parts(p, parts.fixed)) for p in parts.programs
    ]
    if not any([d.before for d in divided]):
        return [equation]
    written: list[Equation] = []
    operands = list(equation.operands)
    for p, (before, results, _) in zip(parts.programs, divided, strict=True):
        known: dict[Variable, Variable] = dict(zip(p.inputs, equation.operands, strict=True))
        for e in before:
            fresh = tuple([Variable(v.shape, v.dtype) for v in e.results])
            known.update(zip(e.results, fresh, strict=True))
            taken = tuple([known.get(v, v) for v in e.operands])
            written.append(Equation(e.op, taken, e.params, fresh, e.origin, equation.scope))
        operands += [known[v] for v in results]
    programs = tuple([_with_inputs_of(divided, i) for i in range(len(divided))])
    inputs = [*range(len(parts.fixed)), *[None] * (len(operands) - len(equation.operands))]
    params = whole.with_programs(equation.params, programs, inputs, range(len(equation.results)))
    return [
        *written,
        Equation(equation.op, tuple(operands), params, equation.results, equation.origin, equation.scope),
    ]


def _with_inputs_of(divided: list[_Divided], i: int) -> Program:
    """A step that takes what its own first part gives, and those of the others."""
    step = divided[i].step
    more = [
        v if i == j else Variable(v.shape, v.dtype) for j, other in enumerate(divided) for v in other.results
    ]
    return step.changed(inputs=(*step.inputs, *more))


def _two_parts(program: Program, fixed: tuple[bool, ...]) -> _Divided:
    same = {v for v, one in zip(program.inputs, fixed, strict=True) if one}
    worth: set[Variable] = set()
    for e in program.equations:
        if (
            not e.scope
            and e.op.higher_order is None
            and all([v in same or isinstance(v, Literal) for v in e.operands])
        ):
            same.update(e.results)
            if e.op is not _EXPAND:  # which computes nothing, and gives what is larger than what it takes
                worth.update(e.results)
    if not worth:
        return _Divided((), (), program)
    rest = tuple([e for e in program.equations if worth.isdisjoint(e.results)])
    step = without_dead_code(program.changed(equations=rest))
    used = dict.fromkeys([*[v for e in step.equations for v in e.operands], *step.outputs])
    results = tuple([v for v in used if v in worth])
    return _Divided(_leading_to(program, results), results, step)


def _leading_to(program: Program, results: Collection[Variable]) -> tuple[Equation, ...]:
    needed = set(results)
    found: list[Equation] = []
    for e in reversed(program.equations):
        if not needed.isdisjoint(e.results):
            found.append(e)
            needed.update(e.operands)
    return tuple(reversed(found))
