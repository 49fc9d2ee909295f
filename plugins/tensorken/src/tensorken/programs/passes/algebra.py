"""Algebra: replace equations by simpler ones, or by values that exist already.

Every rule of `EXACT` gives the same bits, also for signed zeros, infinities and NaN (except the sign and payload of a
NaN) and for integers that wrap; each rule states its reason.  Identities that hold only for real numbers are excluded:
x + 0.0 turns -0.0 into 0.0, x * 0.0 keeps NaN, -(a - b) and b - a differ in the sign of a zero, x / x is NaN at 0.

Small integer powers become multiplications where these are no less accurate than the `pow` that the backend declares.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.programs.passes.common_subexpressions import same_value
from tensorken.programs.passes.constants import zeros
from tensorken.programs.passes.rewriting import Rewriting, Rule, negated_literal, number, rewritten
from tensorken_core.language.dtypes import DType, bool_, wrap_integer
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

ABS, ADD, AND, CAST, DIV, EQ = (OPS[n] for n in ("abs", "add", "bitwise_and", "cast", "div", "eq"))
FLOOR_DIVIDE, LT, MAXIMUM, MINIMUM = (OPS[n] for n in ("floor_divide", "lt", "maximum", "minimum"))
MUL, NEG, OR, POW, SQUARE, SUB = (OPS[n] for n in ("mul", "neg", "bitwise_or", "pow", "square", "sub"))
LEFT, RIGHT, WHERE, XOR = (OPS[n] for n in ("shift_left", "shift_right", "where", "bitwise_xor"))

MAX_NEGATED_USES = 2
"""The largest number of uses of a negated value for which its sign is moved outside products; each use then needs a
negation."""


def simplified(program: Program, backend: RawTensor[Any]) -> Program:
    """Apply the rules to a program.

    Bit for bit the same, except powers, whose error is within the error that the backend declares for `pow`.
    """
    return rewritten(program, backend, _RULES)


# ---- neutral and absorbing numbers -------------------------------------------------------------------------


def _is(v: Variable, value: float) -> bool:
    """Whether a value is this number, with the same sign."""
    if not isinstance(v, Literal) or v.value != value:
        return False
    return math.copysign(1.0, v.value) == math.copysign(1.0, value)


def _integer(equation: Equation) -> bool:
    return equation.results[0].dtype.kind == "int"


def _right_identity(value: float) -> Rule:
    """x op value is x."""

    def rule(rewriting: Rewriting, e: Equation) -> Variable | None:
        return e.operands[0] if _is(e.operands[1], value) else None

    return rule


def _identity_element(value: float, ints: bool = False) -> Rule:
    """x op value is x, and so is value op x."""

    def rule(rewriting: Rewriting, e: Equation) -> Variable | None:
        a, b = e.operands
        if _is(b, value) and not (ints and not _integer(e)):
            return a
        return b if _is(a, value) and not (ints and not _integer(e)) else None

    return rule


def _zero_if_either_is(value: int) -> Rule:
    """For integers: the result is 0 if one operand is this number."""

    def rule(rewriting: Rewriting, e: Equation) -> Variable | None:
        if _integer(e) and (_is(e.operands[0], value) or _is(e.operands[1], value)):
            return zeros(e.results[0].shape, e.results[0])
        return None

    return rule


# ---- equal operands ----------------------------------------------------------------------------------------


def _same_operands(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x op x is x."""
    return e.operands[-1] if same_value(e.operands[-1], e.operands[-2]) else None


