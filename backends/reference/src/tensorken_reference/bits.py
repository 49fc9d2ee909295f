"""The bits of floats, and neighbouring floats."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from tensorken_core.language.dtypes import DType, bfloat16, float16, float32, float64

_INTEGER = {float16: "h", bfloat16: "i", float32: "i", float64: "q"}


def to_bits(values: Sequence[float], dtype: DType) -> tuple[int, ...]:
    """The bits of each float of the dtype, as a signed integer.

    >>> to_bits([0.0, -0.0], float32)
    (0, -2147483648)
    """
    count = len(values)
    bits = struct.unpack(f"={count}{_INTEGER[dtype]}", struct.pack(f"={count}{dtype.format}", *values))
    return tuple([n >> 16 for n in bits]) if dtype is bfloat16 else bits  # the upper half of a float32


def from_bits(values: Sequence[int], dtype: DType) -> tuple[float, ...]:
    """The floats of the dtype with these bits."""
    count = len(values)
    if dtype is bfloat16:
        values = [n << 16 for n in values]
    return struct.unpack(f"={count}{dtype.format}", struct.pack(f"={count}{_INTEGER[dtype]}", *values))


def nextafter(dtype: DType, starts: Sequence[float], ends: Sequence[float]) -> list[float]:
    """The next float of the dtype after each start towards its end."""
    if dtype is float64:
        return list(map(math.nextafter, starts, ends))
    return [_next(a, b, dtype) for a, b in zip(starts, ends, strict=True)]


def _next(a: float, b: float, dtype: DType) -> float:
    """The next float after a towards b: the bits of floats of one sign grow with the magnitude."""
    if a == b or a != a or b != b:
        return a + b if a != b else b
    if a == 0.0:
        return math.copysign(from_bits([1], dtype)[0], b)
    (start,) = to_bits([a], dtype)
    return from_bits([start + (1 if (a < b) == (a > 0.0) else -1)], dtype)[0]
