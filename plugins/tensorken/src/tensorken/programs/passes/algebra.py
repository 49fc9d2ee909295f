"""Algebra: equations that a simpler one, or a value that is there already, stands in for.

Every rule of `EXACT` gives the same bits, also for signed zeros, infinities and NaN (but for the sign and payload of a
NaN) and for integers that wrap; what it rests on stands beside it.  What is true of real numbers alone is not here:
x + 0.0 turns -0.0 into 0.0, x * 0.0 keeps NaN, -(a - b) has the other zero than b - a, x / x is NaN at 0.

Small whole powers are computed by multiplication, where that is no less accurate than the backend declares `pow`.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.programs.passes.common_subexpressions import same
from tensorken.programs.passes.constants import zeros
from tensorken.programs.passes.rewriting import Rewriting, Rule, number, rewritten
from tensorken_core.language.dtypes import DType, bool_
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

ABS, ADD, AND, CAST, DIV, EQ = (OPS[n] for n in ("abs", "add", "bitwise_and", "cast", "div", "eq"))
FLOOR_DIVIDE, LT, MAXIMUM, MINIMUM = (OPS[n] for n in ("floor_divide", "lt", "maximum", "minimum"))
MUL, NEG, OR, POW, RELU, SQUARE, SUB = (
    OPS[n] for n in ("mul", "neg", "bitwise_or", "pow", "relu", "square", "sub")
)
LEFT, RIGHT, WHERE, XOR = (OPS[n] for n in ("shift_left", "shift_right", "where", "bitwise_xor"))

NEGATIONS = 2
"""How often a negated value may be used for its sign to be moved beyond products: each use then negates by itself."""


def simplified(program: Program, backend: RawTensor[Any]) -> Program:
    """Equations replaced by the rules.

    Bit for bit the same, but for powers, which are within what the backend declares for `pow`.
    """
    return rewritten(program, backend, _RULES)


# ---- neutral and absorbing numbers -------------------------------------------------------------------------


def _is(v: Variable, value: float) -> bool:
    """Whether a value is this number, its sign included."""
    if not isinstance(v, Literal) or v.value != value:
        return False
    return math.copysign(1.0, v.value) == math.copysign(1.0, value)


def _integer(equation: Equation) -> bool:
    return equation.results[0].dtype.kind == "int"


def _right(value: float) -> Rule:
    """x op value is x."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        return e.operands[0] if _is(e.operands[1], value) else None

    return rule


