"""Bodies of the elementary functions: exponentials and logarithms, circular and hyperbolic functions, erf.

Where a formula would suffer from cancellation, mostly near a zero of the function, a polynomial replaces it.  The
error, including the errors of the backend's exp, log, sin and cos, is at most 4 units in the last place.  Narrower
floats are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tensorken_core.language.bodies import coefficients
from tensorken_core.language.bodies.arithmetic import either, in_float32, signed
from tensorken_core.language.dtypes import DType, float32, float64, int32, int64
from tensorken_core.language.op import OPS

Tensor = Any


def _polynomial(x: Tensor, table: Mapping[DType, Sequence[float]]) -> Tensor:
    """The polynomial with the coefficients for x's dtype, evaluated by Horner's scheme."""
    first, second, *rest = table[x.dtype]
    y = x * first + second
    for coefficient in rest:
        y = y * x + coefficient
    return y


def _series(x: Tensor, z: Tensor, table: Mapping[DType, Sequence[float]]) -> Tensor:
    """x * (1 + z * P(z)): exactly x where z is tiny, also if x is subnormal or -0.0."""
    return x * (z * _polynomial(z, table) + 1.0)


# ---- exponentials ------------------------------------------------------------------------------------------

_EXPM1_BOUND = {float32: 18.0, float64: 38.0}
"""Above this bound expm1(x) rounds to exp(x); below its negative, to -1."""

_INTEGERS = {float32: int32, float64: int64}


@in_float32
def expm1(x: Tensor) -> Tensor:
    """With x = k * log(2) + r: 2**k * expm1(r) + (2**k - 1), where 2**k is exact.

    The method of fdlibm (K. C. Ng, s_expm1.c, 1993), with another polynomial.
    """
    bound = _EXPM1_BOUND[x.dtype]
    high, low = coefficients.LN2[x.dtype]
    inside = x.maximum(-bound).minimum(bound)
    k = (inside * (1.0 / math.log(2.0)) + 0.5).floor()
    r = (inside - k * high) - k * low
    near = _series(r, r, coefficients.EXPM1)
    exponent = k.abs().astype(_INTEGERS[x.dtype])
    power = exponent.ones_like().apply(OPS["shift_left"], exponent).astype(x.dtype)
    power = (k < 0.0).where(1.0 / power, power)
    far = power * near + (power - 1.0)
    return (x > bound).where(x.exp(), k.eq(0.0).where(near, far))


@in_float32
def exp2(x: Tensor) -> Tensor:
    return 2.0**x


@in_float32
def sigmoid(x: Tensor) -> Tensor:
    """z / (1 + z) with z = exp(min(x, 40)), which cannot overflow; beyond 40 the result is 1 in every dtype."""
    z = x.minimum(40.0).exp()
    return z / (z + 1.0)


@in_float32
def softplus(x: Tensor) -> Tensor:
    """max(x, 0) + log1p(exp(-abs(x))): neither term is negative, so nothing cancels."""
    return x.maximum(0.0) + (-x.abs()).exp().log1p()


@in_float32
def logaddexp(a: Tensor, b: Tensor) -> Tensor:
    """max(a, b) + log1p(exp(-abs(a - b))); the difference of equal infinities is taken as 0."""
    return a.maximum(b) + a.eq(b).where(0.0, -(a - b).abs()).exp().log1p()


# ---- logarithms --------------------------------------------------------------------------------------------


@in_float32
def log1p(x: Tensor) -> Tensor:
    """Near 0 as 2 * atanh(x / (x + 2)), else log(1 + x), where the rounding of 1 + x costs half a unit."""
    return _is_near(x).where(_log1p_near(x), (x + 1.0).log())


def _is_near(x: Tensor) -> Tensor:
    return (x < 1.0).where(x > -0.4, False)


def _log1p_near(x: Tensor) -> Tensor:
    """x * (1 - s) * (1 + q) with s = x / (x + 2) and atanh(s) = s * (1 + q), expanded so that it rounds once."""
    s = x / (x + 2.0)
    z = s * s
    q = z * _polynomial(z, coefficients.ATANH)
    return x * (1.0 - (s - q * (1.0 - s)))


@in_float32
def log2(x: Tensor) -> Tensor:
    """A power of two has an exact result; small ones are compared as multiples, which no device takes for zero."""
    y = _log(x) * (1.0 / math.log(2.0))
    rounded = y.apply(OPS["round"])
    is_small = x < 1.0
    power = 2.0 ** (rounded + is_small.where(64.0, 0.0))
    return power.eq(is_small.where(x * 2.0**64, x)).where(rounded, y)


_SMALLEST_POWER_OF_10 = {float32: -37.0, float64: -307.0}
"""The smallest k for which the number of the dtype nearest to 10**k is precise enough that its logarithm is k."""


@in_float32
def log10(x: Tensor) -> Tensor:
    y = _log(x) * (1.0 / math.log(10.0))
    rounded = y.apply(OPS["round"])
    power = (10.0**rounded).eq(x).where(rounded >= _SMALLEST_POWER_OF_10[x.dtype], False)
    return power.where(rounded, y)


def _log(x: Tensor) -> Tensor:
    """The natural logarithm; near 1 from its series, since some devices are inaccurate there."""
    return _is_near(x - 1.0).where(_log1p_near(x - 1.0), x.log())


# ---- circular functions ------------------------------------------------------------------------------------


@in_float32
def tan(x: Tensor) -> Tensor:
    return x.sin() / x.cos()


@in_float32
def asin(x: Tensor) -> Tensor:
    """A polynomial for abs(x) <= 1/2, else pi/2 - 2 * asin(sqrt((1 - abs(x)) / 2)), with the sign of x."""
    high, low = coefficients.HALF_PI[x.dtype]
    is_large, p = _asin_of_half(x)
    return signed(is_large.where(high - ((p + p) - low), p), x)


@in_float32
def acos(x: Tensor) -> Tensor:
    """pi/2 - asin(x) for abs(x) <= 1/2, else 2 * asin(sqrt((1 - x) / 2)); pi - acos(-x) for x < -1/2."""
    high, low = coefficients.HALF_PI[x.dtype]
    is_large, p = _asin_of_half(x)
    middle = high - (is_large.where(p, signed(p, x)) - low)
    return is_large.where((x < 0.0).where(middle + middle, p + p), middle)


def _asin_of_half(x: Tensor) -> tuple[Tensor, Tensor]:
    """Whether abs(x) > 1/2, and asin(sqrt((1 - abs(x)) / 2)) where it is, else asin(abs(x))."""
    a = x.abs()
    is_large = a > 0.5
    z = is_large.where((1.0 - a) * 0.5, a * a)
    return is_large, _series(is_large.where(z.sqrt(), a), z, coefficients.ASIN)


@in_float32
def atan(x: Tensor) -> Tensor:
    """A polynomial for abs(x) <= 1, else pi/2 - atan(1 / abs(x)), with the sign of x."""
    high, low = coefficients.HALF_PI[x.dtype]
    a = x.abs()
    is_large = a > 1.0
    t = is_large.where(1.0 / a, a)
    p = _series(t, t * t, coefficients.ATAN)
    return signed(is_large.where(high - (p - low), p), x)


@in_float32
def atan2(y: Tensor, x: Tensor) -> Tensor:
    """atan(smaller / larger magnitude), with 0/0 = 0 and inf/inf = 1, mapped to the octant of the point."""
    high, low = coefficients.HALF_PI[x.dtype]
    rise, run = y.abs(), x.abs()
    smaller, larger = rise.minimum(run), rise.maximum(run)
    t = larger.eq(0.0).where(0.0, rise.eq(run).where(1.0, smaller / larger))
    p = _series(t, t * t, coefficients.ATAN)
    steep, left = run < rise, _is_negative(x)
    quarters = steep.where(x.ones_like(), left.where(x.scalar(2), 0.0))
    angle = (quarters * high + steep.eq(left).where(p, -p)) + quarters * low
    return _is_negative(y).where(-angle, angle)


def _is_negative(x: Tensor) -> Tensor:
    """Whether x is negative or -0.0."""
    return x.eq(0.0).where(1.0 / x, x) < 0.0


# ---- hyperbolic functions ----------------------------------------------------------------------------------

_NEAR_OVERFLOW = {float32: 80.0, float64: 700.0}
"""Above this bound exp(x) may overflow although exp(x) / 2 does not, so exp(x) / 2 is computed as
exp(x - 3) * (exp(3) / 2); exp(3) / 2 has almost no rounding error in either dtype."""

_HALF_EXP_3 = math.exp(3.0) / 2.0


@in_float32
def sinh(x: Tensor) -> Tensor:
    """(e + e / (e + 1)) / 2 with e = expm1(abs(x))."""
    a = x.abs()
    e = a.expm1()
    far = (a - 3.0).exp() * _HALF_EXP_3
    return signed((a > _NEAR_OVERFLOW[x.dtype]).where(far, (e + e / (e + 1.0)) * 0.5), x)


@in_float32
def cosh(x: Tensor) -> Tensor:
    """w + 1 / (4w) with w = exp(abs(x)) / 2."""
    a = x.abs()
    is_large = a > _NEAR_OVERFLOW[x.dtype]
    w = (a - is_large.where(x.scalar(3), 0.0)).exp() * is_large.where(x.scalar(_HALF_EXP_3), 0.5)
    return w + 0.25 / w


@in_float32
def tanh(x: Tensor) -> Tensor:
    """x / (1 + z * P(z)) with z = x**2 for abs(x) < 0.9, else 1 - 2 / (exp(2 * abs(x)) + 1), where exp may be inf."""
    a, z = x.abs(), x * x
    near = x / (z * _polynomial(z, coefficients.TANH) + 1.0)
    far = 1.0 - 2.0 / ((a + a).exp() + 1.0)
    return (a < 0.9).where(near, (x < 0.0).where(-far, far))


@in_float32
def sech_squared(x: Tensor) -> Tensor:
    """4 * e / (1 + e)**2 with e = exp(-2 * abs(x)); the square is expanded, so that 1 + ... rounds once for small e."""
    e = (x.abs() * -2.0).exp()
    return e * 4.0 / (e * (e + 2.0) + 1.0)


@in_float32
def asinh(x: Tensor) -> Tensor:
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))) with a = abs(x); log(2a) where a**2 might overflow."""
    a = x.abs()
    square = a * a
    near = a + square / ((square + 1.0).sqrt() + 1.0)
    far = a > 2.0**60
    return signed(far.where(a, near).log1p() + far.where(x.scalar(math.log(2.0)), 0.0), x)


