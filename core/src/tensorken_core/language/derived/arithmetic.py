# mypy: disable-error-code="empty-body"
"""Derived elementwise ops that are exact or round once: sign, maximum, rounding, remainder, nextafter."""

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


def _extreme_rule(t: Any, operand: Any, other: Any, y: Any) -> Any:
    """t where `operand` is the result y, half of t in a tie."""
    return operand.eq(y).where(operand.eq(other).where(t * 0.5, t), 0.0)


def _signbit(x: Any) -> Any:
    return x.apply(OPS["signbit"])


_EXTREME_RULES = (lambda t, y, a, b: _extreme_rule(t, a, b, y), lambda t, y, a, b: _extreme_rule(t, b, a, y))


def _remainder_divisor_rule(t: Any, y: Any, a: Any, b: Any) -> Any:
    """-floor(a / b), as the rounded quotient (y - a) / b."""
    return t * ((y - a) / b).apply(OPS["round"])


class Arithmetic(Interpreter[R]):
    """Sign, maximum, minimum, rounding, remainder, nextafter, integer powers."""

    @elementwise(operator.neg, lambda t, y, x: -t, dtype=negated, body=arithmetic.neg)
    def neg(self, x: R) -> R:
        """-x; of 0.0 it is -0.0."""

    @elementwise(lambda x: x * x, lambda t, y, x: t * (x + x), dtype=numeric, body=arithmetic.square)
    def square(self, x: R) -> R:
        """x * x."""

    @elementwise(
        operator.abs,
        lambda t, y, x: t * x.eq(0.0).where(1.0, x.sign()),
        dtype=numeric,
        body=arithmetic.abs,
        bool_version=lambda x: x,
    )
    def abs(self, x: R) -> R:
        """The absolute value of x; 0.0 for -0.0; the derivative at 0 is 1."""

    @elementwise(scalar.sign, None, dtype=numeric, body=arithmetic.sign)
    def sign(self, x: R) -> R:
        """-1 for negative x, 0 for 0.0 and -0.0, 1 for positive x, NaN for NaN."""

    @elementwise(
        scalar.maximum,
        *_EXTREME_RULES,
        dtype=numeric,
        body=arithmetic.maximum,
        either_zero=True,
        bool_version=lambda a, b: a | b,
    )
    def maximum(self, a: R, b: R) -> R:
        """The larger of a and b; NaN if either is NaN; of 0.0 and -0.0 either; a tie halves the derivative."""

    @elementwise(
        scalar.minimum,
        *_EXTREME_RULES,
        dtype=numeric,
        body=arithmetic.minimum,
        either_zero=True,
        bool_version=lambda a, b: a & b,
    )
    def minimum(self, a: R, b: R) -> R:
        """The smaller of a and b; NaN if either is NaN; of 0.0 and -0.0 either; a tie halves the derivative."""

    @elementwise(
        scalar.relu,
        lambda t, y, x: (y > 0.0).where(t, 0.0),
        dtype=floating,
        body=arithmetic.relu,
        either_zero=True,
    )
    def relu(self, x: R) -> R:
        """max(x, 0); for -0.0 a zero of either sign; the derivative at 0 is 0."""

    @elementwise(
        lambda x: scalar.div(1.0, x),
        lambda t, y, x: -(t * (y * y)),
        dtype=floating,
        body=arithmetic.reciprocal,
        domain=(0.5, 2.0),
    )
    def reciprocal(self, x: R) -> R:
        """1 / x."""

    # ---- rounding; the derivative is 0 -------------------------------------------------------------------------

    @elementwise(scalar.round, None, dtype=floating, body=arithmetic.round)
    def round(self, x: R) -> R:
        """x rounded to the nearest integer, ties to even; a zero has the sign of x."""

    @elementwise(scalar.trunc, None, dtype=floating, body=arithmetic.trunc)
    def trunc(self, x: R) -> R:
        """x rounded towards zero; a zero has the sign of x."""

    @elementwise(scalar.ceil, None, dtype=floating, body=arithmetic.ceil)
    def ceil(self, x: R) -> R:
        """The smallest integer that is not below x; a zero has the sign of x."""

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
        """a - floor(a / b) * b, rounded once, with the sign of b; for b = 0 it is NaN, for integers 0."""

    # ---- signs and neighbours ----------------------------------------------------------------------------------

    @elementwise(scalar.signbit, None, dtype=float_to_bool, body=bits.signbit)
    def signbit(self, x: R) -> R:
        """Whether the sign bit of x is set, as bool, also for -0.0 and NaN; a NaN computed by an op has any sign."""

    @elementwise(
        math.copysign,
        lambda t, y, a, b: _signbit(a).eq(_signbit(b)).where(t, -t),
        None,
        dtype=floating,
        body=bits.copysign,
    )
    def copysign(self, a: R, b: R) -> R:
        """The magnitude of a with the sign bit of b, which may be a zero or NaN."""

    @elementwise(math.nextafter, lambda t, y, a, b: t, None, dtype=floating, body=bits.nextafter)
    def nextafter(self, a: R, b: R) -> R:
        """The next number after a towards b; b if they are equal; the derivative with respect to a is 1."""

    # ---- powers of integers ------------------------------------------------------------------------------------

    @elementwise(scalar.integer_pow, dtype=integer, body=arithmetic.integer_pow)
    def integer_pow(self, a: R, b: R) -> R:
        """a**b, wrapping; for negative b, 1 / a**-b truncated, which is 0 unless a is 1 or -1."""
