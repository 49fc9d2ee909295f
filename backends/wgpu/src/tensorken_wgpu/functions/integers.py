"""What integers have of their own, and how floats become integers."""

from __future__ import annotations

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

FROM_FLOATS = """
fn to_i32(x: F) -> i32 {
  if (is_nan(x)) { return 0; }
  if (x >= END_OF_I32) { return 2147483647; }
  return select(i32(x), bitcast<i32>(0x80000000u), x <= -END_OF_I32);
}
fn to_i64(x: F) -> i64 {
  if (is_nan(x)) { return 0li; }
  if (x >= END_OF_I64) { return 9223372036854775807li; }
  return select(i64(x), bitcast<i64>(0x8000000000000000lu), x <= -END_OF_I64);
}
"""
