"""e**x and 2**x."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from tensorken_wgpu.functions.floats import LOG_2, Float, economised

TEXT = """
fn two_to(n: i32) -> F { return bitcast<F>(U(n + BIAS) << PLACES); }
fn exponential_of(r: F, t: F) -> F {
  let y = 1.0 + exact(fma(r * r, EXP_SERIES, r));
  let bits = bitcast<U>(t);
  let half = bits >> 1u;
  let first = bitcast<F>(bitcast<U>(y) + (half << PLACES));
  return first * bitcast<F>(((bits - half) << PLACES) + ONE_BITS);
}
fn exponential(x: F) -> F {
  let y = clamp(x, EXP_VANISHES, EXP_OVERFLOWS);
  let t = exact(fma(y, LOG2_E, WHOLE));
  let n = t - WHOLE;
  let r = fma(n, -LOG_2_LOW, exact(fma(n, -LOG_2_HIGH, y)));
  return select(exponential_of(r, t), x, is_nan(x));
}
fn power_of_two(x: F) -> F {
  let y = clamp(x, EXP2_VANISHES, EXP2_OVERFLOWS);
  let t = exact(y + WHOLE);
  let r = exact(y - (t - WHOLE)) * LOG_2;
  return select(exponential_of(r, t), x, is_nan(x));
}
"""
"""x = n log 2 + r, and the series of exp(r); multiples of the upper part of log 2 are exact.

t is n + `WHOLE`, which is so large that the sum has no fraction, and n is in its last bits. 2**n is the product of
two powers of two, as it may be too large or too small for one: the first is added to the exponent of the series,
the other is a factor with the bits of 1 and a larger exponent. Where the result is infinite or 0, so is the
product, so nothing branches: divergent invocations would execute both branches.
"""

_TERMS = {"f32": 5, "f64": 11}
_MOST = Fraction(35, 100)
"""The largest r, half of log 2, is smaller."""


def words(of: Float) -> dict[str, str]:
    """The type-dependent words of the texts above."""
    terms = _TERMS[of.type]
    series = [Fraction(1, factorial(i + 2)) for i in range(terms + 6)]
    largest, least = of.bias + 1, -of.bias - of.digits
    high, low = of.split(LOG_2, of.digits - (largest - least).bit_length())
    return {
        "LOG_2": of.literal(LOG_2),
        "LOG2_E": of.literal(1 / LOG_2),
        "LOG_2_HIGH": high,
        "LOG_2_LOW": low,
        "EXP_OVERFLOWS": of.literal(int(largest * LOG_2) + 1),
        "EXP_VANISHES": of.literal(int(least * LOG_2) - 1),
        "EXP2_OVERFLOWS": of.literal(largest),
        "EXP2_VANISHES": of.literal(least),
        "WHOLE": of.literal(3 << of.digits - 2),
        "EXP_SERIES": of.series("r", economised(series, -_MOST, _MOST, terms)),
    }
