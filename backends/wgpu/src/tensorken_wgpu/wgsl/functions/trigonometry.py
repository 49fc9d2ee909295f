"""Sine and cosine, of angles of any size."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from tensorken_wgpu.wgsl.functions.floats import HALF_PI, Float

TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6bab",
    16,
)
"""The first bits of 2/pi after the point."""

BITS = 1216
"""The number of bits: as many as the largest float64 needs."""

TEXT = """
fn two_over_pi(i: u32) -> U {
  switch (i) {
    TWO_OVER_PI
    default: { return WORD_0; }
  }
}
fn joined(a: U, b: U, bit: u32) -> U { return select((a << bit) | (b >> (SIZE - bit)), a, bit == 0u); }
fn high_product(a: U, b: U) -> U {
  let low = (a & LOWER_HALF) * (b & LOWER_HALF);
  let one = (a >> HALF_SIZE) * (b & LOWER_HALF) + (low >> HALF_SIZE);
  let two = (a & LOWER_HALF) * (b >> HALF_SIZE) + (one & LOWER_HALF);
  return (a >> HALF_SIZE) * (b >> HALF_SIZE) + (one >> HALF_SIZE) + (two >> HALF_SIZE);
}
struct Angle { quadrant: u32, rest: Pair }
fn small_angle(x: F) -> Angle {
  let k = floor(fma(x, TWO_OVER_PI_NEAR, 0.5));
  let near = exact(fma(k, -HALF_PI_1, x));
  let nearer = two_sum(near, exact(k * -HALF_PI_2));
  let nearest = two_sum(nearer.high, exact(k * -HALF_PI_3));
  return Angle(u32(i32(k)) & 3u, two_sum(nearest.high, exact(nearest.low + nearer.low)));
}
fn large_angle(x: F) -> Angle {
  let bits = bitcast<U>(x);
  let m = (bits & FRACTION) | NORMAL;
  let start = u32((bits & MAGNITUDE) >> FRACTION_BITS) - FIRST_EXPONENT;
  let word = start / SIZE;
  let bit = start % SIZE;
  let second = two_over_pi(word + 1u);
  let third = two_over_pi(word + 2u);
  let w0 = joined(two_over_pi(word), second, bit);
  let w1 = joined(second, third, bit);
  let w2 = joined(third, two_over_pi(word + 3u), bit);
  let low = m * w2;
  let part = m * w1;
  let middle = part + high_product(m, w2);
  let high = m * w0 + high_product(m, w1) + select(WORD_0, WORD_1, middle < part);
  var quadrant = u32(high >> LAST_TWO);
  var one = (high << 2u) | (middle >> LAST_TWO);
  var two = (middle << 2u) | (low >> LAST_TWO);
  let below = (one & SIGN) != WORD_0;
  if (below) {
    quadrant += 1u;
    one = ~one;
    two = ~two;
  }
  let places = leading_zeros(one);
  let top = joined(one, two, places);
  let unit = two_to(-SIZE_OF_WORD - i32(places));
  let rest = F(top & BELOW_DIGITS) * unit;
  let turn = F(top & DIGITS) * unit;
  let r = two_product(turn, HALF_PI_HIGH);
  let r_low = exact(r.low + exact(exact(turn * HALF_PI_LOW) + exact(rest * HALF_PI_HIGH)));
  let sum = two_sum(r.high, r_low);
  let negative = (bits & SIGN) != WORD_0;
  quadrant = select(quadrant, 4u - (quadrant & 3u), negative);
  if (below != negative) { return Angle(quadrant & 3u, Pair(-sum.high, -sum.low)); }
  return Angle(quadrant & 3u, sum);
}
fn angle_of(x: F) -> Angle {
  if (abs(x) < SMALL_ANGLES) { return small_angle(x); }
  return large_angle(x);
}
fn sine_of(r: Pair) -> F {
  let x = r.high;
  let s = x * x;
  let cube = s * x;
  return x - exact(fma(s, 0.5 * r.low - cube * SIN_SERIES, -r.low) - cube * SIN_FIRST);
}
fn cosine_of(r: Pair) -> F {
  let s = r.high * r.high;
  let square = 0.5 * s;
  let top = exact(1.0 - square);
  let rest = fma(s * s, COS_SERIES, -r.high * r.low);
  return top + exact(exact(exact(1.0 - top) - square) + rest);
}
fn sine(x: F) -> F {
  if (!is_finite(x)) { return nan(); }
  if (abs(x) < LINEAR) { return x; }
  let angle = angle_of(x);
  let y = select(sine_of(angle.rest), cosine_of(angle.rest), (angle.quadrant & 1u) == 1u);
  return select(y, -y, angle.quadrant >= 2u);
}
fn cosine(x: F) -> F {
  if (!is_finite(x)) { return nan(); }
  let angle = angle_of(x);
  let y = select(cosine_of(angle.rest), sine_of(angle.rest), (angle.quadrant & 1u) == 1u);
  return select(y, -y, ((angle.quadrant + 1u) & 2u) != 0u);
}
"""
"""x = k pi/2 + r: small angles with pi/2 in three parts, large ones with the relevant bits of 2/pi.

