"""Sums and products of complex numbers, for Fourier transforms: those of float32 with twice the digits.

A complex number of float32 is a vector of the real and the imaginary part, followed by their low parts.  The high parts
alone are what float32 computes, so that infinities and NaNs are as there; the low parts are the sums of all rounding
errors so far.  The names for float64, whose numbers have no low parts, end in `_f64`.
"""

from __future__ import annotations

TEXT = """
fn exact_parts(x: vec2<f32>) -> vec2<f32> { return bitcast<vec2<f32>>(bitcast<vec2<u32>>(x) | vec2<u32>(opaque)); }
fn upper_halves(x: vec2<f32>) -> vec2<f32> {
  return bitcast<vec2<f32>>(bitcast<vec2<u32>>(x) & vec2<u32>(0xfffff000u));
}
fn complex_number(real: f32, imag: f32) -> vec4<f32> { return vec4<f32>(real, imag, 0.0f, 0.0f); }
fn complex_parts(z: vec4<f32>) -> vec2<f32> {
  return vec2<f32>(select(z.x, z.x + z.z, is_finite(z.x)), select(z.y, z.y + z.w, is_finite(z.y)));
}
fn complex_turn(z: vec4<f32>) -> vec4<f32> { return vec4<f32>(z.y, -z.x, z.w, -z.z); }
fn complex_sum(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let s = exact_parts(a.xy + b.xy);
  let c = exact_parts(s - a.xy);
  let e = exact_parts(a.xy - exact_parts(s - c)) + exact_parts(b.xy - c);
  return vec4<f32>(s, e + (a.zw + b.zw));
}
fn product_error(a: vec2<f32>, b: vec2<f32>, p: vec2<f32>) -> vec2<f32> {
  let a1 = upper_halves(a);
  let a2 = exact_parts(a - a1);
  let b1 = upper_halves(b);
  let b2 = exact_parts(b - b1);
  return exact_parts(exact_parts(exact_parts(exact_parts(a1 * b1) - p) + a1 * b2) + a2 * b1) + a2 * b2;
}
fn complex_product(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let i = vec2<f32>(-b.y, b.y);
  let p = exact_parts(a.xy * b.xx);
  let q = exact_parts(a.yx * i);
  let low = (a.zw * b.xx + a.wz * i) + (a.xy * b.zz + a.yx * vec2<f32>(-b.w, b.w));
  let errors = product_error(a.xy, b.xx, p) + product_error(a.yx, i, q);
  return complex_sum(vec4<f32>(p, low), vec4<f32>(q, errors));
}
fn complex_number_f64(real: f64, imag: f64) -> vec2<f64> { return vec2<f64>(real, imag); }
fn complex_parts_f64(z: vec2<f64>) -> vec2<f64> { return z; }
fn complex_turn_f64(z: vec2<f64>) -> vec2<f64> { return vec2<f64>(z.y, -z.x); }
fn complex_sum_f64(a: vec2<f64>, b: vec2<f64>) -> vec2<f64> { return a + b; }
fn complex_product_f64(a: vec2<f64>, b: vec2<f64>) -> vec2<f64> {
  return vec2<f64>(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y);
}
"""
"""The errors of sums and products are those of `pairs`; `complex_turn` is the product with -i."""
