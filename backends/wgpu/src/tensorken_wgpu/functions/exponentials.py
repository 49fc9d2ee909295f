"""e**x and 2**x."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from tensorken_wgpu.functions.floats import LOG_2, Float

TEXT = """
fn two_to(n: i32) -> F { return bitcast<F>(U(n + BIAS) << PLACES); }
fn scaled(x: F, n: i32) -> F {
  let m = n / 2;
  return exact(x * two_to(m)) * two_to(n - m);
}
fn exponential_of(r: F, n: i32) -> F { return scaled(1.0 + exact(fma(r * r, EXP_SERIES, r)), n); }
fn exponential(x: F) -> F {
  if (is_nan(x)) { return x; }
  if (x > EXP_OVERFLOWS) { return infinity(); }
  if (x < EXP_VANISHES) { return zero(); }
  let n = floor(fma(x, LOG2_E, 0.5));
  let r = fma(n, -LOG_2_LOW, exact(fma(n, -LOG_2_HIGH, x)));
  return exponential_of(r, i32(n));
}
fn power_of_two(x: F) -> F {
  if (is_nan(x)) { return x; }
  if (x >= EXP2_OVERFLOWS) { return infinity(); }
  if (x < EXP2_VANISHES) { return zero(); }
  let n = floor(exact(x + 0.5));
  let r = exact(x - n) * LOG_2;
  return exponential_of(r, i32(n));
}
"""
"""x = n log 2 + r, and the series of exp(r); multiples of the upper part of log 2 are exact."""

_TERMS = {"f32": 8, "f64": 14}


def words(of: Float) -> dict[str, str]:
    """What the texts above have of their own in a type."""
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
        "EXP_SERIES": of.series("r", [Fraction(1, factorial(i)) for i in range(2, _TERMS[of.type])]),
    }
