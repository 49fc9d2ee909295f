"""Rounding: from an exact or enclosed value to the nearest number of a floating-point dtype, ties to even.

A value is `n * 2**e` with integers `n` and `e`, or a Python float (a double) that is rounded again.  All rules are
those of IEEE 754 with its default rounding: gradual underflow, overflow to infinity, and an underflowing value
keeps its sign.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tensorken_core.language.dtypes import FLOATS, DType, bfloat16, float32, float64, round_float


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: the bits of the significand, with the hidden one, and two exponents."""

    precision: int
    least: int  # the smallest positive number is 2**least
    limit: int  # every finite number is below 2**limit


FORMATS = {dtype: Format(dtype.precision, dtype.least, dtype.limit) for dtype in FLOATS}

# An estimate in double, from the C library or from `math.fsum`, is trusted to 32 ulps.
_BELOW, _ABOVE = 1 - 2.0**-48, 1 + 2.0**-48
_HALF_PRECISION_OVERFLOW = 65520.0  # float16 rounds this and larger values to infinity


def decompose(x: float) -> tuple[int, int]:
    """A finite float as integers `(n, e)` with `x == n * 2**e` and `abs(n) < 2**53`.

    >>> decompose(-0.75)
    (-6755399441055744, -53)
    """
    fraction, exponent = math.frexp(x)
    return int(fraction * 9007199254740992.0), exponent - 53


def shift(n: int, k: int) -> int:
    """n * 2**k, rounded down."""
    return n << k if k >= 0 else n >> -k


def round_scaled(n: int, e: int, form: Format) -> float:
    """The number of the format nearest to `n * 2**e`.

    >>> round_scaled(2**24 + 1, 0, FORMATS[float32])
    16777216.0
    """
    if n < 0:
        return -round_scaled(-n, e, form)
    size = n.bit_length()
    dropped = max(size - form.precision, form.least - e)
    if dropped > size:  # less than half of the smallest positive number
        return 0.0
    if dropped > 0:
        half = 1 << (dropped - 1)
        remainder = n & (2 * half - 1)
        n >>= dropped
        e += dropped
        n += remainder > half or (remainder == half and n & 1)
    return math.ldexp(n, e) if n.bit_length() + e <= form.limit else math.inf


def round_enclosed(n: int, e: int, error: int, form: Format) -> float | None:
    """The rounding of every value within `error * 2**e` of `n * 2**e`, or None if they do not agree.

    >>> round_enclosed(2**80 + 1, -80, 16, FORMATS[float64])
    1.0
    >>> round_enclosed(2**80 + 2**27, -80, 16, FORMATS[float64]) is None
    True
    """
    magnitude = abs(n)
    size = magnitude.bit_length()
    dropped = max(size - form.precision, form.least - e)
    if (
        dropped < error.bit_length() + 3 or magnitude <= error
    ):  # the enclosure is too wide, or its sign unknown
        return None
    half = 1 << (dropped - 1)
    remainder = magnitude & (2 * half - 1)
    if abs(remainder - half) <= error:
        return None
    magnitude >>= dropped
    e += dropped
    magnitude += remainder > half
    result = math.ldexp(magnitude, e) if magnitude.bit_length() + e <= form.limit else math.inf
    return result if n > 0 else -result


def round_residual(estimate: float, residual: float, form: Format) -> float:
    """The rounding of `estimate + residual`, where `estimate` is the double nearest to that exact sum.

    Rounding the estimate alone would round twice. The first rounding loses only the side of a tie on which the value
    lies, which is the sign of the residual.
    """
    n, e = decompose(estimate)
    return round_scaled(4 * n + (residual > 0) - (residual < 0), e - 2, form)


def round_integer(value: int, dtype: DType) -> float:
    """The number of a floating-point dtype nearest to an integer of any size."""
    return round_scaled(value, 0, FORMATS[dtype])


def round_doubles(values: Iterable[float], dtype: DType) -> list[float]:
    """Each double rounded once to the dtype."""
    if dtype is float32:
        return array("f", values).tolist()
    if dtype is float64:
        return list(values)
    if dtype is bfloat16:
        return [round_float(v, dtype) for v in values]
    bound = _HALF_PRECISION_OVERFLOW
    clamped = [v if -bound < v < bound or v != v else math.copysign(math.inf, v) for v in values]
    code = f"{len(clamped)}e"
    return list(struct.unpack(code, struct.pack(code, *clamped)))


def round_estimates(estimates: Sequence[float], dtype: DType, exactly: Callable[[int], float]) -> list[float]:
    """Round each estimate to a dtype narrower than float64; `exactly(i)` computes it where the estimate is not enough.

    An estimate may be wrong in its last five bits. Where that could matter, next to a tie, and where the estimate
    is NaN, `exactly` is called.
    """
    low = round_doubles([y * _BELOW for y in estimates], dtype)
    high = round_doubles([y * _ABOVE for y in estimates], dtype)
    if low == high:
        return low
    return [a if a == b else exactly(i) for i, (a, b) in enumerate(zip(low, high, strict=True))]