The first after W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980; the second after M.
H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", 1983; the series of r in two parts as in
FDLIBM's k_sin.c and k_cos.c.  No float is so near to a multiple of pi/2 that the word `one` is 0.
"""

_TURNS = {"f32": 4, "f64": 12}
"""The most bits of k for which pi/2 in three parts has enough digits, for the x nearest to a multiple of pi/2."""

_SIN_TERMS = {"f32": 6, "f64": 9}
_COS_TERMS = {"f32": 7, "f64": 9}


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of the text above, besides those of other functions."""
    size, upper = float_type.bits, float_type.digits - _TURNS[float_type.type]
    numbers = [TWO_OVER_PI >> (BITS - size * (i + 1)) & ((1 << size) - 1) for i in range(_words(float_type))]
    near = Fraction(TWO_OVER_PI, 1 << BITS)
    below = (1 << float_type.bits - float_type.digits) - 1
    sin = [Fraction((-1) ** i, factorial(2 * i + 1)) for i in range(1, _SIN_TERMS[float_type.type])]
    cos = [Fraction((-1) ** i, factorial(2 * i)) for i in range(2, _COS_TERMS[float_type.type])]
    parts = float_type.split(HALF_PI, upper, upper)
    return {
        "TWO_OVER_PI": "\n    ".join(
            [f"case {i}u: {{ return {float_type.word_of(w)}; }}" for i, w in enumerate(numbers, 1)]
        ),
        "TWO_OVER_PI_NEAR": float_type.literal(near),
        "SMALL_ANGLES": float_type.literal(1 << _TURNS[float_type.type]),
        **dict(zip(("HALF_PI_1", "HALF_PI_2", "HALF_PI_3"), parts, strict=True)),
        "HALF_PI_HIGH": float_type.literal(HALF_PI),
        "HALF_PI_LOW": float_type.literal(HALF_PI - float_type.nearest(HALF_PI)),
        "FIRST_EXPONENT": f"{float_type.bias + float_type.digits + 1 - size}u",
        "LOWER_HALF": float_type.word_of((1 << size // 2) - 1),
        "HALF_SIZE": f"{size // 2}u",
        "SIZE": f"{size}u",
        "SIZE_OF_WORD": str(size),
        "LAST_TWO": f"{size - 2}u",
        "BELOW_DIGITS": float_type.word_of(below),
        "DIGITS": float_type.word_of((1 << float_type.bits) - 1 - below),
        "LINEAR": float_type.literal(Fraction(1, 1 << float_type.digits // 2)),
        "SIN_FIRST": float_type.literal(sin[0]),
        "SIN_SERIES": float_type.series("s", sin[1:]),
        "COS_SERIES": float_type.series("s", cos),
    }


def _words(float_type: Float) -> int:
    """How many words of 2/pi the largest number of a type needs."""
    last = 2 * float_type.bias - (float_type.bias + float_type.digits + 1 - float_type.bits)
    return last // float_type.bits + 3
