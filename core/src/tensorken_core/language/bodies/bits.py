"""Bodies of the ops on the bits of floats: exact for zeros, subnormal numbers and NaN, also on devices that flush them.

The bits of floats of one sign, as integers, have the order of the floats, so neighbours differ by one.
"""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies.arithmetic import either, in_float32, is_nan
from tensorken_core.language.dtypes import DType, bfloat16, float32
from tensorken_core.language.op import OPS

Tensor = Any


def _bits(x: Tensor) -> Tensor:
    return x.apply(OPS["to_bits"])


def _float(bits: Tensor) -> Tensor:
    return bits.apply(OPS["from_bits"])


def _lowest(x: Tensor) -> int:
    """The bits of -0.0 in the dtype of x: only the sign bit is set, and its copies in front."""
    return -1 << (8 * int(x.dtype.itemsize) - 1)


def signbit(x: Tensor) -> Tensor:
    return _bits(x) < 0


@in_float32
def copysign(a: Tensor, b: Tensor) -> Tensor:
    return _float((_bits(a) & ~_lowest(a)) | (_bits(b) & _lowest(b)))


def nextafter(a: Tensor, b: Tensor) -> Tensor:
    """One step in the order of the floats, in which both zeros have the ordinal 0."""
    bits = _bits(a)
    a_ordinal, b_ordinal = _ordinal(bits, _lowest(a)), _ordinal(_bits(b), _lowest(b))
    ordinal = a_ordinal + (a_ordinal < b_ordinal).where(bits.ones_like(), -1)
    negative = either(ordinal < 0, ordinal.eq(0).where(bits < 0, False))
    magnitude = (ordinal < 0).where(-ordinal, ordinal)
    value = _float(magnitude) if a.dtype.wide is a.dtype else _narrow(magnitude, a.dtype)
    y = negative.where(-value, value)
    return either(is_nan(a), is_nan(b)).where(a + b, a_ordinal.eq(b_ordinal).where(b, y))


def _ordinal(bits: Tensor, lowest: int) -> Tensor:
    """The signed position in the order of the floats; 0 for both zeros."""
    return (bits < 0).where(lowest - bits, bits)


def _narrow(magnitude: Tensor, dtype: DType) -> Tensor:
    """The float16, computed in float32, or bfloat16 with these bits; subnormal float16 are multiples of 2**-24."""
    if dtype is bfloat16:  # the upper half of a float32
        return _float(magnitude << 16).astype(dtype)
    exponent, fraction = magnitude >> 10, (magnitude & 1023).astype(float32)
    unit = _float((exponent + 102) << 23)
    return exponent.eq(0).where(fraction * 2.0**-24, (fraction + 1024.0) * unit).astype(dtype)
