"""Zeros, infinities and NaN, which WGSL lets a compiler assume absent."""

from __future__ import annotations

from tensorken_wgpu.wgsl.functions.floats import Float

TEXT = """
fn is_nan(x: F) -> bool { return (bitcast<U>(x) & MAGNITUDE) > INFINITY; }
fn is_finite(x: F) -> bool { return (bitcast<U>(x) & INFINITY) != INFINITY; }
fn zero() -> F { return bitcast<F>(U(opaque)); }
fn infinity() -> F { return bitcast<F>(U(opaque) | INFINITY); }
fn nan() -> F { return bitcast<F>(U(opaque) | NAN); }
fn minus_zero() -> F { return bitcast<F>(U(opaque) | SIGN); }
fn exact(x: F) -> F { return bitcast<F>(bitcast<U>(x) | U(opaque)); }
fn minus_itself(x: F) -> F { return select(nan(), zero(), is_finite(x)); }
fn over_itself(x: F) -> F { return select(nan(), ONE, is_finite(x) && x != ZERO); }
fn quotient(a: F, b: F) -> F {
  let scale = select(ONE, LESS, abs(b) > LARGE);
  return exact(exact(a * scale) / exact(b * scale));
}
fn nonzero(x: F) -> bool { return is_nan(x) || x != ZERO; }
fn larger(a: F, b: F) -> F { return select(b, a, a > b || is_nan(a)); }
"""
"""`opaque` is 0, but the compiler does not know that.

`exact` keeps the compiler from contracting an operation with the next one, which would skip a rounding.

Drivers multiply by the reciprocal of a divisor.  Vulkan promises nothing for a divisor whose reciprocal is subnormal:
NVIDIA's driver takes that for 0, so inf / 3e38 is NaN and 3e38 / 3e38 is 0.  `quotient` multiplies both operands by a
power of two first, which is exact where the quotient is not 0 anyway.
"""


def words(float_type: Float) -> dict[str, str]:
    """The type-dependent words of all functions."""
    fraction_bits = float_type.digits - 1
    infinity = 2 * float_type.bias + 1 << fraction_bits
    return {
        "F": float_type.type,
        "U": float_type.word,
        "I": float_type.word.replace("u", "i"),
        "ZERO": float_type.literal(0.0),
        "ONE": float_type.literal(1.0),
        "LESS": float_type.literal(2.0**-4),
        "LARGE": float_type.literal(2.0 ** (float_type.bias - 3)),
        "WORD_0": float_type.word_of(0),
        "WORD_1": float_type.word_of(1),
        "LARGEST": float_type.word_of(infinity - 1),
        "INFINITY": float_type.word_of(infinity),
        "NAN": float_type.word_of(infinity | 1 << fraction_bits - 1),
        "SIGN": float_type.word_of(1 << float_type.bits - 1),
        "MAGNITUDE": float_type.word_of((1 << float_type.bits - 1) - 1),
        "FRACTION": float_type.word_of((1 << fraction_bits) - 1),
        "NORMAL": float_type.word_of(1 << fraction_bits),
        "FRACTION_BITS": f"{fraction_bits}u",
        "BIAS": str(float_type.bias),
    }