def _neutral(value: float, ints: bool = False) -> Rule:
    """x op value is x, and so is value op x."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        a, b = e.operands
        if _is(b, value) and not (ints and not _integer(e)):
            return a
        return b if _is(a, value) and not (ints and not _integer(e)) else None

    return rule


def _zero_if_either_is(value: int) -> Rule:
    """For integers: the result is 0 if one operand is this number."""

    def rule(sweep: Rewriting, e: Equation) -> Variable | None:
        if _integer(e) and (_is(e.operands[0], value) or _is(e.operands[1], value)):
            return zeros(e.results[0].shape, e.results[0])
        return None

    return rule


# ---- one operand twice -------------------------------------------------------------------------------------


def _either(sweep: Rewriting, e: Equation) -> Variable | None:
    """x op x is x."""
    return e.operands[-1] if same(e.operands[-1], e.operands[-2]) else None


def _nothing(sweep: Rewriting, e: Equation) -> Variable | None:
    """x op x is 0 or False; for floats only that NaN and all else are not less than themselves."""
    if same(*e.operands) and (_integer(e) or e.op is LT):
        return zeros(e.results[0].shape, e.results[0])
    return None


def _equal(sweep: Rewriting, e: Equation) -> Variable | None:
    """x == x, where there is no NaN."""
    a, b = e.operands
    return Literal(a.shape, bool_, True) if a.dtype.kind != "float" and same(a, b) else None


# ---- signs -------------------------------------------------------------------------------------------------


def _unnegated(sweep: Rewriting, e: Equation) -> Variable | None:
    """-(-x) is x."""
    inner = sweep.operands_if(e.operands[0], NEG)
    return inner[0] if inner else None


def _even(sweep: Rewriting, e: Equation) -> Variable | None:
    """The absolute value and the square of -x and of abs(x) are those of x."""
    inner = sweep.operands_if(e.operands[0], NEG) or sweep.operands_if(e.operands[0], ABS)
    return sweep.write(e.op, inner) if inner else None


def _add_of_negated(sweep: Rewriting, e: Equation) -> Variable | None:
    """a + -b is a - b: subtraction is defined so (IEEE 754, section 5.4.1), and integers wrap."""
    a, b = e.operands
    inner = sweep.operands_if(b, NEG)
    if inner:
        return sweep.write(SUB, (a, inner[0]))
    inner = sweep.operands_if(a, NEG)
    return sweep.write(SUB, (b, inner[0])) if inner else None


def _add_to_itself(sweep: Rewriting, e: Equation) -> Variable | None:
    """x + x is x * 2."""
    a, b = e.operands
    return (
        sweep.write(MUL, (a, Literal(a.shape, a.dtype, 2.0 if a.dtype.kind == "float" else 2)))
        if a is b
        else None
    )


def _sub_from_negated_self(sweep: Rewriting, e: Equation) -> Variable | None:
    """-x - x is x * -2."""
    a, b = e.operands
    inner = sweep.operands_if(a, NEG)
    if inner is None or inner[0] is not b:
        return None
    return sweep.write(MUL, (b, Literal(b.shape, b.dtype, -2.0 if b.dtype.kind == "float" else -2)))


def _sub_of_negated(sweep: Rewriting, e: Equation) -> Variable | None:
    """a - -b is a + b."""
    inner = sweep.operands_if(e.operands[1], NEG)
    return sweep.write(ADD, (e.operands[0], inner[0])) if inner else None


def _sub_from_negative_zero(sweep: Rewriting, e: Equation) -> Variable | None:
    """-0.0 - x is -x, also for zeros; for integers 0 - x."""
    zero = 0 if _integer(e) else -0.0
    if _is(e.operands[0], zero) and sweep.backend.has(NEG):
        return sweep.write(NEG, (e.operands[1],))
    return None


def _signs_out(sweep: Rewriting, e: Equation) -> Variable | None:
    """-a * b and -a / b are -(a * b) and -(a / b): signs and magnitudes do not see each other.

    So that products of the same factors meet, and sums take the sign in.
    """
    a, b = e.operands
    negated_a, negated_b = sweep.operands_if(a, NEG), sweep.operands_if(b, NEG)
    if not negated_a and not negated_b:
        return None
    if negated_a and negated_b:
        return sweep.write(e.op, (negated_a[0], negated_b[0]))
    value = _negated(b)
    if negated_a and value is not None:
        return sweep.write(e.op, (negated_a[0], value))
    value = _negated(a)
    if negated_b and value is not None:
        return sweep.write(e.op, (value, negated_b[0]))
    if negated_a and sweep.uses.get(a, 0) <= NEGATIONS:
        return sweep.write(NEG, (sweep.write(e.op, (negated_a[0], b)),))
    if negated_b and sweep.uses.get(b, 0) <= NEGATIONS:
        return sweep.write(NEG, (sweep.write(e.op, (a, negated_b[0])),))
    return None


def _negated(v: Variable) -> Literal | None:
    """The literal of the other sign; of an integer only if there is one."""
    value = number(v)
    if value is None or v.dtype.kind == "bool" or (v.dtype.kind == "int" and value <= -(2**31)):
        return None
    return Literal(v.shape, v.dtype, -value)


def _times_minus_one(sweep: Rewriting, e: Equation) -> Variable | None:
    """x * -1 is -x, also for zeros; and x / -1."""
    a, b = e.operands
    x = a if _is(b, -1) else b if e.op is MUL and _is(a, -1) else None
    return sweep.write(NEG, (x,)) if x is not None and sweep.backend.has(NEG) else None


def _into_literal(sweep: Rewriting, e: Equation) -> Variable | None:
    """-(x * c) is x * -c, where the product is used for nothing else; and so for quotients."""
    product = sweep.definition(e.operands[0])
    if product is None or product.op not in (MUL, DIV) or sweep.uses.get(e.operands[0], 0) > 1:
        return None
    a, b = product.operands
    value = _negated(b)
    if value is not None:
        return sweep.write(product.op, (a, value))
    value = _negated(a)
    return sweep.write(product.op, (value, b)) if value is not None else None


# ---- quotients and products --------------------------------------------------------------------------------

_SMALLEST_EXPONENT = {"float16": -14, "float32": -126, "float64": -1022}


def _by_power_of_two(sweep: Rewriting, e: Equation) -> Variable | None:
    """x / 2**k is x * 2**-k, if that is a normal number: both round the same real number."""
    value = number(e.operands[1])
    if value is None or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    limit = _SMALLEST_EXPONENT[e.results[0].dtype.name]
    if not limit < math.frexp(value)[1] - 1 <= -limit:
        return None
    b = e.operands[1]
    return sweep.write(MUL, (e.operands[0], Literal(b.shape, b.dtype, 1.0 / value)))


def _product_with_itself(sweep: Rewriting, e: Equation) -> Variable | None:
    """The square as a product, which contractions know; `square` is defined as that."""
    x = e.operands[0]
    return sweep.write(MUL, (x, x))


# ---- selecting, comparing, casting -------------------------------------------------------------------------


def _chosen(sweep: Rewriting, e: Equation) -> Variable | None:
    """The side that a condition always takes; the condition itself; the other sides of an inverted one."""
    condition, a, b = e.operands
    value = number(condition)
    if value is not None:
        return a if value else b
    if e.results[0].dtype is bool_ and number(a) is True and number(b) is False:
        return condition
    inner = sweep.operands_if(condition, WHERE)
    if inner and number(inner[1]) is False and number(inner[2]) is True:
        return sweep.write(WHERE, (inner[0], b, a))
    return None


def _cast(sweep: Rewriting, e: Equation) -> Variable | None:
    """To its own dtype; back from a wider float."""
    x, dtype = e.operands[0], e.results[0].dtype
    if x.dtype is dtype:
        return x
    inner = sweep.operands_if(x, CAST)
    if inner and inner[0].dtype is dtype and _holds(x.dtype, dtype):
        return inner[0]
    return None


def _holds(wide: DType, narrow: DType) -> bool:
    return wide.kind == narrow.kind and wide.itemsize > narrow.itemsize


# ---- powers ------------------------------------------------------------------------------------------------

POWERS: dict[float, int] = {2.0: 1, 3.0: 2, 4.0: 2}
"""Exponents, and by how many units in the last place multiplication may miss the correctly rounded power."""


def _power(sweep: Rewriting, e: Equation) -> Variable | None:
    """x**1 is x (exactly); a small power is a product of few factors, if `pow` is declared no better than that."""
    x, exponent = e.operands
    n = number(exponent)
    if n == 1.0:
        return x
    if n not in POWERS:
        return None
    declared = sweep.backend.capabilities.largest_error("pow", x.dtype.name)
    if n != 2.0 and (declared is None or declared < POWERS[n]):
        return None
    squared = sweep.write(MUL, (x, x))
    return squared if n == 2.0 else sweep.write(MUL, (squared, x if n == 3.0 else squared))


# ---- the table ---------------------------------------------------------------------------------------------

EXACT: dict[Op, tuple[Rule, ...]] = {
    ADD: (
        _neutral(-0.0),
        _neutral(0, ints=True),
        _add_to_itself,
        _add_of_negated,
    ),
    SUB: (_right(0.0), _nothing, _sub_from_negative_zero, _sub_from_negated_self, _sub_of_negated),
    MUL: (_neutral(1), _zero_if_either_is(0), _times_minus_one, _signs_out),
    DIV: (_right(1), _times_minus_one, _signs_out, _by_power_of_two),
    NEG: (_unnegated, _into_literal),
    ABS: (_even,),
    SQUARE: (_even, _product_with_itself),
    FLOOR_DIVIDE: (_right(1),),
    AND: (_neutral(-1), _zero_if_either_is(0), _either),
    OR: (_neutral(0), _either),
    XOR: (_neutral(0), _nothing),
    LEFT: (_right(0),),
    RIGHT: (_right(0),),
    MAXIMUM: (_either,),
    MINIMUM: (_either,),
    EQ: (_equal,),
    LT: (_nothing,),
    WHERE: (_either, _chosen),
    CAST: (_cast,),
}

_RULES: dict[Op, tuple[Rule, ...]] = {**EXACT, POW: (_power,)}
