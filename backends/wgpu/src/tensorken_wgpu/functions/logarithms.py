"""The natural logarithm."""

from __future__ import annotations

import math
from fractions import Fraction

from tensorken_wgpu.functions.floats import Float

TEXT = """
struct Parted { fraction: F, exponent: i32 }
fn parted(x: F) -> Parted {
  var bits = bitcast<U>(x);
  var n = -BIAS;
  if (bits < NORMAL) {
    let places = leading_zeros(bits) - leading_zeros(NORMAL);
    bits = bits << places;
    n -= i32(places);
  }
  n += i32(bits >> PLACES);
  bits = (bits & FRACTION) | ONE_BITS;
  if (bits >= ROOT_OF_2_BITS) {
    bits -= NORMAL;
    n += 1;
  }
  return Parted(bitcast<F>(bits) - 1.0, n);
}
fn logarithm(x: F) -> F {
  if (is_nan(x) || x < ZERO) { return nan(); }
  if ((bitcast<U>(x) & MAGNITUDE) == WORD_0) { return -infinity(); }
  if (x == infinity()) { return x; }
  let part = parted(x);
  let f = part.fraction;
  let s = f / (2.0 + f);
  let z = s * s;
  let rest = z * LOG_SERIES;
  let square = 0.5 * f * f;
  let k = F(part.exponent);
  let small = exact(fma(s, square + rest, k * LOG_2_LOW));
  return fma(k, LOG_2_HIGH, exact(f - exact(square - small)));
}
"""
"""x = 2**n (1 + f), and the series of atanh at s = f / (2 + f), as in FDLIBM's e_log.c."""

LEADING_ZEROS = {
    "f32": "\nfn leading_zeros(bits: u32) -> u32 { return countLeadingZeros(bits); }\n",
    "f64": """
fn leading_zeros(bits: u64) -> u32 {
  let high = u32(bits >> 32u);
  return select(countLeadingZeros(high), 32u + countLeadingZeros(u32(bits & 0xfffffffflu)), high == 0u);
}
""",
}

_TERMS = {"f32": 6, "f64": 12}


def words(of: Float) -> dict[str, str]:
    """What the texts above have of their own in a type."""
    ones = of.bias << (of.digits - 1)
    root_of_2 = math.isqrt(2 << 2 * (of.digits - 1)) - (1 << (of.digits - 1))
    return {
        "WORD_0": of.word_of(0),
        "ONE_BITS": of.word_of(ones),
        "ROOT_OF_2_BITS": of.word_of(ones + root_of_2),
        "LOG_SERIES": of.series("z", [Fraction(2, 2 * i + 1) for i in range(1, _TERMS[of.type])]),
    }
