"""Factors: move common factors out of sums, turn reciprocals into divisions, and multiply numbers together.

These are not identities of floating-point numbers, since sums and quotients are rounded, but each form has fewer
roundings.  Results differ by units in the last place, for sums relative to the sum of the absolute values; by the sign
of a zero; and where only one of the two forms overflows or underflows.
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

_MAX_EXPONENT = 12
"""Numbers are multiplied together if the exponent of the product is below this, so that no product overflows or
underflows."""


def with_factors_out(program: Program, backend: RawTensor[Any]) -> Program:
    """Move signs and divisors out of sums, so that sums of products become contractions; merge reciprocals and
    numbers.

    Only values with a single use change, so no value is computed twice.  Not bit for bit the same: results have fewer
    roundings, and a zero may have another sign: -(1 - 1) is -0.0, and (-1 + 1) is 0.0.
    """
    return rewritten(program, backend, _RULES)


def _sign_of_sum(rewriting: Rewriting, e: Equation) -> Variable | None:
    """sum(-x) is -sum(x)."""
    x = e.operands[0]
    inner = rewriting.operands_if(x, NEG)
    if inner is None or rewriting.uses.get(x, 0) > 1:
        return None
    return rewriting.write(NEG, (rewriting.write(SUM, inner, e.params),))


def _divisor_of_sum(rewriting: Rewriting, e: Equation) -> Variable | None:
    """sum(x / c) is sum(x) / c, if c is constant along the axes."""
    x, (axes,) = e.operands[0], e.params
    inner = rewriting.operands_if(x, DIV)
    may_overflow = x.dtype.wide is not x.dtype
    if inner is None or rewriting.uses.get(x, 0) > 1 or may_overflow:
        return None
    divisor = _unrepeated(rewriting, inner[1], axes)
    if divisor is None:
        return None
    total = rewriting.write(SUM, (inner[0],), e.params)
    if isinstance(divisor, Literal):
        divisor = Literal(total.shape, divisor.dtype, divisor.value)
    elif divisor.shape != total.shape:
        divisor = rewriting.write(EXPAND, (divisor,), (total.shape,))
    return rewriting.write(DIV, (total, divisor))


def _unrepeated(rewriting: Rewriting, v: Variable, axes: Axes) -> Variable | None:
    """The value whose repetition along the axes gives v; None if v is not constant along them."""
    if isinstance(v, Literal):
        return v
    inner = rewriting.operands_if(v, EXPAND)
    return inner[0] if inner and all([inner[0].shape[i] == 1 for i in axes]) else None


def _reciprocal(rewriting: Rewriting, e: Equation) -> Variable | None:
    """a * (1 / b) is a / b, with one rounding instead of two."""
    for a, b in (e.operands, e.operands[::-1]):
        inner = rewriting.operands_if(b, DIV)
        if inner and number(inner[0]) == 1.0 and rewriting.uses.get(b, 0) == 1:
            return rewriting.write(DIV, (a, inner[1]))
    return None


def _merge_numbers(rewriting: Rewriting, e: Equation) -> Variable | None:
    """(x * c) * d is x * (c * d), and (x * c) * (y * d) is (x * y) * (c * d), for numbers c and d; likewise for
    quotients.
    """
    if e.results[0].dtype.kind != "float":
        return None
    a, b = e.operands
    x, c = _factored(rewriting, a)
    if c is None:
        return None
    y, d = _factored(rewriting, b)
    if d is None or (e.op is DIV and y is not None) or (x is None and y is None):
        return None
    factor = c * d if e.op is MUL else c / d if d else math.inf
    if not 2.0**-_MAX_EXPONENT < abs(factor) < 2.0**_MAX_EXPONENT:
        return None
    both = x if y is None else y if x is None else rewriting.write(MUL, (x, y))
    return (
        rewriting.write(MUL, (both, Literal(e.results[0].shape, e.results[0].dtype, factor)))
        if both
        else None
    )


def _factored(rewriting: Rewriting, v: Variable) -> tuple[Variable | None, float | None]:
    """A value as a variable times a number; a missing factor is None."""
    value = number(v)
    if value is not None:
        return None, value
    definition = rewriting.definition(v)
    if definition is not None and definition.op in (MUL, DIV) and rewriting.uses.get(v, 0) <= 1:
        a, b = definition.operands
        right, left = number(b), number(a)
        if right:
            return a, right if definition.op is MUL else 1.0 / right
        if left and definition.op is MUL:
            return b, left
    return v, None


_RULES = {
    SUM: (reduces_nothing, _sign_of_sum, _divisor_of_sum),
    MUL: (_reciprocal, _merge_numbers),
    DIV: (_merge_numbers,),
}
