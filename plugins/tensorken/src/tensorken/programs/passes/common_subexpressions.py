"""Common subexpressions: compute equal expressions once."""

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
"""Ops whose result does not depend on the order of the operands, except for the bits of a NaN.  The op
table has no such attribute, as only this pass needs it."""

_ORDER_ZEROS = frozenset(OPS[name] for name in ("maximum", "minimum"))
"""Of 0.0 and -0.0 these ops may return the first or the second, so they commute only for integers."""


def without_common_subexpressions(program: Program) -> Program:
    """Merge equations with the same op, operands, params and scope.

    Equations of different scopes are not merged: values that a checkpoint recomputes must not be stored.  Nor are
    equations that run opaque ops.
    Bit for bit the same.
    """
    if len(program.equations) < 2:
        return program
    first_by_key: dict[Any, Equation] = {}
    replacements: dict[Variable, Variable] = {}
    written: list[Equation] = []
    opaque = program.opaque
    for equation in program.equations:
        equation = substituted(equation, replacements)
        if opaque and equation.opaque:
            written.append(equation)
            continue
        key = _key(equation)
        try:
            first = first_by_key.setdefault(key, equation)
        except TypeError:  # unhashable params cannot be compared
            first = equation
        if first is equation:
            written.append(equation)
        else:
            replacements.update(zip(equation.results, first.results, strict=True))
    if not replacements:
        return program
    return program.changed(
        equations=tuple(written), outputs=tuple([replacements.get(v, v) for v in program.outputs])
    )


def _key(equation: Equation) -> Any:
    """A key that is equal for two equations that compute the same."""
    op, params = equation.op, equation.params
    operands: Any = tuple([_literal_key(v) if isinstance(v, Literal) else v for v in equation.operands])
    if op in _COMMUTE and (op not in _ORDER_ZEROS or equation.results[0].dtype.kind != "float"):
        operands = frozenset(operands)
    return op, operands, exact_key(op, params) if params else params, equation.scope


def exact_key(op: Op, params: tuple[Any, ...]) -> Any:
    """Params as part of a key that distinguishes 0.0 and -0.0, and 1 and 1.0."""
    return repr(params) if "data" in op.params and "program" not in op.params else params


def same_value(v: Variable, w: Variable) -> bool:
    """Whether two variables are identical, or literals with the same shape, dtype and number."""
    return v is w or (
        isinstance(v, Literal) and isinstance(w, Literal) and _literal_key(v) == _literal_key(w)
    )


def _literal_key(v: Literal) -> Any:
    """A key of a literal that distinguishes 0.0 and -0.0, and 1 and True."""
    return v.shape, v.dtype, exact(v.value)
