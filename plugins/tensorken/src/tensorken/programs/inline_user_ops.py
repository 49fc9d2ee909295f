"""Inline user ops: replace ops that are not in the op table, such as ops of `tk.elementwise`, by programs of their
bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensorken.programs.names import callers_first
from tensorken_core.errors import ProgramError
from tensorken_core.language.op import OPS, Op
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Equation, Program


def with_user_ops_inlined(program: Program) -> Program:
    """The program with only ops of the op table and ops that run a program; custom derivative rules are dropped.

    Raises:
        ProgramError: if it has an opaque op, which has no other text.
    """
    done: dict[Program, Program] = {}
    for inner in reversed(callers_first(program)):
        equations = tuple([_with_body(inner, e, done) for e in inner.equations])
        unchanged = all([a is b for a, b in zip(equations, inner.equations, strict=True)])
        done[inner] = inner if unchanged else inner.changed(equations=equations)
    return done[program]


def _with_body(program: Program, equation: Equation, done: dict[Program, Program]) -> Equation:
    op = equation.op
    if op.opaque and not op.method:
        raise ProgramError(
            f"the op {op.name!r} calls a Python function ({equation.params[0]!r}), which cannot be saved or written as "
            f"text; trace the function without it"
        )
    params = tuple([done.get(p, p) if isinstance(p, Program) else p for p in equation.params])
    if OPS.get(op.name) is op or any([isinstance(p, Program) for p in params]):
        unchanged = all([a is b for a, b in zip(params, equation.params, strict=True)])
        return equation if unchanged else replace(equation, params=params)
    body: Any = op.body

    def function(*xs: Any) -> Sequence[Any]:
        results = body(*xs, *params)
        return [results] if op.results == 1 else results

    inner = with_user_ops_inlined(traced(function, equation.operands, program.backend, op.name))
    return replace(equation, op=op_of_program(op.name), params=(inner,))


def op_of_program(name: str) -> Op:
    """An op that runs its program and has no custom derivative rules."""
    return Op(
        name,
        None,
        shape=lambda *args: tuple([v.shape for v in args[-1].outputs]),
        dtype=lambda *args: tuple([v.dtype for v in args[-1].outputs]),
        params=("program",),
        body=lambda *args: args[-1].on(args[:-1]),
        results=None,
    )