@in_float32
def acosh(x: Tensor) -> Tensor:
    """2 * asinh(sqrt((x - 1) / 2))."""
    half = ((x - 1.0) * 0.5).sqrt().apply(OPS["asinh"])
    return half + half


@in_float32
def atanh(x: Tensor) -> Tensor:
    """log1p(2a / (1 - a)) / 2 with a = abs(x)."""
    a = x.abs()
    return signed(((a + a) / (1.0 - a)).log1p() * 0.5, x)


# ---- others ------------------------------------------------------------------------------------------------


@in_float32
def erf(x: Tensor) -> Tensor:
    """x * P(x**2) for abs(x) < 1, else 1 - erfc(a) with a = abs(x) and erfc(a) = exp(-a**2) * P(1 / (a + 3)).

    The intervals are from W. J. Cody, "Rational Chebyshev approximation for the error function", 1969.
    """
    a, z = x.abs(), x * x
    near = x * _polynomial(z, coefficients.ERF)
    far = 1.0 - (-z).exp() * _polynomial(1.0 / (a + 3.0), coefficients.ERFC)
    return (a < 1.0).where(near, (x < 0.0).where(-far, far))


_SPLIT = {float32: 2.0**12 + 1.0, float64: 2.0**27 + 1.0}


@in_float32
def gaussian(x: Tensor) -> Tensor:
    """exp(-p) * (1 - r), where p is x * x rounded, and r its rounding error; 0 in every dtype for abs(x) > 30.

    r is exact: T. J. Dekker, "A floating-point technique for extending the available precision", 1971, section 5.
    """
    a = x.abs().minimum(30.0)
    p, multiple = a * a, a * _SPLIT[x.dtype]
    upper = multiple - (multiple - a)
    lower = a - upper
    r = ((upper * upper - p) + (upper + upper) * lower) + lower * lower
    y = (-p).exp()
    return y - y * r


@in_float32
def erfinv(x: Tensor) -> Tensor:
    """x * P(w) with w = -log((1 - x) * (1 + x)) < 4, else x * s * P(1 / s - 0.375) with s = sqrt(w).

    w is from M. B. Giles, "Approximating the erfinv function", 2010; the polynomials and their bound are not.
    """
    w = -((1.0 - x) * (x + 1.0)).log()
    s = w.sqrt()
    far = s * _polynomial(1.0 / s - 0.375, coefficients.ERFINV_BEYOND)
    far = w.eq(float("inf")).where(w, far)
    return x * (w < 4.0).where(_polynomial(w, coefficients.ERFINV), far)


@in_float32
def hypot(a: Tensor, b: Tensor) -> Tensor:
    """larger * sqrt(1 + (smaller / larger)**2); infinite if either operand is, even if the other is NaN."""
    p, q = a.abs(), b.abs()
    larger, smaller = p.maximum(q), p.minimum(q)
    ratio = larger.eq(0.0).where(0.0, smaller / larger)
    y = larger * (ratio * ratio + 1.0).sqrt()
    infinite = either(p.eq(float("inf")), q.eq(float("inf")))
    return infinite.where(float("inf"), y)
