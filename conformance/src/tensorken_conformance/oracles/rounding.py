"""Rounding: from an exact value, or one known to so many bits, to the nearest number of a format, ties to even.

The rules are those of IEEE 754 in its default rounding: gradual underflow, infinity beyond the largest number, and a
zero keeps the sign of what underflowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorken_core.language.dtypes import DType, float16, float32, float64


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format.

    Attributes:
        precision: the bits of a significand, the hidden one counted.
        least: the smallest positive number is 2**least.
        limit: every finite number is below 2**limit.
    """

    precision: int
    least: int
    limit: int

    @property
    def max(self) -> float:
        """The largest number.

        >>> FORMATS[float16].max
        65504.0
        """
        return math.ldexp(2.0 - 2.0 ** (1 - self.precision), self.limit - 1)

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return math.ldexp(1.0, self.least + self.precision - 1)

    @property
    def smallest(self) -> float:
        """The smallest number, a subnormal one."""
        return math.ldexp(1.0, self.least)


FORMATS: dict[DType, Format] = {
    float16: Format(11, -24, 16),
    float32: Format(24, -149, 128),
    float64: Format(53, -1074, 1024),
}


def nearest(n: int, e: int, form: Format, error: int | None = None) -> float | None:
    """The number of a format nearest to n * 2**e.

    Args:
        n: the significand; its sign is that of a result that underflows.
        e: the exponent.
        form: the format.
        error: the true value is within error * 2**e; None: the value is exact.

    Returns:
        None if the error leaves open which number is the nearest.

    >>> nearest(2**24 + 1, 0, FORMATS[float32]), nearest(2**24 + 1, 0, FORMATS[float32], 1)
    (16777216.0, None)
    """
    size = abs(n)
    if not size:
        return 0.0
    dropped = max(size.bit_length() - form.precision, form.least - e)
    if dropped > size.bit_length() + 1:  # far below half of the smallest number
        return -0.0 if n < 0 else 0.0
    kept = size
    if dropped > 0:
        half = 1 << (dropped - 1)
        rest = size & (2 * half - 1)
        if error is not None and abs(rest - half) <= error:
            return None
        kept = size >> dropped
        kept += rest > half or (rest == half and kept & 1)
        e += dropped
    elif error:
        return None
    result = math.ldexp(kept, e) if kept.bit_length() + e <= form.limit else math.inf
    return -result if n < 0 else result
