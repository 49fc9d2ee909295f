"""What integers have of their own: `I` is the type, `W` the unsigned one, `BITS` their size."""

from __future__ import annotations

# Mesa 22.3.6 takes `i64(x) < c` of an i32 for a comparison of 32 bits, and has it wrong; this it does not see through.
WIDENED = """
fn widened(x: i32) -> i64 { return i64(x) | i64(opaque.x); }
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
