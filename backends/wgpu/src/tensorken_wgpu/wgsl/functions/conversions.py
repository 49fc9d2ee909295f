"""Floats to integers: truncated, saturating, NaN as 0."""

from __future__ import annotations

from tensorken_wgpu.wgsl.functions.floats import Float

TEXT = """
fn to_i32(x: F) -> i32 {
  if (is_nan(x)) { return 0; }
  if (x >= END_OF_I32) { return 2147483647; }
  return select(i32(x), bitcast<i32>(0x80000000u), x <= -END_OF_I32);
}
fn to_u32(x: F) -> u32 {
  if (is_nan(x) || x <= ZERO) { return 0u; }
  if (x >= END_OF_U32) { return 0xffffffffu; }
  return u32(x);
}
fn to_i64(x: F) -> i64 {
  if (is_nan(x)) { return 0li; }
  if (x >= END_OF_I64) { return 9223372036854775807li; }
  return select(i64(x), bitcast<i64>(0x8000000000000000lu), x <= -END_OF_I64);
}
"""


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of the text above."""
    ends = {"END_OF_I32": 2.0**31, "END_OF_U32": 2.0**32, "END_OF_I64": 2.0**63}
    return {name: float_type.literal(end) for name, end in ends.items()}
