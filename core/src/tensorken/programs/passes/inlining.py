"""Inlining: the programs that equations call, in place of the calls."""

from __future__ import annotations

from collections.abc import Iterator

from tensorken.programs.program import Equation, Program, Variable
from tensorken.tensor import Tensor


def inline(program: Program) -> Program:
    """Put the equations of a called program where the call stands, in its scope.

    Other scopes of the called program stay apart, from one another and from those that there are.  An op with programs
    that is no mere call, as a loop, stays.
    """
    equations: list[Equation] = []
    constants: dict[Variable, Tensor] = dict(program.constants)
    known: dict[Variable, Variable] = {}
    scopes = iter(range(1 + max([e.scope for e in program.equations], default=0), 2**62))
    for equation in program.equations:
        operands = tuple([known.get(v, v) for v in equation.operands])
        called = equation.params[0] if equation.op.params == ("program",) and equation.op.body else None
        if not isinstance(called, Program):
            equations.append(_with(equation, operands))
            continue
        constants.update(called.constants)
        body = inline(called)
        inner = dict(zip(body.inputs, operands, strict=True))
        equations += _renamed(body, inner, equation.scope, scopes)
        constants.update(body.constants)
        known.update(zip(equation.results, [inner.get(v, v) for v in body.outputs], strict=True))
    return program.changed(
        equations=tuple(equations),
        constants=constants,
        outputs=tuple([known.get(v, v) for v in program.outputs]),
    )


def _with(equation: Equation, operands: tuple[Variable, ...]) -> Equation:
    if operands == equation.operands:
        return equation
    return Equation(equation.op, operands, equation.params, equation.results, equation.origin, equation.scope)


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
