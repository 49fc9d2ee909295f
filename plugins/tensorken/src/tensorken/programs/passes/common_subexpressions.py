"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.rewriting import substituted
from tensorken_core.language.dtypes import exact
from tensorken_core.language.op import OPS, Op
from tensorken_core.program.program import Equation, Literal, Program, Variable

_COMMUTE = frozenset(
    OPS[name]
    for name in ("add", "mul", "maximum", "minimum", "eq", "bitwise_and", "bitwise_or", "bitwise_xor")
)
"""Ops that give the same bits whichever operand comes first, but for the bits of a NaN."""

_DIFFER = frozenset(OPS[name] for name in ("maximum", "minimum"))
"""Of two zeros of unlike signs these may give the first or the second: they commute for integers alone."""


def without_common_subexpressions(program: Program) -> Program:
    """Equations with the same op, operands, params and scope become one.

    Never across scopes: what a checkpoint computes again must not be kept instead.  Bit for bit the same.
    """
    if len(program.equations) < 2:
        return program
    found: dict[Any, Equation] = {}
    known: dict[Variable, Variable] = {}
    written: list[Equation] = []
    for equation in program.equations:
        equation = substituted(equation, known)
        key = _key(equation)
        try:
            first = found.setdefault(key, equation)
        except TypeError:  # params that do not hash: whether they are the same cannot be told
            first = equation
        if first is equation:
            written.append(equation)
        else:
            known.update(zip(equation.results, first.results, strict=True))
    if not known:
        return program
    return program.changed(
        equations=tuple(written), outputs=tuple([known.get(v, v) for v in program.outputs])
    )


def _key(equation: Equation) -> Any:
    """Equal for two equations that compute the same."""
    op, params = equation.op, equation.params
    operands: Any = tuple([_told(v) if isinstance(v, Literal) else v for v in equation.operands])
    if op in _COMMUTE and (op not in _DIFFER or equation.results[0].dtype.kind != "float"):
        operands = frozenset(operands)
    return op, operands, exactly(op, params) if params else params, equation.scope


def exactly(op: Op, params: tuple[Any, ...]) -> Any:
    """Params as a part of a key; numbers that are equal and not the same, as 0.0 and -0.0, stay apart."""
    return repr(params) if "data" in op.params and "program" not in op.params else params


def same(v: Variable, w: Variable) -> bool:
    """Whether two are one value, or literals of one shape, dtype and number."""
    return v is w or (isinstance(v, Literal) and isinstance(w, Literal) and _told(v) == _told(w))


def _told(v: Literal) -> Any:
    """What tells a literal from others: 0.0 and -0.0, or 1 and True, are not the same."""
    return v.shape, v.dtype, exact(v.value)
