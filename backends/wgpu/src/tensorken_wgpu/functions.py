"""Functions in WGSL: those that the language's built-in ones are too inaccurate for, or have other special values."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
"""The bits of 2/pi after the point, in words, after one word of zeros."""


def _series(x: str, coefficients: list[float]) -> str:
    """A polynomial, the constant first, by Horner's rule."""
    text = literal(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        text = f"fma({text}, {x}, {literal(c)})"
    return text


def literal(value: float) -> str:
    """A number that float32 has, or is near to one, neither special nor subnormal."""
    (near,) = struct.unpack("<f", struct.pack("<f", value))
    return f"{near!r}f" if near >= 0 else f"({near!r}f)"


def _words() -> Iterator[str]:
    for i, word in enumerate(TWO_OVER_PI):
        yield f"    case {i}u: {{ return {word:#010x}u; }}"


_EXP = _series("r", [1 / math.factorial(i) for i in range(2, 8)])
_SIN = _series("s", [(-1) ** i / math.factorial(2 * i + 1) for i in range(1, 6)])
_COS = _series("s", [(-1) ** i / math.factorial(2 * i) for i in range(2, 7)])
_LOG = _series("z", [2 / (2 * i + 1) for i in range(1, 6)])

SPECIAL = """
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }
fn zero() -> f32 { return bitcast<f32>(opaque.x); }
fn infinity() -> f32 { return bitcast<f32>(opaque.y); }
fn nan() -> f32 { return bitcast<f32>(opaque.z); }
fn minus_zero() -> f32 { return bitcast<f32>(opaque.w); }
fn exact(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) | opaque.x); }
fn minus_itself(x: f32) -> f32 { return select(nan(), zero(), is_finite(x)); }
fn over_itself(x: f32) -> f32 { return select(nan(), 1.0, is_finite(x) && x != 0.0); }
fn larger(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan(b)), a, is_nan(a)); }
"""
"""`exact` keeps a compiler from joining an operation with the next, as if there were no rounding between them."""

EXP = f"""
fn two_to(n: i32) -> f32 {{ return bitcast<f32>(u32(n + 127) << 23u); }}
fn scaled(x: f32, n: i32) -> f32 {{
  let half = n / 2;
  return exact(x * two_to(half)) * two_to(n - half);
}}
fn exponential(x: f32) -> f32 {{
  if (is_nan(x)) {{ return x; }}
  if (x > 89.0) {{ return infinity(); }}
  if (x < -104.0) {{ return zero(); }}
  let n = floor(fma(x, {literal(1 / math.log(2))}, 0.5));
  let r = fma(n, {literal(2.12194440e-4)}, exact(fma(n, -0.693359375, x)));
  return scaled(1.0 + fma(r * r, {_EXP}, r), i32(n));
}}
"""
"""x = n log 2 + r, and the series of exp(r); 0.693359375 has so few bits that its multiples are exact."""

EXP2 = f"""
fn power_of_two(x: f32) -> f32 {{
  if (is_nan(x)) {{ return x; }}
  if (x >= 128.0) {{ return infinity(); }}
  if (x < -150.0) {{ return zero(); }}
  let n = floor(exact(x + 0.5));
  let r = exact(x - n) * {literal(math.log(2))};
  return scaled(1.0 + fma(r * r, {_EXP}, r), i32(n));
}}
"""

LOG = f"""
struct Parted {{ fraction: f32, exponent: i32 }}
fn parted(x: f32) -> Parted {{
  var bits = bitcast<u32>(x);
  var n = 0;
  if (bits < 0x00800000u) {{
    let places = countLeadingZeros(bits) - 8u;
    bits = bits << places;
    n = 1 - i32(places) - 127;
  }} else {{
    n = i32(bits >> 23u) - 127;
  }}
  bits = (bits & 0x007fffffu) | 0x3f800000u;
  if (bits >= 0x3fb504f3u) {{
    bits -= 0x00800000u;
    n += 1;
  }}
  return Parted(bitcast<f32>(bits) - 1.0, n);
}}
fn logarithm(x: f32) -> f32 {{
  if (is_nan(x) || x < 0.0) {{ return nan(); }}
  if (x == 0.0 && (bitcast<u32>(x) & 0x7fffffffu) == 0u) {{ return -infinity(); }}
  if (x == infinity()) {{ return x; }}
  let part = parted(x);
  let f = part.fraction;
  let s = f / (2.0 + f);
  let z = s * s;
  let rest = z * {_LOG};
  let half = 0.5 * f * f;
  let k = f32(part.exponent);
  let small = exact(fma(s, half + rest, k * ({literal(-2.12194440e-4)})));
  return fma(k, 0.693359375, exact(f - exact(half - small)));
}}
"""
"""x = 2**n (1 + f), and the series of atanh at s = f / (2 + f), as in FDLIBM's e_log.c."""

TRIGONOMETRY = "\n".join(
    [
        "",
        "fn two_over_pi(i: u32) -> u32 {",
        "  switch (i) {",
        *_words(),
        "    default: { return 0u; }",
        "  }",
        "}",
        f"""fn bits_of_two_over_pi(word: u32, bit: u32) -> u32 {{
  let high = two_over_pi(word) << bit;
  return select(high | (two_over_pi(word + 1u) >> (32u - bit)), high, bit == 0u);
}}
fn high_product(a: u32, b: u32) -> u32 {{
  let low = (a & 0xffffu) * (b & 0xffffu);
  let one = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let two = (a & 0xffffu) * (b >> 16u) + (one & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (one >> 16u) + (two >> 16u);
}}
struct Angle {{ quadrant: u32, rest: f32 }}
fn angle_of(x: f32) -> Angle {{
  if (abs(x) < 8.0) {{
    let k = floor(fma(x, {literal(2 / math.pi)}, 0.5));
    let near = exact(fma(k, -1.5703125, x));
    let nearer = exact(fma(k, {literal(-4.837512969970703125e-4)}, near));
    let nearest = exact(fma(k, {literal(-7.549533620476723e-08)}, nearer));
    let r = fma(k, {literal(-2.563344151594519e-12)}, nearest);
    return Angle(u32(i32(k)) & 3u, r);
  }}
  let bits = bitcast<u32>(x);
  let m = (bits & 0x007fffffu) | 0x00800000u;
  let start = (bits >> 23u & 0xffu) - 120u;
  let word = start / 32u;
  let bit = start % 32u;
  let w0 = bits_of_two_over_pi(word, bit);
  let w1 = bits_of_two_over_pi(word + 1u, bit);
  let w2 = bits_of_two_over_pi(word + 2u, bit);
  let low = m * w2;
  let part = m * w1;
  let middle = part + high_product(m, w2);
  let high = m * w0 + high_product(m, w1) + select(0u, 1u, middle < part);
  var quadrant = high >> 30u;
  var one = (high << 2u) | (middle >> 30u);
  var two = (middle << 2u) | (low >> 30u);
  let below = (one >> 31u) == 1u;
  if (below) {{
    quadrant += 1u;
    one = ~one;
    two = ~two;
  }}
  if (one == 0u) {{
    one = two;
    two = 0u;
    quadrant |= 0x100u;
  }}
  let places = countLeadingZeros(one);
  let top = select((one << places) | (two >> (32u - places)), one, places == 0u);
  var n = -32 - i32(places);
  if ((quadrant & 0x100u) != 0u) {{ n -= 32; }}
  var r = f32(top) * two_to(n) * {literal(math.pi / 2)};
  if (below) {{ r = -r; }}
  if ((bits >> 31u) == 1u) {{
    r = -r;
    quadrant = 4u - (quadrant & 3u);
  }}
  return Angle(quadrant & 3u, r);
}}
fn sine_of(r: f32) -> f32 {{
  let s = r * r;
  return fma(r * s, {_SIN}, r);
}}
fn cosine_of(r: f32) -> f32 {{
  let s = r * r;
  let half = 0.5 * s;
  let top = exact(1.0 - half);
  return top + fma(s * s, {_COS}, exact(exact(1.0 - top) - half));
}}
fn sine(x: f32) -> f32 {{
  if (!is_finite(x)) {{ return nan(); }}
  if (abs(x) < 0.0003) {{ return x; }}
  let angle = angle_of(x);
  let y = select(sine_of(angle.rest), cosine_of(angle.rest), (angle.quadrant & 1u) == 1u);
  return select(y, -y, angle.quadrant >= 2u);
}}
fn cosine(x: f32) -> f32 {{
  if (!is_finite(x)) {{ return nan(); }}
  let angle = angle_of(x);
  let y = select(cosine_of(angle.rest), sine_of(angle.rest), (angle.quadrant & 1u) == 1u);
  return select(y, -y, ((angle.quadrant + 1u) & 2u) != 0u);
}}
""",
    ]
)
"""x = k pi/2 + r: below 8 with pi/2 in four parts, beyond with as many bits of 2/pi as matter.

The first after W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980; the second after M. H.
Payne and R. N. Hanek, "Radian reduction for trigonometric functions", 1983.
"""

POWER = f"""
struct Pair {{ high: f32, low: f32 }}
fn is_odd(x: f32) -> bool {{ return abs(x) < 16777216.0 && fract(abs(x) * 0.5) == 0.5; }}
fn two_sum(a: f32, b: f32) -> Pair {{
  let s = exact(a + b);
  let c = exact(s - a);
  return Pair(s, exact(exact(a - exact(s - c)) + exact(b - c)));
}}
fn upper_half(a: f32) -> f32 {{ return bitcast<f32>(bitcast<u32>(a) & 0xfffff000u); }}
fn two_product(a: f32, b: f32) -> Pair {{
  let p = exact(a * b);
  let a1 = upper_half(a);
  let a2 = exact(a - a1);
  let b1 = upper_half(b);
  let b2 = exact(b - b1);
  let e = exact(exact(exact(exact(a1 * b1) - p) + exact(a1 * b2)) + exact(a2 * b1));
  return Pair(p, exact(e + exact(a2 * b2)));
}}
fn logarithm_of(x: f32) -> Pair {{
  let part = parted(x);
  let f = part.fraction;
  let d = two_sum(2.0, f);
  let s = exact(f / d.high);
  let p = two_product(s, d.high);
  let s2 = exact(exact(exact(exact(f - p.high) - p.low) - exact(s * d.low)) / d.high);
  let z = two_product(s, s);
  let zz = exact(z.high + exact(z.low + exact(2.0 * exact(s * s2))));
  let cube = two_product(s, z.high);
  let cube_low = exact(cube.low + exact(s * exact(z.low + exact(2.0 * exact(s * s2)))) + exact(s2 * z.high));
  let third = two_product(cube.high, {literal(2 / 3)});
  let third_more = exact(cube.high * {literal(2 / 3 - 0.6666666865348816)});
  let third_low = exact(third.low + exact(third_more + exact(cube_low * {literal(2 / 3)})));
  let tail = exact(exact(cube.high * zz) * {_series("zz", [2 / (2 * i + 1) for i in range(2, 8)])});
  let k = f32(part.exponent);
  let base = two_sum(exact(k * 0.693145751953125), exact(2.0 * s));
  let more = two_sum(base.high, third.high);
  let small = exact(tail + exact(k * {literal(math.log(2) - 0.693145751953125)}));
  let low = exact(exact(base.low + more.low) + exact(exact(2.0 * s2) + exact(third_low + small)));
  return two_sum(more.high, low);
}}
fn power(a: f32, b: f32) -> f32 {{
  if (b == 0.0 || a == 1.0) {{ return 1.0; }}
  if (is_nan(a) || is_nan(b)) {{ return nan(); }}
  let size = abs(a);
  if (abs(b) == infinity()) {{
    if (size == 1.0) {{ return 1.0; }}
    return select(zero(), infinity(), (size > 1.0) == (b > 0.0));
  }}
  let negative = (bitcast<u32>(a) >> 31u) == 1u && is_odd(b);
  if ((bitcast<u32>(a) & 0x7fffffffu) == 0u || size == infinity()) {{
    let y = select(zero(), infinity(), (size == infinity()) == (b > 0.0));
    return select(y, -y, negative);
  }}
  if (a < 0.0 && floor(b) != b) {{ return nan(); }}
  let l = logarithm_of(size);
  if (abs(b) > 1.0e10) {{
    if (l.high == 0.0 && l.low == 0.0) {{ return select(1.0, -1.0, negative); }}
    let y = select(zero(), infinity(), (l.high > 0.0) == (b > 0.0));
    return select(y, -y, negative);
  }}
  let p = two_product(l.high, b);
  let low = exact(p.low + exact(l.low * b));
  var y = zero();
  if (p.high > 90.0) {{
    y = infinity();
  }} else if (p.high > -105.0) {{
    let n = floor(fma(p.high, {literal(1 / math.log(2))}, 0.5));
    let near = exact(fma(n, -0.693145751953125, p.high));
    let r = exact(near + exact(fma(n, {literal(0.693145751953125 - math.log(2))}, low)));
    y = scaled(1.0 + fma(r * r, {_EXP}, r), i32(n));
  }}
  return select(y, -y, negative);
}}
"""
"""exp(b log a), the logarithm and its product with b in two numbers each.

The sums and products of two numbers after T. J. Dekker, "A floating-point technique for extending the available
precision", 1971; log 2 begins with 0.693145751953125, whose multiples by up to 256 are exact.
"""

INTEGERS = """
fn to_integer(x: f32) -> i32 {
  if (is_nan(x)) { return 0; }
  if (x >= 2147483648.0) { return 2147483647; }
  return i32(x);
}
fn floor_divide(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  let q = a / b;
  return select(q, q - 1, (a % b != 0) && ((a < 0) != (b < 0)));
}
fn shift_left(a: i32, b: i32) -> i32 { return select(0, a << u32(b & 31), b >= 0 && b < 32); }
fn shift_right(a: i32, b: i32) -> i32 {
  return select(0, bitcast<i32>(bitcast<u32>(a) >> u32(b & 31)), b >= 0 && b < 32);
}
"""

PRELUDE = SPECIAL + EXP + EXP2 + LOG + TRIGONOMETRY + POWER + INTEGERS
