"""e**x and 2**x."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from tensorken_wgpu.wgsl.functions.floats import LOG_2, Float, economised

TEXT = """
fn two_to(n: i32) -> F { return bitcast<F>(U(n + BIAS) << FRACTION_BITS); }
fn exponential_of(r: F, t: F) -> F {
  let y = 1.0 + exact(fma(r * r, EXP_SERIES, r));
  let bits = bitcast<U>(t);
  let half = bits >> 1u;
  let first = bitcast<F>(bitcast<U>(y) + (half << FRACTION_BITS));
  return first * bitcast<F>(((bits - half) << FRACTION_BITS) + ONE_BITS);
}
fn exponential(x: F) -> F {
  let y = clamp(x, EXP_VANISHES, EXP_OVERFLOWS);
  let t = exact(fma(y, LOG2_E, ROUNDING_SHIFT));
  let n = t - ROUNDING_SHIFT;
  let r = fma(n, -LOG_2_LOW, exact(fma(n, -LOG_2_HIGH, y)));
  return select(exponential_of(r, t), x, is_nan(x));
}
fn exponential_below(x: F, top: F) -> F {
  let difference = exact(x - top);
  let minus_top = exact(difference - x);
  let lost = exact(exact(x - exact(difference - minus_top)) - exact(top + minus_top));
  let y = exponential(difference);
  return exact(y + exact(y * select(ZERO, lost, is_finite(difference))));
}
fn power_of_two(x: F) -> F {
  let y = clamp(x, EXP2_VANISHES, EXP2_OVERFLOWS);
  let t = exact(y + ROUNDING_SHIFT);
  let r = exact(y - (t - ROUNDING_SHIFT)) * LOG_2;
  return select(exponential_of(r, t), x, is_nan(x));
}
"""
"""x = n log 2 + r, and the series of exp(r); multiples of the upper part of log 2 are exact.

t is n + `ROUNDING_SHIFT`, which is so large that the sum has no fraction, and n is in its last bits. 2**n is the
product of two powers of two, as it may be too large or too small for one: the first is added to the exponent of the
series, the other is a factor with the bits of 1 and a larger exponent. Where the result is infinite or 0, so is the
product, so there are no branches: divergent invocations would execute both branches.

`exponential_below` is exp(x - top), corrected by the rounding error of x - top: D. E. Knuth, "The Art of Computer
Programming", volume 2, section 4.2.2, theorem B.
"""

_TERMS = {"f32": 5, "f64": 11}
_MOST = Fraction(35, 100)
"""An upper bound of abs(r), which is at most half of log 2."""


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of the texts above."""
    terms = _TERMS[float_type.type]
    series = [Fraction(1, factorial(i + 2)) for i in range(terms + 6)]
    largest, least = float_type.bias + 1, -float_type.bias - float_type.digits
    high, low = float_type.split(LOG_2, float_type.digits - (largest - least).bit_length())
    return {
        "LOG_2": float_type.literal(LOG_2),
        "LOG2_E": float_type.literal(1 / LOG_2),
        "LOG_2_HIGH": high,
        "LOG_2_LOW": low,
        "EXP_OVERFLOWS": float_type.literal(int(largest * LOG_2) + 1),
        "EXP_VANISHES": float_type.literal(int(least * LOG_2) - 1),
        "EXP2_OVERFLOWS": float_type.literal(largest),
        "EXP2_VANISHES": float_type.literal(least),
        "ROUNDING_SHIFT": float_type.literal(3 << float_type.digits - 2),
        "EXP_SERIES": float_type.series("r", economised(series, -_MOST, _MOST, terms)),
    }