def _zero_of_same_operands(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x op x is 0 or False; for floats only x < x, which is False also for NaN."""
    if same_value(*e.operands) and (_integer(e) or e.op is LT):
        return zeros(e.results[0].shape, e.results[0])
    return None


def _equal(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x == x is True, except for floats, which may be NaN."""
    a, b = e.operands
    return Literal(a.shape, bool_, True) if a.dtype.kind != "float" and same_value(a, b) else None


# ---- signs -------------------------------------------------------------------------------------------------


def _double_negation(rewriting: Rewriting, e: Equation) -> Variable | None:
    """-(-x) is x."""
    inner = rewriting.operands_if(e.operands[0], NEG)
    return inner[0] if inner else None


def _even_function(rewriting: Rewriting, e: Equation) -> Variable | None:
    """abs(-x) is abs(x) for signed x, and square(-x) and square(abs(x)) are square(x)."""
    if e.op is ABS and not e.results[0].dtype.signed:  # -1 is the largest number of an unsigned dtype
        return None
    inner = rewriting.operands_if(e.operands[0], NEG) or rewriting.operands_if(e.operands[0], ABS)
    return rewriting.write(e.op, inner) if inner else None


def _add_of_negated(rewriting: Rewriting, e: Equation) -> Variable | None:
    """a + -b is a - b: IEEE 754 defines subtraction so (section 5.4.1), and integers wrap."""
    a, b = e.operands
    inner = rewriting.operands_if(b, NEG)
    if inner:
        return rewriting.write(SUB, (a, inner[0]))
    inner = rewriting.operands_if(a, NEG)
    return rewriting.write(SUB, (b, inner[0])) if inner else None


def _add_to_itself(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x + x is x * 2."""
    a, b = e.operands
    return rewriting.write(MUL, (a, Literal(a.shape, a.dtype, 2))) if a is b else None


def _sub_from_negated_self(rewriting: Rewriting, e: Equation) -> Variable | None:
    """-x - x is x * -2."""
    a, b = e.operands
    inner = rewriting.operands_if(a, NEG)
    if inner is None or inner[0] is not b:
        return None
    return rewriting.write(
        MUL, (b, Literal(b.shape, b.dtype, -2 if b.dtype.kind == "float" else wrap_integer(-2, b.dtype)))
    )


def _sub_of_negated(rewriting: Rewriting, e: Equation) -> Variable | None:
    """a - -b is a + b."""
    inner = rewriting.operands_if(e.operands[1], NEG)
    return rewriting.write(ADD, (e.operands[0], inner[0])) if inner else None


def _sub_from_negative_zero(rewriting: Rewriting, e: Equation) -> Variable | None:
    """-0.0 - x is -x, also for zeros; for integers 0 - x is -x."""
    zero = 0 if _integer(e) else -0.0
    if _is(e.operands[0], zero) and rewriting.backend.has(NEG):
        return rewriting.write(NEG, (e.operands[1],))
    return None


def _signs_outside_products(rewriting: Rewriting, e: Equation) -> Variable | None:
    """-a * b and -a / b are -(a * b) and -(a / b), since a product's sign and magnitude are independent.

    Products of the same factors then become common subexpressions, and sums absorb the sign.
    """
    a, b = e.operands
    negated_a, negated_b = rewriting.operands_if(a, NEG), rewriting.operands_if(b, NEG)
    if not negated_a and not negated_b:
        return None
    if negated_a and negated_b:
        return rewriting.write(e.op, (negated_a[0], negated_b[0]))
    value = negated_literal(b)
    if negated_a and value is not None:
        return rewriting.write(e.op, (negated_a[0], value))
    value = negated_literal(a)
    if negated_b and value is not None:
        return rewriting.write(e.op, (value, negated_b[0]))
    if negated_a and rewriting.uses.get(a, 0) <= MAX_NEGATED_USES:
        return rewriting.write(NEG, (rewriting.write(e.op, (negated_a[0], b)),))
    if negated_b and rewriting.uses.get(b, 0) <= MAX_NEGATED_USES:
        return rewriting.write(NEG, (rewriting.write(e.op, (a, negated_b[0])),))
    return None


def _times_minus_one(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x * -1 and x / -1 are -x, also for zeros."""
    a, b = e.operands
    x = a if _is(b, -1) else b if e.op is MUL and _is(a, -1) else None
    return rewriting.write(NEG, (x,)) if x is not None and rewriting.backend.has(NEG) else None


def _into_literal(rewriting: Rewriting, e: Equation) -> Variable | None:
    """-(x * c) is x * -c, and -(x / c) is x / -c, if the product or quotient has no other use."""
    product = rewriting.definition(e.operands[0])
    if product is None or product.op not in (MUL, DIV) or rewriting.uses.get(e.operands[0], 0) > 1:
        return None
    a, b = product.operands
    value = negated_literal(b)
    if value is not None:
        return rewriting.write(product.op, (a, value))
    value = negated_literal(a)
    return rewriting.write(product.op, (value, b)) if value is not None else None


# ---- quotients and products --------------------------------------------------------------------------------


def _by_power_of_two(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x / 2**k is x * 2**-k if 2**-k is a normal number: both round the same real number."""
    value = number(e.operands[1])
    if value is None or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    largest = e.results[0].dtype.limit - 2
    if not -largest < math.frexp(value)[1] - 1 <= largest:
        return None
    b = e.operands[1]
    return rewriting.write(MUL, (e.operands[0], Literal(b.shape, b.dtype, 1.0 / value)))


def _product_with_itself(rewriting: Rewriting, e: Equation) -> Variable | None:
    """The square as a product, which the contraction pass handles; `square` is defined as that product."""
    x = e.operands[0]
    return rewriting.write(MUL, (x, x))


# ---- selecting, comparing, casting -------------------------------------------------------------------------


def _constant_condition(rewriting: Rewriting, e: Equation) -> Variable | None:
    """Simplify `where` with a literal condition, with sides True and False, or with an inverted condition."""
    condition, a, b = e.operands
    value = number(condition)
    if value is not None:
        return a if value else b
    if e.results[0].dtype is bool_ and number(a) is True and number(b) is False:
        return condition
    inner = rewriting.operands_if(condition, WHERE)
    if inner and number(inner[1]) is False and number(inner[2]) is True:
        return rewriting.write(WHERE, (inner[0], b, a))
    return None


def _cast(rewriting: Rewriting, e: Equation) -> Variable | None:
    """Drop a cast to the same dtype, and a cast to a wider float and back."""
    x, dtype = e.operands[0], e.results[0].dtype
    if x.dtype is dtype:
        return x
    inner = rewriting.operands_if(x, CAST)
    if inner and inner[0].dtype is dtype and _is_wider(x.dtype, dtype):
        return inner[0]
    return None


def _is_wider(wide: DType, narrow: DType) -> bool:
    return wide.kind == narrow.kind and wide.itemsize > narrow.itemsize


# ---- powers ------------------------------------------------------------------------------------------------

POWERS: dict[float, int] = {2.0: 1, 3.0: 2, 4.0: 2}
"""For each exponent the error of repeated multiplication, in units in the last place."""


def _power(rewriting: Rewriting, e: Equation) -> Variable | None:
    """x**1 is x exactly; a small power is a product if the backend declares no smaller error for `pow`."""
    x, exponent = e.operands
    n = number(exponent)
    if n == 1.0:
        return x
    if n not in POWERS:
        return None
    declared = rewriting.backend.capabilities.largest_error("pow", x.dtype.name)
    if n != 2.0 and (declared is None or declared < POWERS[n]):
        return None
    squared = rewriting.write(MUL, (x, x))
    return squared if n == 2.0 else rewriting.write(MUL, (squared, x if n == 3.0 else squared))


# ---- the table ---------------------------------------------------------------------------------------------

EXACT: dict[Op, tuple[Rule, ...]] = {
    ADD: (
        _identity_element(-0.0),
        _identity_element(0, ints=True),
        _add_to_itself,
        _add_of_negated,
    ),
    SUB: (
        _right_identity(0.0),
        _zero_of_same_operands,
        _sub_from_negative_zero,
        _sub_from_negated_self,
        _sub_of_negated,
    ),
    MUL: (_identity_element(1), _zero_if_either_is(0), _times_minus_one, _signs_outside_products),
    DIV: (_right_identity(1), _times_minus_one, _signs_outside_products, _by_power_of_two),
    NEG: (_double_negation, _into_literal),
    ABS: (_even_function,),
    SQUARE: (_even_function, _product_with_itself),
    FLOOR_DIVIDE: (_right_identity(1),),
    AND: (_identity_element(-1), _zero_if_either_is(0), _same_operands),
    OR: (_identity_element(0), _same_operands),
    XOR: (_identity_element(0), _zero_of_same_operands),
    LEFT: (_right_identity(0),),
    RIGHT: (_right_identity(0),),
    MAXIMUM: (_same_operands,),
    MINIMUM: (_same_operands,),
    EQ: (_equal,),
    LT: (_zero_of_same_operands,),
    WHERE: (_same_operands, _constant_condition),
    CAST: (_cast,),
}

_RULES: dict[Op, tuple[Rule, ...]] = {**EXACT, POW: (_power,)}
