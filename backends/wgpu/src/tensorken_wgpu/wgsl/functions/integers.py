"""Functions of integers: `I` is the type, `W` the unsigned type, `BITS` their size."""

from __future__ import annotations

# Mesa 22.3.6 compiles `i64(x) < c` of an i32 to a wrong comparison of 32 bits; the `|` hides the conversion from it.
# wgpu 0.32 extends the sign in `i64(x)` of a u32, but not in `u64(x)`.
WIDENED = """
fn widened(x: i32) -> i64 { return i64(x) | i64(opaque); }
fn widened_u32(x: u32) -> i64 { return bitcast<i64>(u64(x) | u64(opaque)); }
"""

TEXT = """
fn magnitude(a: I) -> W { return select(W(a), W(0) - W(a), a < I(0)); }
fn floor_divide(a: I, b: I) -> I {
  if (b == I(0)) { return I(0); }
  let m = magnitude(a);
  let n = magnitude(b);
  let q = m / n;
  let more = select(W(0), W(1), q * n != m);
  return I(select(q, W(0) - (q + more), (a < I(0)) != (b < I(0))));
}
fn shift_left(a: I, b: I) -> I { return select(I(0), a << u32(b & I(BITS - 1)), b >= I(0) && b < I(BITS)); }
fn shift_right(a: I, b: I) -> I {
  return select(I(0), I(W(a) >> u32(b & I(BITS - 1))), b >= I(0) && b < I(BITS));
}
"""
"""Vulkan leaves the remainder of negative numbers undefined: for NVIDIA's driver 1 % -1 is not 0.  So quotients are
those of magnitudes, which are unsigned, and are rounded down by their products with the divisor.
"""
