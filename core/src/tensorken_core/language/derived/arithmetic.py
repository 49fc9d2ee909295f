# mypy: disable-error-code="empty-body"
"""Derived elementwise ops that are exact or rounded once: signs, extremes, rounding, remainders, neighbours."""

from __future__ import annotations

import math
import operator
from typing import Any

from tensorken_core.language import scalar
from tensorken_core.language.bodies import arithmetic, bits
from tensorken_core.language.declare import elementwise
from tensorken_core.language.dtype_rules import float_to_bool, floating, integer, negated, numeric
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS


def _extreme_rule(t: Any, mine: Any, other: Any, y: Any) -> Any:
    """t where `mine` was chosen as the result y, half of it in a tie."""
    return mine.eq(y).where(mine.eq(other).where(t * 0.5, t), 0.0)


def _signbit(x: Any) -> Any:
    return x.apply(OPS["signbit"])


_EXTREME_RULES = (lambda t, y, a, b: _extreme_rule(t, a, b, y), lambda t, y, a, b: _extreme_rule(t, b, a, y))


def _remainder_divisor_rule(t: Any, y: Any, a: Any, b: Any) -> Any:
    """-floor(a / b): the quotient of a - y by b, which is whole but for its rounding."""
    return t * ((y - a) / b).apply(OPS["round"])


class Arithmetic(Interpreter[R]):
    """Signs, extremes, rounding, remainders, neighbours, powers of integers."""

    @elementwise(operator.neg, lambda t, y, x: -t, dtype=negated, body=arithmetic.neg)
    def neg(self, x: R) -> R:
        """-x; also of zeros."""

    @elementwise(lambda x: x * x, lambda t, y, x: t * (x + x), dtype=numeric, body=arithmetic.square)
    def square(self, x: R) -> R:
        """x * x."""

    @elementwise(
        operator.abs,
        lambda t, y, x: t * x.sign(),
        dtype=numeric,
        body=arithmetic.abs,
        bool_version=lambda x: x,
    )
    def abs(self, x: R) -> R:
        """The absolute value of x, 0.0 of either zero; its derivative at 0 is 0."""

    @elementwise(scalar.sign, None, dtype=numeric, body=arithmetic.sign)
    def sign(self, x: R) -> R:
        """-1, 0 or 1 as x is negative, zero (of either sign) or positive; NaN stays."""

    @elementwise(
        scalar.maximum,
        *_EXTREME_RULES,
        dtype=numeric,
        body=arithmetic.maximum,
        either_zero=True,
        bool_version=lambda a, b: a | b,
    )
    def maximum(self, a: R, b: R) -> R:
        """The larger of a and b; NaN if either is; of 0.0 and -0.0 either; a tie shares the derivative equally."""

    @elementwise(
        scalar.minimum,
        *_EXTREME_RULES,
        dtype=numeric,
        body=arithmetic.minimum,
        either_zero=True,
        bool_version=lambda a, b: a & b,
    )
    def minimum(self, a: R, b: R) -> R:
        """The smaller of a and b; NaN if either is; of 0.0 and -0.0 either; a tie shares the derivative equally."""

    @elementwise(
        scalar.relu,
        lambda t, y, x: (y > 0.0).where(t, 0.0),
        dtype=floating,
        body=arithmetic.relu,
        either_zero=True,
    )
    def relu(self, x: R) -> R:
        """max(x, 0); of -0.0 a zero of either sign; its derivative at 0 is 0."""

    @elementwise(
        lambda x: scalar.div(1.0, x),
        lambda t, y, x: -(t * (y * y)),
        dtype=floating,
        body=arithmetic.reciprocal,
        domain=(0.5, 2.0),
    )
    def reciprocal(self, x: R) -> R:
        """1 / x."""

    # ---- to whole numbers; the derivative is 0 -----------------------------------------------------------------

    @elementwise(scalar.round, None, dtype=floating, body=arithmetic.round)
    def round(self, x: R) -> R:
        """The nearest whole number, half-way the even one; a zero has the sign of x."""

    @elementwise(scalar.trunc, None, dtype=floating, body=arithmetic.trunc)
    def trunc(self, x: R) -> R:
        """The nearest whole number that is not further from 0 than x; a zero has the sign of x."""

    @elementwise(scalar.ceil, None, dtype=floating, body=arithmetic.ceil)
    def ceil(self, x: R) -> R:
        """The smallest whole number that is not below x; a zero has the sign of x."""

    # ---- remainders --------------------------------------------------------------------------------------------

    @elementwise(
        scalar.remainder,
        lambda t, y, a, b: t,
        _remainder_divisor_rule,
        dtype=numeric,
        body=arithmetic.remainder,
        domain=(0.5, 2.0),
    )
    def remainder(self, a: R, b: R) -> R:
        """a - floor(a / b) * b, rounded once, with the sign of b; where b is 0, NaN, for integers 0."""

    # ---- signs and neighbours ----------------------------------------------------------------------------------

    @elementwise(scalar.signbit, None, dtype=float_to_bool, body=bits.signbit)
    def signbit(self, x: R) -> R:
        """Whether the sign bit of x is set, as bool: also that of a zero or a NaN; ops may give a NaN any sign."""

    @elementwise(
        math.copysign,
        lambda t, y, a, b: _signbit(a).eq(_signbit(b)).where(t, -t),
        None,
        dtype=floating,
        body=bits.copysign,
    )
    def copysign(self, a: R, b: R) -> R:
        """The magnitude of a with the sign of b, also if that is a zero or NaN."""

    @elementwise(math.nextafter, lambda t, y, a, b: t, None, dtype=floating, body=bits.nextafter)
    def nextafter(self, a: R, b: R) -> R:
        """The number next to a on the way to b; b itself where they are equal; its derivative by a is 1."""

    # ---- powers of integers ------------------------------------------------------------------------------------

    @elementwise(scalar.integer_pow, dtype=integer, body=arithmetic.integer_pow)
    def integer_pow(self, a: R, b: R) -> R:
        """a**b, wrapping; where b is negative 1 / a**-b without its fraction: 0 but for a = 1 and a = -1."""
