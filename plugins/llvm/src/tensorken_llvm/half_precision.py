"""Half precision: float16 in memory, float32 in registers.

A CPU without an instruction for a conversion would call a function of the C compiler's library, which few processes
have: the conversion is then written with integers.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir

from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import DOUBLE, FLOAT, HALF, INT32
from tensorken_llvm.machine import target_features, triple

_SHORT = ir.IntType(16)

_INFINITY = 0x7F800000
"""The bits of an infinite float32."""

_TOO_LARGE = (127 + 16) << 23
"""The bits of 2**16: float16 has no number from there on."""

_LEAST_NORMAL = (127 - 14) << 23
"""The bits of 2**-14: smaller numbers are subnormal in float16."""

_HALF_UNIT = (127 - 1) << 23
"""The bits of 0.5: in a sum with it, the last bit of a float32 is that of a subnormal float16."""


@functools.cache
def _converts_floats() -> bool:
    """Whether the CPU converts between float16 and float32."""
    return _is_arm() or bool(target_features().get("f16c"))


@functools.cache
def _converts_doubles() -> bool:
    """Whether the CPU rounds float64 to float16."""
    return _is_arm() or bool(target_features().get("avx512fp16"))


def _is_arm() -> bool:
    return triple().startswith(("aarch64", "arm64"))


def from_half(b: Builder, x: Any) -> Any:
    """A float16 as a float32."""
    if _converts_floats():
        return b.fpext(x, FLOAT)
    bits = b.zext(b.bitcast(x, _SHORT), INT32)
    sign = b.shl(b.and_(bits, _bits(0x8000)), _bits(16))
    shifted = b.shl(b.and_(bits, _bits(0x7FFF)), _bits(13))
    scaled = b.fmul(b.bitcast(shifted, FLOAT), ir.Constant(FLOAT, 2.0**112))  # the exponents differ by 112
    is_finite = b.icmp_unsigned("<", shifted, _bits(0x1F << 23))
    found = b.select(is_finite, b.bitcast(scaled, INT32), b.or_(shifted, _bits(_INFINITY)))
    return b.bitcast(b.or_(found, sign), FLOAT)


def to_half(b: Builder, x: Any) -> Any:
    """A float32 or float64 rounded to float16, to the nearest, or the even one of two."""
    if x.type is DOUBLE:
        if _converts_doubles():
            return b.fptrunc(x, HALF)
        x = _rounded_to_odd(b, x)
    if _converts_floats():
        return b.fptrunc(x, HALF)
    bits = b.bitcast(x, INT32)
    size = b.and_(bits, _bits(0x7FFFFFFF))
    is_odd = b.and_(b.lshr(size, _bits(13)), _bits(1))
    rounded = b.add(b.sub(size, _bits((112 << 23) - 0xFFF)), is_odd)
    normal = b.lshr(rounded, _bits(13))
    sum_ = b.fadd(b.bitcast(size, FLOAT), b.bitcast(_bits(_HALF_UNIT), FLOAT))
    subnormal = b.sub(b.bitcast(sum_, INT32), _bits(_HALF_UNIT))
    found = b.select(b.icmp_unsigned("<", size, _bits(_LEAST_NORMAL)), subnormal, normal)
    payload = b.or_(b.and_(b.lshr(size, _bits(13)), _bits(0x3FF)), _bits(0x7E00))
    special = b.select(b.icmp_unsigned(">", size, _bits(_INFINITY)), payload, _bits(0x7C00))
    found = b.select(b.icmp_unsigned("<", size, _bits(_TOO_LARGE)), found, special)
    sign = b.and_(b.lshr(bits, _bits(16)), _bits(0x8000))
    return b.bitcast(b.trunc(b.or_(found, sign), _SHORT), HALF)


def _rounded_to_odd(b: Builder, x: Any) -> Any:
    """A float64 as one of the two float32 numbers next to it: itself, or the one with an odd last bit.

    It has enough digits that rounding it again gives the float16 nearest to x (S. Boldo, G. Melquiond, "Emulation of
    FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    nearest = b.fptrunc(x, FLOAT)
    again = b.fpext(nearest, DOUBLE)
    is_larger = b.fcmp_ordered(">", b.intrinsic("fabs", again), b.intrinsic("fabs", x))
    bits = b.sub(b.bitcast(nearest, INT32), b.zext(is_larger, INT32))  # rounded to 0
    is_inexact = b.fcmp_ordered("!=", again, x)
    return b.bitcast(b.or_(bits, b.zext(is_inexact, INT32)), FLOAT)


def _bits(number: int) -> ir.Constant:
    return ir.Constant(INT32, number)
