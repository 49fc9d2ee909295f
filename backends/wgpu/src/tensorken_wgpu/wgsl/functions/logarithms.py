"""The natural logarithm."""

from __future__ import annotations

import math
from fractions import Fraction

from tensorken_wgpu.wgsl.functions.floats import Float, economised

TEXT = """
struct Parted { fraction: F, exponent: i32 }
fn parted(x: F) -> Parted {
  let all = bitcast<U>(x);
  let small = all < NORMAL;
  let bits = select(all, bitcast<U>(F(I(all))), small) + UP_TO_ONE;
  let exponent = i32(bits >> FRACTION_BITS) - select(BIAS, BIAS_OF_SMALL, small);
  return Parted(bitcast<F>((bits & FRACTION) + ROOT_OF_HALF_BITS) - 1.0, exponent);
}
fn logarithm(x: F) -> F {
  let part = parted(x);
  let f = part.fraction;
  let s = f / (2.0 + f);
  let z = s * s;
  let rest = z * LOG_SERIES;
  let square = 0.5 * f * f;
  let k = F(part.exponent);
  let small = exact(fma(s, square + rest, k * LOG_2_LOW));
  let y = fma(k, LOG_2_HIGH, exact(f - exact(square - small)));
  let all = bitcast<U>(x);
  let infinite = select(nan(), infinity(), all == INFINITY);
  let special = select(infinite, -infinity(), (all & MAGNITUDE) == WORD_0);
  return select(special, y, all - WORD_1 < LARGEST);
}
"""
"""x = 2**n (1 + f), and the series of atanh at s = f / (2 + f), as in FDLIBM's e_log.c.

1 + f is between the roots of 1/2 and of 2: from the root of 1/2 on, the bits of x plus those of 1 minus those of
that root carry into the exponent. A subnormal number is an integer times the smallest one. There are no branches: the
special values, for zero, infinity, NaN and negative numbers, are selected at the end.
"""

LEADING_ZEROS = {
    "f32": "\nfn leading_zeros(bits: u32) -> u32 { return countLeadingZeros(bits); }\n",
    "f64": """
fn leading_zeros(bits: u64) -> u32 {
  let high = u32(bits >> 32u);
  return select(countLeadingZeros(high), 32u + countLeadingZeros(u32(bits & 0xfffffffflu)), high == 0u);
}
""",
}

_TERMS = {"f32": 3, "f64": 8}
_MOST = Fraction(3, 100)
"""An upper bound of z, which is at most (root - 1)**2 / (root + 1)**2 for the root of 2."""


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of the texts above."""
    terms = _TERMS[float_type.type]
    series = [Fraction(2, 2 * i + 3) for i in range(terms + 6)]
    one = float_type.bias << (float_type.digits - 1)
    root_of_half = math.isqrt(2 << 2 * (float_type.digits - 1)) + (
        float_type.bias - 2 << float_type.digits - 1
    )
    return {
        "ONE_BITS": float_type.word_of(one),
        "ROOT_OF_HALF_BITS": float_type.word_of(root_of_half),
        "UP_TO_ONE": float_type.word_of(one - root_of_half),
        "BIAS_OF_SMALL": str(2 * float_type.bias + float_type.digits - 2),
        "LOG_SERIES": float_type.series("z", economised(series, Fraction(0), _MOST, terms)),
    }
