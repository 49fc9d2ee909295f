"""Inlining: replace calls by the equations of the called programs, and conds with a known predicate by the branch
taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorken.programs.passes.rewriting import substituted
from tensorken_core.language.op import Op
from tensorken_core.program.program import Equation, Literal, Program, Variable
from tensorken_core.tensor.tensor import Tensor


def inline(program: Program) -> Program:
    """Replace each call by the equations of the called program, in the scope of the call.

    A cond whose predicate is a literal is a call of one of its branches.  Other scopes of a called program stay
    distinct from one another and from all other scopes.  Other ops that run programs, such as loops, are kept.
    """
    if not any([_may_call(op) for op in program.ops]):
        return program
    equations: list[Equation] = []
    constants: dict[Variable, Tensor] = dict(program.constants)
    replacements: dict[Variable, Variable] = {}
    is_inlined = False
    scopes = iter(range(1 + max([e.scope for e in program.equations], default=0), 2**62))
    for equation in program.equations:
        equation = substituted(equation, replacements)
        operands = equation.operands
        called = _called(equation)
        if called is None:
            equations.append(equation)
            continue
        is_inlined = True
        constants.update(called.constants)
        body = inline(called)
        mapping = dict(zip(body.inputs, operands[len(operands) - len(body.inputs) :], strict=True))
        equations += _renamed(body, mapping, equation.scope, scopes)
        constants.update(body.constants)
        replacements.update(zip(equation.results, [mapping.get(v, v) for v in body.outputs], strict=True))
    if not is_inlined:
        return program
    return program.changed(
        equations=tuple(equations),
        constants=constants,
        outputs=tuple([replacements.get(v, v) for v in program.outputs]),
    )


def _may_call(op: Op) -> bool:
    return op.higher_order is not None or (op.params == ("program",) and op.body is not None)


def _called(equation: Equation) -> Program | None:
    """The program that an equation runs exactly once, on its last operands; None if there is none."""
    op, operands, params = equation.op, equation.operands, equation.params
    if op.higher_order is not None and op.higher_order.layout(params).selects_branch:
        return params[0 if operands[0].value else 1] if isinstance(operands[0], Literal) else None
    return params[0] if op.params == ("program",) and op.body and isinstance(params[0], Program) else None


def _renamed(
    body: Program, mapping: dict[Variable, Variable], scope: int, scopes: Iterator[int]
) -> Iterator[Equation]:
    """The equations with fresh result variables, since a program may be called twice; `mapping` gets the variables.

    Equations in scope 0 get the given scope; each other scope becomes a fresh scope.
    """
    scope_of = {0: scope}
    for e in body.equations:
        operands = tuple([mapping.get(v, v) for v in e.operands])
        results = tuple([Variable(v.shape, v.dtype) for v in e.results])
        mapping.update(zip(e.results, results, strict=True))
        if e.scope not in scope_of:
            scope_of[e.scope] = next(scopes)
        yield Equation(e.op, operands, e.params, results, e.origin, scope_of[e.scope])
