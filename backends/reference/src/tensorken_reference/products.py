"""Exact products of rows of numbers, rounded once to their dtype; integers wrap.

The product of no values is 1. Signs of zeros, infinities and NaN are those of any order of multiplication.
Intermediate overflow and underflow do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_reference.conversion import wrap
from tensorken_reference.rounding import FORMATS, Format, decompose, round_scaled


def row_products(rows: Sequence[Sequence[Any]], dtype: DType) -> list[Any]:
    """The product of each row.

    >>> from tensorken_core.language.dtypes import float64
    >>> row_products([[2.0**999, 2.0**999, 2.0**-999, 2.0**-998], []], float64)
    [2.0, 1.0]
    """
    one = 1 if dtype.kind == "int" else 1.0
    return [running_products([one, *row], dtype)[-1] for row in rows]


def running_products(row: Sequence[Any], dtype: DType) -> list[Any]:
    """The first value, the product of the first two, and so on.

    >>> from tensorken_core.language.dtypes import int32
    >>> running_products([3, -5, 2**30], int32)
    [3, -15, 1073741824]
    """
    return _of_floats(row, FORMATS[dtype]) if dtype.kind == "float" else wrap(accumulate(row, mul), dtype)


def _of_floats(row: Sequence[float], form: Format) -> list[float]:
    """Finite nonzero factors are collected as an integer times a power of 2.

    A separate float collects signs, zeros, infinities and NaN.
    """
    significand, exponent, special = 1, 0, 1.0
    results = []
    for value in row:
        if value and math.isfinite(value):
            n, e = decompose(value)
            twos = (n & -n).bit_length() - 1
            significand, exponent = significand * (n >> twos), exponent + e + twos
            special *= math.copysign(1.0, value)
        else:
            special *= value
        results.append(round_scaled(significand, exponent, form) if abs(special) == 1.0 else special)
    return results
