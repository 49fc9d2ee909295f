"""Bodies of elementwise ops that are exact or round once: sign, maximum, rounding, remainder, integer powers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorken_core.language.dtypes import DType, float32, float64, minus_one
from tensorken_core.language.op import OPS

Tensor = Any


def in_float32(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function of tensors of one dtype, then params; it computes narrower floats in float32 and rounds once."""

    @functools.wraps(f)
    def call(x: Tensor, *others: Any) -> Tensor:
        dtype = x.dtype
        if dtype.wide is dtype:
            return f(x, *others)
        return f(*[y.astype(dtype.wide) if hasattr(y, "astype") else y for y in (x, *others)]).astype(dtype)

    return call


def either(a: Tensor, b: Tensor) -> Tensor:
    """The logical or of two bools."""
    return a.where(a, b)


def is_nan(x: Tensor) -> Tensor:
    return x.eq(x).where(False, True)


def signed(y: Tensor, x: Tensor) -> Tensor:
    """y, which is not negative, with the sign of x; x where x is a zero."""
    return (x < 0.0).where(-y, x.eq(0.0).where(x, y))


def neg(x: Tensor) -> Tensor:
    """x * -1, which negates zeros too; 0 - x would not."""
    return x * minus_one(x.dtype)


def square(x: Tensor) -> Tensor:
    return x * x


def abs(x: Tensor) -> Tensor:
    if not x.dtype.signed:
        return x
    return (x < 0).where(-x, x.eq(0).where(0, x))


def sign(x: Tensor) -> Tensor:
    """x - x is 0.0 for zeros of both signs, and NaN for NaN."""
    rest = x - x
    return (x > 0).where(1, (x < 0).where(-1, rest) if x.dtype.signed else rest)


def maximum(a: Tensor, b: Tensor) -> Tensor:
    take_b = a < b
    return (take_b if a.dtype.kind == "int" else either(take_b, is_nan(b))).where(b, a)


def minimum(a: Tensor, b: Tensor) -> Tensor:
    take_b = b < a
    return (take_b if a.dtype.kind == "int" else either(take_b, is_nan(b))).where(b, a)


def relu(x: Tensor) -> Tensor:
    return x.maximum(0.0)


def reciprocal(x: Tensor) -> Tensor:
    return 1.0 / x


# ---- rounding ----------------------------------------------------------------------------------------------


def ceil(x: Tensor) -> Tensor:
    return -(-x).floor()


def trunc(x: Tensor) -> Tensor:
    return (x < 0.0).where(ceil(x), x.floor())


def round(x: Tensor) -> Tensor:
    """abs(x) - floor(abs(x)) is exact, so comparing it to 0.5 is exact too."""
    magnitude = x.abs()
    below = magnitude.floor()
    rest = magnitude - below
    half = below * 0.5
    odd = half.floor() < half
    y = either(rest > 0.5, rest.eq(0.5).where(odd, False)).where(below + 1.0, below)
    return y.eq(0.0).where(x * 0.0, (x < 0.0).where(-y, y))


# ---- remainders --------------------------------------------------------------------------------------------


_DIGITS: dict[DType, tuple[int, int, int]] = {float32: (12, 12, 277), float64: (26, 27, 2098)}
"""For each dtype the number of bits of a digit, of the lower part of a divisor, and of the longest quotient."""


@in_float32
def remainder(a: Tensor, b: Tensor) -> Tensor:
    """The exact remainder of abs(a) by abs(b), with the sign of b as in Python, also for a zero."""
    if a.dtype.kind == "int":
        return b.eq(0).where(0, a - a.apply(OPS["floor_divide"], b) * b)
    p, q = a.abs(), b.abs()
    rest = (p < q).where(p, _long_division(p, q) + ((a - a) + (b - b)))  # NaN if a or b is infinite
    opposite = rest.eq(0.0).where(False, (a < 0.0).eq(b < 0.0).where(False, True))
    y = opposite.where(q - rest, rest)
    return (b < 0.0).where(-y, y)


def _long_division(a: Tensor, b: Tensor) -> Tensor:
    """The exact remainder of a by b, for finite a >= b > 0.

    A digit of the quotient has half the bits of a significand.  The products of a digit with the two parts of the
    divisor are exact, so the rest is exact after every digit.  Digits are rounded to the nearest integer, so the rest
    may be negative.
    """
    bits, lower_bits, span = _DIGITS[a.dtype]
    large = a > 1.0  # such an a is halved, so that the product of a digit that was rounded up cannot overflow
    shift = (b > 1.0).where(
        b.scalar(2.0 ** (lower_bits + 4)), 1.0
    )  # the split of the divisor cannot overflow
    divisor = b / shift
    # T. J. Dekker, "A floating-point technique for extending the available precision", 1971, section 5.
    multiple = divisor * (2.0**lower_bits + 1.0)
    upper = multiple - (multiple - divisor)
    lower = divisor - upper
    rest = a * large.where(b.scalar(0.5), 1.0) / shift
    third = -(-span // (3 * bits))
    # The first digit must be 0 where the rest is below half of the upper part: their difference would be rounded.
    nearly_half = 0.5 - 2.0 ** (1 - bits)
    for first in (2 * third, third, 0):
        half = 2.0 ** (first * bits // 2)  # its square may overflow the dtype
        high, low = upper * half * half, lower * half * half
        for position in range(third - 1, -1, -1):
            h, l = high * 2.0 ** (position * bits), low * 2.0 ** (position * bits)
            digit = (rest / (h + l) + nearly_half).floor()
            rest = (h < float("inf")).where((rest - digit * h) - digit * l, rest)
    rest = (rest < 0.0).where(rest + divisor, rest) * shift
    twice = (rest + rest < b).where(rest + rest, rest - (b - rest))
    return large.where(twice, rest)


# ---- powers of integers ------------------------------------------------------------------------------------


def integer_pow(a: Tensor, b: Tensor) -> Tensor:
    """Repeated squaring, one step for each bit of the exponent; only 1 and -1 have integer reciprocals."""
    y, factor, exponent = a.ones_like(), a, b
    for _ in range(8 * b.dtype.itemsize - b.dtype.signed):
        y = (exponent & 1).eq(1).where(y * factor, y)
        exponent, factor = exponent >> 1, factor * factor
    if not b.dtype.signed:
        return y
    inverse = a.eq(1).where(1, a.eq(-1).where((b & 1).eq(1).where(a, 1), 0))
    return (b < 0).where(inverse, y)
