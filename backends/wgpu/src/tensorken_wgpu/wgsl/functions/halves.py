"""float16 is computed in float32, and rounded to float16 after each operation."""

TEXT = """
fn to_f16(x: f32) -> f32 {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits >= 0x477ff000u) { return select(sign(x) * infinity(), x, is_nan(x)); }
  let even = (bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
  let small = bitcast<u32>(exact(exact(abs(x) + 0.5) - 0.5));
  return bitcast<f32>(select(even, small, bits < 0x38800000u) | (bitcast<u32>(x) & 0x80000000u));
}
fn half_quotient(a: f32, b: f32) -> f32 {
  let q = a / b;
  let upper = upper_half(q);
  let rest = exact(exact(a - exact(upper * b)) / b);
  return to_f16(select(q, exact(upper + rest), is_finite(q) && is_finite(b) && abs(q) > 0.0));
}
fn half_root(x: f32) -> f32 {
  let y = sqrt(x);
  let upper = upper_half(y);
  let rest = exact(exact(x - exact(upper * upper)) / exact(y + upper));
  return to_f16(select(y, exact(upper + rest), is_finite(y) && y > 0.0));
}
fn half_bits(x: f32) -> i32 { return bitcast<i32>(pack2x16float(vec2<f32>(x, 0.0)) << 16u) >> 16u; }
"""
"""A driver may round float32 to float16 up or down; this rounds to nearest, ties to even.

Numbers below 2**-14 are multiples of 2**-24, the last digit of numbers from 0.5 to 1.  Rounding sums and products
of two float16 twice is innocuous (S. A. Figueroa, "When is double rounding innocuous?", 1995); so are quotients and
roots if float32's are correctly rounded, which drivers need not do: a second step corrects them.
"""

FROM_DOUBLES = """
fn to_f16_f64(x: f64) -> f32 {
  let bits = bitcast<u64>(x);
  let odd = select(0lu, 0x20000000lu, (bits & 0x1ffffffflu) != 0lu);
  return to_f16(f32(bitcast<f64>((bits & 0xffffffffe0000000lu) | odd)));
}
"""
"""The last bit of the intermediate float32 is sticky, so the value is rounded once."""
