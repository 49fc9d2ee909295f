"""Rounding: from an exact value, or one with a known error, to the nearest number of a format, ties to even.

The rules are those of IEEE 754 in its default rounding: gradual underflow, infinity beyond the largest number, and a
zero keeps the sign of what underflowed.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction


@functools.cache
def power_of_two(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(2) ** exponent


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format.

    Attributes:
        precision: the bits of a significand, the hidden one counted.
        least: the exponent of the smallest positive number, which is subnormal.
        top: the exponent of the power of two above the largest number.

    >>> FORMATS["float32"].unit == Fraction(1, 2**24), FORMATS["float16"].max
    (True, 65504.0)
    """

    precision: int
    least: int
    top: int

    @property
    def unit(self) -> Fraction:
        """The unit roundoff: half the distance from 1 to the next larger number."""
        return Fraction(1, 2**self.precision)

    @property
    def subnormal(self) -> Fraction:
        """The smallest positive number."""
        return power_of_two(self.least)

    @property
    def normal(self) -> Fraction:
        """The smallest positive number that is not subnormal."""
        return power_of_two(self.least + self.precision - 1)

    @property
    def largest(self) -> Fraction:
        """The largest finite number."""
        return power_of_two(self.top) * (1 - self.unit)

    @property
    def overflow(self) -> Fraction:
        """The smallest number that rounds to infinity: half a unit above the largest."""
        return power_of_two(self.top) * (1 - self.unit / 2)

    @property
    def terms(self) -> int:
        """The most terms of a sum or a product for which the bound of its error is small."""
        return (1 << (self.precision - 3)) + 1

    @property
    def max(self) -> float:
        """The largest number, as a float."""
        return float(self.largest)

    @property
    def tiny(self) -> float:
        """The smallest normal number, as a float."""
        return float(self.normal)

    @property
    def smallest(self) -> float:
        """The smallest number, as a float."""
        return float(self.subnormal)


FORMATS = {
    "float16": Format(11, -24, 16),
    "bfloat16": Format(8, -133, 128),
    "float32": Format(24, -149, 128),
    "float64": Format(53, -1074, 1024),
}
"""IEEE 754's binary16, binary32 and binary64, and bfloat16, which has the exponents of binary32."""


def nearest(n: int, e: int, form: Format, error: int | None = None) -> float | None:
    """The number of a format nearest to n * 2**e.

    Args:
        n: the significand; a result that underflows keeps its sign.
        e: the exponent.
        form: the format.
        error: the largest error of the value, times 2**e; None: the value is exact.

    Returns:
        The number; None if several numbers may be the nearest.

    >>> nearest(2**24 + 1, 0, FORMATS["float32"]), nearest(2**24 + 1, 0, FORMATS["float32"], 1)
    (16777216.0, None)
    """
    size = abs(n)
    if not size:
        return 0.0
    dropped = max(size.bit_length() - form.precision, form.least - e)
    if dropped > size.bit_length() + 1:  # far below half of the smallest positive number
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
    result = math.ldexp(kept, e) if kept.bit_length() + e <= form.top else math.inf
    return -result if n < 0 else result
