"""Numbers as unevaluated sums of a high and a much smaller low part, with twice the digits."""

from __future__ import annotations

from tensorken_wgpu.wgsl.functions.floats import Float

TEXT = """
struct Pair { high: F, low: F }
fn two_sum(a: F, b: F) -> Pair {
  let s = exact(a + b);
  let c = exact(s - a);
  return Pair(s, exact(exact(a - exact(s - c)) + exact(b - c)));
}
fn upper_half(a: F) -> F { return bitcast<F>(bitcast<U>(a) & UPPER_HALF); }
fn two_product(a: F, b: F) -> Pair {
  let p = exact(a * b);
  let a1 = upper_half(a);
  let a2 = exact(a - a1);
  let b1 = upper_half(b);
  let b2 = exact(b - b1);
  let e = exact(exact(exact(exact(a1 * b1) - p) + exact(a1 * b2)) + exact(a2 * b1));
  return Pair(p, exact(e + exact(a2 * b2)));
}
"""
"""Sums and products after T. J. Dekker, "A floating-point technique for extending the available precision", 1971.

A driver may round within its fma, as Mesa's software driver does, so the functions do not rely on fma.
"""


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of the text above."""
    lower = (float_type.digits + 1) // 2
    return {"UPPER_HALF": float_type.word_of((1 << float_type.bits) - (1 << lower))}
