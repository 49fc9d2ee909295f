"""Zeros, infinities and NaN, which WGSL lets a compiler assume absent."""

from __future__ import annotations

from tensorken_wgpu.functions.floats import Float

TEXT = """
fn is_nan(x: F) -> bool { return (bitcast<U>(x) & MAGNITUDE) > INFINITY; }
fn is_finite(x: F) -> bool { return (bitcast<U>(x) & INFINITY) != INFINITY; }
fn zero() -> F { return bitcast<F>(U(opaque.x)); }
fn infinity() -> F { return bitcast<F>(U(opaque.x) | INFINITY); }
fn nan() -> F { return bitcast<F>(U(opaque.x) | NAN); }
fn minus_zero() -> F { return bitcast<F>(U(opaque.x) | SIGN); }
fn exact(x: F) -> F { return bitcast<F>(bitcast<U>(x) | U(opaque.x)); }
fn minus_itself(x: F) -> F { return select(nan(), zero(), is_finite(x)); }
fn over_itself(x: F) -> F { return select(nan(), ONE, is_finite(x) && x != ZERO); }
fn larger(a: F, b: F) -> F { return select(b, a, a > b || is_nan(a)); }
"""
"""`opaque.x` is 0, but the compiler does not know that.

`exact` keeps the compiler from contracting an operation with the next one, which would skip a rounding.
"""


def words(of: Float) -> dict[str, str]:
    """The type-dependent words of all functions."""
    places = of.digits - 1
    infinity = 2 * of.bias + 1 << places
    return {
        "F": of.type,
        "U": of.word,
        "I": of.word.replace("u", "i"),
        "ZERO": of.literal(0.0),
        "ONE": of.literal(1.0),
        "WORD_0": of.word_of(0),
        "WORD_1": of.word_of(1),
        "LARGEST": of.word_of(infinity - 1),
        "INFINITY": of.word_of(infinity),
        "NAN": of.word_of(infinity | 1 << places - 1),
        "SIGN": of.word_of(1 << of.bits - 1),
        "MAGNITUDE": of.word_of((1 << of.bits - 1) - 1),
        "FRACTION": of.word_of((1 << places) - 1),
        "NORMAL": of.word_of(1 << places),
        "PLACES": f"{places}u",
        "BIAS": str(of.bias),
    }
