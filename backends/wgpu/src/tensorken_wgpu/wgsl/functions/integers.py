"""Functions of integers: `I` is the type, `W` the unsigned type, `BITS` their size."""

from __future__ import annotations

# Mesa 22.3.6 compiles `i64(x) < c` of an i32 to a wrong comparison of 32 bits; the `|` hides the conversion from it.
# wgpu 0.32 extends the sign in `i64(x)` of a u32, but not in `u64(x)`.
WIDENED = """
fn widened(x: i32) -> i64 { return i64(x) | i64(opaque); }
fn widened_u32(x: u32) -> i64 { return bitcast<i64>(u64(x) | u64(opaque)); }
"""

TEXT = """
fn floor_divide(a: I, b: I) -> I {
  if (b == I(0)) { return I(0); }
  let q = a / b;
  return select(q, q - I(1), (a % b != I(0)) && ((a < I(0)) != (b < I(0))));
}
fn shift_left(a: I, b: I) -> I { return select(I(0), a << u32(b & I(BITS - 1)), b >= I(0) && b < I(BITS)); }
fn shift_right(a: I, b: I) -> I {
  return select(I(0), I(W(a) >> u32(b & I(BITS - 1))), b >= I(0) && b < I(BITS));
}
"""
