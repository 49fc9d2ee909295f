"""Factors: what all terms of a sum share is taken out of it, reciprocals become divisors, and numbers are multiplied.

These are no identities of floating-point numbers, as sums and quotients are rounded, but each does with fewer
roundings: results differ by units in the last place, of sums by those of the sum of the absolute values; by the sign of
a zero; and where only one of the two ways overflows or underflows.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.programs.passes.movement import reduces_nothing
from tensorken.programs.passes.rewriting import Rewriting, number, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes
from tensorken_core.program.program import Equation, Literal, Program, Variable

DIV, EXPAND, MUL, NEG, SUM = (OPS[name] for name in ("div", "expand", "mul", "neg", "sum"))

_MODERATE = 12
"""Numbers are multiplied by one another if this is more than the exponent of the product, so that no range matters."""


def with_factors_out(program: Program, backend: RawTensor[Any]) -> Program:
    """Signs and divisors out of sums, so that these see the products in them; reciprocals and numbers where they meet.

    Only of values that are used for nothing else, so that nothing is computed twice.  Not bit for bit the same: results
    are rounded less often, and a zero may have another sign, as -(1 - 1) has, and (-1 + 1) has not.
    """
    return rewritten(program, backend, _RULES)


def _sign_of_sum(sweep: Rewriting, e: Equation) -> Variable | None:
    """sum(-x) is -sum(x)."""
    x = e.operands[0]
    inner = sweep.operands_if(x, NEG)
    if inner is None or sweep.uses.get(x, 0) > 1:
        return None
    return sweep.write(NEG, (sweep.write(SUM, inner, e.params),))


def _divisor_of_sum(sweep: Rewriting, e: Equation) -> Variable | None:
    """sum(x / c) is sum(x) / c, for a c that is the same along the axes."""
    x, (axes,) = e.operands[0], e.params
    inner = sweep.operands_if(x, DIV)
    if inner is None or sweep.uses.get(x, 0) > 1:
        return None
    divisor = _along(sweep, inner[1], axes)
    if divisor is None:
        return None
    total = sweep.write(SUM, (inner[0],), e.params)
    if isinstance(divisor, Literal):
        divisor = Literal(total.shape, divisor.dtype, divisor.value)
    elif divisor.shape != total.shape:
        divisor = sweep.write(EXPAND, (divisor,), (total.shape,))
    return sweep.write(DIV, (total, divisor))


def _along(sweep: Rewriting, v: Variable, axes: Axes) -> Variable | None:
    """What is repeated along the axes to give a value; None if there is no such thing."""
    if isinstance(v, Literal):
        return v
    inner = sweep.operands_if(v, EXPAND)
    return inner[0] if inner and all([inner[0].shape[i] == 1 for i in axes]) else None


def _reciprocal(sweep: Rewriting, e: Equation) -> Variable | None:
    """a * (1 / b) is a / b, with one rounding instead of two."""
    for a, b in (e.operands, e.operands[::-1]):
        inner = sweep.operands_if(b, DIV)
        if inner and number(inner[0]) == 1.0 and sweep.uses.get(b, 0) == 1:
            return sweep.write(DIV, (a, inner[1]))
    return None


def _numbers_meet(sweep: Rewriting, e: Equation) -> Variable | None:
    """(x * c) * d is x * (c * d), for numbers c and d; (x * c) * (y * d) is (x * y) * (c * d); and so for quotients."""
    if e.results[0].dtype.kind != "float":
        return None
    a, b = e.operands
    x, c = _factored(sweep, a)
    if c is None:
        return None
    y, d = _factored(sweep, b)
    if d is None or (e.op is DIV and y is not None) or (x is None and y is None):
        return None
    factor = c * d if e.op is MUL else c / d if d else math.inf
    if not 2.0**-_MODERATE < abs(factor) < 2.0**_MODERATE:
        return None
    both = x if y is None else y if x is None else sweep.write(MUL, (x, y))
    return sweep.write(MUL, (both, Literal(e.results[0].shape, e.results[0].dtype, factor))) if both else None


def _factored(sweep: Rewriting, v: Variable) -> tuple[Variable | None, float | None]:
    """A value as a variable and a number that it is multiplied by; one is None if there is none."""
    value = number(v)
    if value is not None:
        return None, value
    found = sweep.definition(v)
    if found is not None and found.op in (MUL, DIV) and sweep.uses.get(v, 0) <= 1:
        a, b = found.operands
        right, left = number(b), number(a)
        if right:
            return a, right if found.op is MUL else 1.0 / right
        if left and found.op is MUL:
            return b, left
    return v, None


_RULES = {
    SUM: (reduces_nothing, _sign_of_sum, _divisor_of_sum),
    MUL: (_reciprocal, _numbers_meet),
    DIV: (_numbers_meet,),
}
