"""Elementary functions of float32 and float64 as polynomials.

The polynomials of exp, log and tanh are those of S. Moshier's Cephes library, evaluated with fused multiplications.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken_llvm.dtypes import FLOAT, INT32, float_number

if TYPE_CHECKING:
    from tensorken_llvm.builder import Builder


def f32(value: float) -> Any:
    """A float32."""
    return float_number(value, FLOAT)


def i32(value: int) -> Any:
    """An int32."""
    return ir.Constant(INT32, value)


def polynomial(b: Builder, x: Any, *coefficients: float) -> Any:
    """A polynomial, by Horner's rule; the highest coefficient first."""
    total = float_number(coefficients[0], x.type)
    for c in coefficients[1:]:
        total = b.fma(total, x, float_number(c, x.type))
    return total


def _scaled(b: Builder, y: Any, exponent: Any) -> Any:
    """y * 2**exponent in two steps, so that subnormal results and overflow are right."""
    half = b.ashr(exponent, i32(1))
    for part in (half, b.sub(exponent, half)):
        y = b.fmul(y, b.bitcast(b.shl(b.add(part, i32(127)), i32(23)), FLOAT))
    return y


def exp(b: Builder, x: Any) -> Any:
    """exp(r) * 2**n with x = n * log(2) + r."""
    clipped = b.select(b.fcmp_ordered(">", x, f32(89.0)), f32(89.0), x)
    clipped = b.select(b.fcmp_ordered("<", clipped, f32(-104.5)), f32(-104.5), clipped)
    shifted = b.fma(clipped, f32(1.4426950408889634), f32(12582912.0))  # rounds to an integer, also NaN
    n = b.fsub(shifted, f32(12582912.0))
    exponent = b.sub(b.bitcast(shifted, INT32), i32(0x4B400000))
    r = b.fma(n, f32(-0.693359375), clipped)
    r = b.fma(n, f32(2.12194440e-4), r)
    p = polynomial(
        b,
        r,
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
    return _scaled(b, b.fadd(b.fma(b.fmul(r, r), p, r), f32(1.0)), exponent)


def log(b: Builder, x: Any) -> Any:
    """log(m) + e * log(2) with x = m * 2**e."""
    subnormal = b.fcmp_ordered("<", x, f32(1.17549435e-38))
    bits = b.bitcast(b.select(subnormal, b.fmul(x, f32(33554432.0)), x), INT32)
    exponent = b.sub(b.ashr(bits, i32(23)), b.select(subnormal, i32(126 + 25), i32(126)))
    m = b.bitcast(b.or_(b.and_(bits, i32(0x007FFFFF)), i32(0x3F000000)), FLOAT)
    low = b.fcmp_ordered("<", m, f32(0.70710678))
    exponent = b.sub(exponent, b.select(low, i32(1), i32(0)))
    f = b.fsub(b.fadd(m, b.select(low, m, f32(0.0))), f32(1.0))
    n, z = b.sitofp(exponent, FLOAT), b.fmul(f, f)
    p = polynomial(
        b,
        f,
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
    y = b.fma(n, f32(-2.12194440e-4), b.fmul(b.fmul(f, z), p))
    y = b.fma(z, f32(-0.5), y)
    y = b.fma(n, f32(0.693359375), b.fadd(f, y))
    y = b.select(b.fcmp_ordered("==", x, f32(math.inf)), x, y)
    y = b.select(b.fcmp_ordered("==", x, f32(0.0)), f32(-math.inf), y)
    return b.select(b.fcmp_unordered("<", x, f32(0.0)), f32(math.nan), y)


def _exp_of_minus_two(b: Builder, x: Any) -> tuple[Any, Any, Any]:
    """|x|, exp(-2 |x|), and 1 / (1 + exp(-2 |x|))."""
    size = b.intrinsic("fabs", x)
    z = exp(b, b.fmul(size, f32(-2.0)))
    return size, z, b.fdiv(f32(1.0), b.fadd(f32(1.0), z))


def tanh(b: Builder, x: Any) -> Any:
    """A polynomial near 0, else (1 - z) / (1 + z) with z = exp(-2 |x|)."""
    size, z, inverse = _exp_of_minus_two(b, x)
    large = b.intrinsic("copysign", b.fmul(b.fsub(f32(1.0), z), inverse), x)
    s = b.fmul(x, x)
    p = polynomial(
        b, s, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1
    )
    small = b.fma(b.fmul(p, s), x, x)
    return b.select(b.fcmp_ordered("<", size, f32(0.625)), small, large)


def sech_squared(b: Builder, x: Any) -> Any:
    """4 z / (1 + z)**2 with z = exp(-2 |x|)."""
    _, z, inverse = _exp_of_minus_two(b, x)
    return b.fmul(b.fmul(f32(4.0), z), b.fmul(inverse, inverse))


def sigmoid(b: Builder, x: Any) -> Any:
    """1 / (1 + exp(-x)), from exp(-|x|)."""
    z = exp(b, b.fneg(b.intrinsic("fabs", x)))
    numerator = b.select(b.fcmp_ordered("<", x, f32(0.0)), z, f32(1.0))
    return b.fdiv(numerator, b.fadd(f32(1.0), z))


FLOAT32: dict[str, Callable[..., Any]] = {
    "exp": exp,
    "log": log,
    "tanh": tanh,
    "sech_squared": sech_squared,
    "sigmoid": sigmoid,
}
FLOAT64: dict[str, Callable[..., Any]] = {}
