"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.rewriting import substituted
from tensorken.programs.program import Equation, Literal, Program, Variable
from tensorken.spec.dtypes import exact
from tensorken.spec.op import OPS, Op

_COMMUTE = frozenset(
    OPS[name]
    for name in ("add", "mul", "maximum", "minimum", "eq", "bitwise_and", "bitwise_or", "bitwise_xor")
)
"""Ops that give the same bits whichever operand comes first, but for the bits of a NaN."""

_DIFFER = ("maximum", "minimum")
"""Of two zeros of unlike signs these may give the first or the second: they commute for integers alone."""


def without_common_subexpressions(program: Program) -> Program:
    """Equations with the same op, operands, params and scope become one.

    Never across scopes: what a checkpoint computes again must not be kept instead.  Bit for bit the same.
    """
    found: dict[Any, Equation] = {}
    known: dict[Variable, Variable] = {}
    written: list[Equation] = []
    for equation in program.equations:
        equation = substituted(equation, known)
        key = _key(equation)
        first = found.setdefault(key, equation) if key is not None else equation
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
    """Equal for two equations that compute the same; None if that cannot be told."""
    operands = [_same(v) for v in equation.operands]
    if equation.op in _COMMUTE and (
        equation.op.name not in _DIFFER or equation.results[0].dtype.kind != "float"
    ):
        operands.sort(key=hash)
    key = (equation.op, tuple(operands), exactly(equation.op, equation.params), equation.scope)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def exactly(op: Op, params: tuple[Any, ...]) -> Any:
    """Params as a part of a key; numbers that are equal and not the same, as 0.0 and -0.0, stay apart."""
    return repr(params) if "data" in op.params and "program" not in op.params else params


def _same(v: Variable) -> Any:
    """A variable by its identity, a literal by its value: 0.0 and -0.0, or 1 and True, are not the same."""
    return (v.shape, v.dtype, exact(v.value)) if isinstance(v, Literal) else v
