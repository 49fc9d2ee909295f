"""a**b."""

from __future__ import annotations

from fractions import Fraction

from tensorken_wgpu.wgsl.functions.floats import LOG_2, Float

TEXT = """
fn is_odd(x: F) -> bool {
  let y = abs(x) * 0.5;
  return abs(x) < ODD_END && y - floor(y) == 0.5;
}
fn logarithm_of(x: F) -> Pair {
  let part = parted(x);
  let f = part.fraction;
  let d = two_sum(TWO, f);
  let s = exact(f / d.high);
  let p = two_product(s, d.high);
  let s2 = exact(exact(exact(exact(f - p.high) - p.low) - exact(s * d.low)) / d.high);
  let square = two_product(s, s);
  let square_low = exact(square.low + exact(2.0 * exact(s * s2)));
  let z = exact(square.high + square_low);
  let cube = two_product(s, square.high);
  let cube_low = exact(cube.low + exact(s * square_low) + exact(s2 * square.high));
  let third = two_product(cube.high, TWO_THIRDS);
  let third_more = exact(cube.high * TWO_THIRDS_LOW);
  let third_low = exact(third.low + exact(third_more + exact(cube_low * TWO_THIRDS)));
  let tail = exact(exact(cube.high * z) * POWER_SERIES);
  let k = F(part.exponent);
  let base = two_sum(exact(k * LOG_2_HIGH), exact(2.0 * s));
  let more = two_sum(base.high, third.high);
  let small = exact(tail + exact(k * LOG_2_LOW));
  let low = exact(exact(base.low + more.low) + exact(exact(2.0 * s2) + exact(third_low + small)));
  return two_sum(more.high, low);
}
fn power(a: F, b: F) -> F {
  if (b == 0.0 || a == 1.0) { return ONE; }
  if (is_nan(a) || is_nan(b)) { return nan(); }
  let size = abs(a);
  if (abs(b) == infinity()) {
    if (size == 1.0) { return ONE; }
    return select(zero(), infinity(), (size > 1.0) == (b > 0.0));
  }
  let negative = (bitcast<U>(a) & SIGN) != WORD_0 && is_odd(b);
  if ((bitcast<U>(a) & MAGNITUDE) == WORD_0 || size == infinity()) {
    let y = select(zero(), infinity(), (size == infinity()) == (b > 0.0));
    return select(y, -y, negative);
  }
  if (a < 0.0 && floor(b) != b) { return nan(); }
  let l = logarithm_of(size);
  if (abs(b) > EXPONENT_END) {
    if (l.high == 0.0 && l.low == 0.0) { return select(ONE, -ONE, negative); }
    let y = select(zero(), infinity(), (l.high > 0.0) == (b > 0.0));
    return select(y, -y, negative);
  }
  let p = two_product(l.high, b);
  let low = exact(p.low + exact(l.low * b));
  var y = zero();
  if (p.high > EXP_OVERFLOWS) {
    y = infinity();
  } else if (p.high > EXP_VANISHES) {
    let t = exact(fma(p.high, LOG2_E, ROUNDING_SHIFT));
    let n = t - ROUNDING_SHIFT;
    let near = exact(fma(n, -LOG_2_HIGH, p.high));
    let r = exact(near + exact(fma(n, -LOG_2_LOW, low)));
    y = exponential_of(r, t);
  }
  return select(y, -y, negative);
}
"""
"""exp(b log a), with the logarithm and its product with b as pairs."""

_TERMS = {"f32": 8, "f64": 13}


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of the text above, besides those of other functions."""
    two_thirds = Fraction(2, 3)
    return {
        "TWO": float_type.literal(2.0),
        "TWO_THIRDS": float_type.literal(two_thirds),
        "TWO_THIRDS_LOW": float_type.literal(two_thirds - float_type.nearest(two_thirds)),
        "POWER_SERIES": float_type.series(
            "z", [Fraction(2, 2 * i + 1) for i in range(2, _TERMS[float_type.type])]
        ),
        "ODD_END": float_type.literal(1 << float_type.digits),
        "EXPONENT_END": float_type.literal(
            (float_type.bias + float_type.digits + 1) * LOG_2 * (2 << float_type.digits)
        ),
    }
