"""Inlining: the programs that equations call, in place of the calls; and the branch that is known to be taken."""

from __future__ import annotations

from collections.abc import Iterator

from tensorken.programs.passes.rewriting import substituted
from tensorken_core.language.op import Op
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor


def inline(program: Program) -> Program:
    """Put the equations of a called program where the call stands, in its scope.

    A choice by a number that stands in the program is a call of one of its programs.  Other scopes of a called program
    stay apart, from one another and from those that there are.  Another op with programs, as a loop, stays.
    """
    if not any([_may_call(op) for op in program.ops]):
        return program
    equations: list[Equation] = []
    constants: dict[Variable, Tensor] = dict(program.constants)
    known: dict[Variable, Variable] = {}
    scopes = iter(range(1 + max([e.scope for e in program.equations], default=0), 2**62))
    for equation in program.equations:
        equation = substituted(equation, known)
        operands = equation.operands
        called = _called(equation)
        if called is None:
            equations.append(equation)
            continue
        constants.update(called.constants)
        body = inline(called)
        inner = dict(zip(body.inputs, operands[len(operands) - len(body.inputs) :], strict=True))
        equations += _renamed(body, inner, equation.scope, scopes)
        constants.update(body.constants)
        known.update(zip(equation.results, [inner.get(v, v) for v in body.outputs], strict=True))
    if not known:  # nothing was called, or what was called gives nothing
        return program
    return program.changed(
        equations=tuple(equations),
        constants=constants,
        outputs=tuple([known.get(v, v) for v in program.outputs]),
    )


def _may_call(op: Op) -> bool:
    return op.higher_order is not None or (op.params == ("program",) and op.body is not None)


def _called(equation: Equation) -> Program | None:
    """The program that an equation runs once, on its last operands."""
    op, operands, params = equation.op, equation.operands, equation.params
    if op.higher_order is not None and op.higher_order.layout(params).selects_branch:
        return params[0 if operands[0].value else 1] if isinstance(operands[0], Literal) else None
    return params[0] if op.params == ("program",) and op.body and isinstance(params[0], Program) else None


def _renamed(
    body: Program, inner: dict[Variable, Variable], scope: int, scopes: Iterator[int]
) -> Iterator[Equation]:
    """The equations with fresh results, as a program may be called twice; `inner` learns what they are.

    Those of the program's own scope come into the given one, those of each other scope into a fresh one.
    """
    own = {0: scope}
    for e in body.equations:
        operands = tuple([inner.get(v, v) for v in e.operands])
        results = tuple([Variable(v.shape, v.dtype) for v in e.results])
        inner.update(zip(e.results, results, strict=True))
        if e.scope not in own:
            own[e.scope] = next(scopes)
        yield Equation(e.op, operands, e.params, results, e.origin, own[e.scope])
