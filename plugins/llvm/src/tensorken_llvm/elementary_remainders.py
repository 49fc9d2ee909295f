"""Remainders by pi / 2, for the circular functions.

Up to a bound, a multiple of pi / 2 in three parts is subtracted (W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions", 1980).  Beyond it, the remainder is that of the significand times those bits of 2 / pi that
neither only add multiples of four nor are too small to matter (M. H. Payne and R. N. Hanek, "Radian reduction for
trigonometric functions", 1983): a table has them for each exponent.
"""

from __future__ import annotations

import functools
import math
import struct

from tensorken_core.language.dtypes import float32, float64
from tensorken_llvm.dtypes import INT64
from tensorken_llvm.elementary_coefficients import HALF_PI, TWO_OVER_PI, TWO_OVER_PI_BITS
from tensorken_llvm.elementary_numbers import Number

Remainder = tuple[Number, Number, Number]
"""An integer with the lowest two bits of the quotient, and the remainder as two numbers, high and low."""

LARGE = {float32: 2.0**16, float64: 2.0**40}
"""From here on the table is used."""


def remainder_of_half_pi(a: Number) -> Remainder:
    """The remainder of a number in [0, LARGE) by pi / 2; NaN for infinity."""
    first, second, third = HALF_PI[a.dtype]
    shifter = 1.5 * 2.0 ** (23 if a.dtype is float32 else 52)
    shifted = a.fma(1.0 / first, shifter)
    n = shifted - shifter
    rest = n.fma(-first, a)  # exact
    product = n * second
    product_low = n.fma(second, -product)
    high, low = exact_sum(rest, -product)
    return shifted.bits(), high, n.fma(-third, low - product_low)


def remainder_of_large(a: Number) -> Remainder:
    """The remainder of a finite number from LARGE on by pi / 2; anything for others."""
    large = LARGE[a.dtype]
    a = ((a >= large) & (a < math.inf)).where(a, large)
    return _of_large_float32(a) if a.dtype is float32 else _of_large_float64(a)


def _of_large_float32(a: Number) -> Remainder:
    """In float64, in which the significand times the first column of the table is exact."""
    bound = int(math.log2(LARGE[a.dtype]))
    table, name = _table_of_float32(bound), "two over pi for float32"
    bits = a.bits()
    row = a.like(a.builder.zext(((bits >> 23) - (127 + bound)).value, INT64))
    m = ((bits & (2**23 - 1)) | ((127 + 23) << 23)).from_bits().widened()
    p, q = m * (row + row).lookup(name, table, 0), m * (row + row).lookup(name, table, 1)
    shifter = 1.5 * 2.0**52
    shifted = (p + q) + shifter
    r = ((p - (shifted - shifter)) + q) * HALF_PI[float64][0]
    high = r.narrowed()
    return shifted.bits().truncated(), high, (r - high.widened()).narrowed()


def _of_large_float64(a: Number) -> Remainder:
    bound = int(math.log2(LARGE[a.dtype]))
    table, name = _table_of_float64(bound), "two over pi for float64"
    bits = a.bits()
    row = ((bits >> 52) - (1023 + bound)) << 2
    m = ((bits & (2**52 - 1)) | ((1023 + 52) << 52)).from_bits()
    parts = [m * row.lookup(name, table, i) for i in range(4)]
    low = [m.fma(row.lookup(name, table, i), -parts[i]) for i in range(3)]
    shifter = 1.5 * 2.0**52
    first = parts[0] - (parts[0] * 0.25).round() * 4.0  # all that matters of a whole number
    whole = first + low[0]  # exact
    total, error = exact_sum(whole, parts[1])
    shifted = total + shifter
    total = total - (shifted - shifter)
    second, second_error = exact_sum(error, low[1])
    third, third_error = exact_sum(second, parts[2])
    high, rest = exact_sum(total, third)
    rest = rest + (second_error + (third_error + (low[2] + parts[3])))
    high, rest = exact_sum(high, rest)
    factor, factor_low, _ = HALF_PI[float64]
    r = high * factor
    return shifted.bits(), r, high.fma(factor, -r) + high.fma(factor_low, rest * factor)


def exact_sum(a: Number, b: Number) -> tuple[Number, Number]:
    """a + b as high and low; D. E. Knuth, "The Art of Computer Programming", volume 2, section 4.2.2."""
    high = a + b
    part = high - a
    return high, (a - (high - part)) + (b - part)


# ---- tables ------------------------------------------------------------------------------------------------


@functools.cache
def _table_of_float32(bound: int) -> bytes:
    """2**(e - 23) * 2 / pi modulo 4 for each exponent e from the bound on: 29 bits, and the rest."""
    numbers: list[float] = []
    for e in range(bound, 128):
        rest = _two_over_pi_modulo_4(e - 23)
        first = rest >> (TWO_OVER_PI_BITS - 27)
        numbers += [first / 2**27, (rest - (first << (TWO_OVER_PI_BITS - 27))) / 2**TWO_OVER_PI_BITS]
    return struct.pack(f"<{len(numbers)}d", *numbers)


@functools.cache
def _table_of_float64(bound: int) -> bytes:
    """2**(e - 52) * 2 / pi modulo 4 for each exponent e from the bound on, as a sum of four numbers."""
    numbers: list[float] = []
    for e in range(bound, 1024):
        rest = _two_over_pi_modulo_4(e - 52)
        for place in (51, 51 + 53, 51 + 2 * 53, 51 + 3 * 53):
            part = rest >> (TWO_OVER_PI_BITS - place)
            numbers.append(part / 2**place)
            rest -= part << (TWO_OVER_PI_BITS - place)
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _two_over_pi_modulo_4(exponent: int) -> int:
    """2**exponent * 2 / pi modulo 4, times 2**TWO_OVER_PI_BITS."""
    shifted = TWO_OVER_PI << exponent if exponent >= 0 else TWO_OVER_PI >> -exponent
    return shifted % (4 << TWO_OVER_PI_BITS)
