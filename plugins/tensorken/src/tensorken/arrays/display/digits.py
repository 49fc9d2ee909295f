"""The decimal digits of binary floats: the fewest that identify a number in its format, or a given number of them.

The algorithm is that of Steele and White, "How to print floating-point numbers accurately" (1990), in exact integers:
digits are generated until the remainder is within half the gap to the adjacent float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorken_core.language.dtypes import COMPLEX, DTYPES, DType, float64, real_dtype


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format."""

    bits: int  # of the significand, with the leading 1
    least_exponent: int  # the smallest positive number is 2**least_exponent
    decimals: int  # every decimal number with so many digits survives the conversion to the format and back
    scalar_limit: float  # a single number is printed with an exponent from here on

    def parts(self, value: float) -> tuple[int, int]:
        """The integers m and e with value = m * 2**e, where 2**e is the gap to the next float of the format."""
        exponent = max(math.frexp(value)[1] - self.bits, self.least_exponent)
        return int(math.ldexp(value, -exponent)), exponent

    def rounded(self, value: float) -> float:
        """The number of the format nearest to a non-negative value, where exponents have no upper limit."""
        if not math.isfinite(value):
            return value
        exponent = max(math.frexp(value)[1] - self.bits, self.least_exponent)
        return math.ldexp(round(math.ldexp(value, -exponent)), exponent)


def _format(dtype: DType) -> FloatFormat:
    decimals = math.floor((dtype.precision - 1) * math.log10(2.0))
    return FloatFormat(dtype.precision, dtype.least, decimals, 1e16 if dtype is float64 else 10.0**decimals)


FLOAT_FORMATS = {
    name: _format(real_dtype(dtype)) for name, dtype in (DTYPES | COMPLEX).items() if dtype.inexact
}
"""The format of the numbers of each dtype; of a complex one, of the real and the imaginary part."""


def shortest_digits(
    value: float,
    form: FloatFormat,
    *,
    most: int | None = None,
    least: int | None = None,
    scientific: bool = False,
) -> tuple[str, int]:
    """The fewest digits that identify a positive number in the format, and the power of ten of the first digit.

    Args:
        value: a finite number greater than 0.
        form: the format that has the number.
        most: the largest number of digits after the point; the number is then rounded, a tie to an even digit.
        least: the smallest number of digits after the point; more digits than needed are those of the exact value.
        scientific: whether the point stands behind the first digit, rather than where the number has it.

    >>> shortest_digits(0.1, FLOAT_FORMATS["float64"]), shortest_digits(1500.0, FLOAT_FORMATS["float64"])
    (('1', -1), ('15', 3))
    >>> (
    ...     shortest_digits(2 / 3, FLOAT_FORMATS["float64"], most=4),
    ...     shortest_digits(4e-6, FLOAT_FORMATS["float64"], most=4),
    ... )
    (('6667', -1), ('0', -4))
    """
    # The number is numerator / denominator; adjacent floats are at twice the distances below / denominator and
    # above / denominator. The gap below a power of two is half as large as the gap above.
    mantissa, exponent = form.parts(value)
    is_power = mantissa == 1 << (form.bits - 1) and exponent > form.least_exponent
    below, above = 1, 1 + is_power
    numerator, denominator = mantissa << (1 + is_power), 2 << is_power
    if exponent > 0:
        numerator, below, above = numerator << exponent, below << exponent, above << exponent
    else:
        denominator <<= -exponent
    first = math.floor(math.log10(value))
    if first > 0:
        denominator *= 10**first
    else:
        scale = 10**-first
        numerator, below, above = numerator * scale, below * scale, above * scale
    if numerator >= 10 * denominator:  # the logarithm is rounded
        first, denominator = first + 1, 10 * denominator
    elif numerator < denominator:
        first, numerator, below, above = first - 1, 10 * numerator, 10 * below, 10 * above

    point = first if scientific else 0
    last = None if most is None else point - most
    needed = first if least is None else point - least
    if last is not None and first < last:  # smaller than the last place
        return ("1" if first == last - 1 and numerator > 5 * denominator else "0"), last
    includes_ends = mantissa % 2 == 0  # a number halfway to an adjacent float is rounded to the even one
    place, digits = first, []
    while True:
        digit, numerator = divmod(numerator, denominator)
        down = numerator < below or (includes_ends and numerator == below)
        up = numerator + above > denominator or (includes_ends and numerator + above == denominator)
        if place == last or ((down or up) and place <= needed):
            break
        digits.append(digit)
        place, numerator, below, above = place - 1, 10 * numerator, 10 * below, 10 * above
    if down == up:
        twice = 2 * numerator
        up = twice > denominator or (twice == denominator and digit % 2 == 1)
    text = "".join(map(str, digits)) + str(digit)
    if up:
        rounded = str(int(text) + 1)
        return rounded.rstrip("0"), first + len(rounded) - len(text)
    return text, first
