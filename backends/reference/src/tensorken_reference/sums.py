"""Exact sums, and exact sums of products, of floats: rounded once to their dtype.

The sum of no values is 0. A sum that is exactly zero is -0.0 if every value is, else 0.0. Infinities of both signs,
or a NaN, make it NaN. Intermediate overflow does not matter.

`math.fsum` returns the double nearest to the exact sum, and raises on intermediate overflow or infinities of both
signs. The functions here add the second rounding, to a narrower dtype, and exact integers where fsum raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import mul

from tensorken_core.language.dtypes import DType, float64
from tensorken_reference.conversion import wrap
from tensorken_reference.rounding import (
    FORMATS,
    Format,
    decompose,
    round_estimates,
    round_residual,
    round_scaled,
    shift,
)

_DOUBLE = FORMATS[float64]
_SPLITTER = 134217729.0  # 2**27 + 1

Row = Sequence[float]


def sums(rows: Sequence[Row], dtype: DType) -> list[float]:
    """The sum of each row.

    >>> sums([[1e308, 1e308, -1e308], [1e16, 1.0, -1e16]], float64)
    [1e+308, 1.0]
    """
    return _rounded_sums(rows.__getitem__, len(rows), dtype)


def products(
    left: Sequence[Row], right: Sequence[Row], i: Sequence[int], j: Sequence[int], dtype: DType
) -> list[float]:
    """For each pair of indices in `i` and `j`, the sum of products of row `i` of left and row `j` of right.

    >>> products([[1e16, 1.0, -1e16]], [[1.0, 1.0, 1.0], [1.0, 0.1, 1.0]], (0, 0), (0, 1), float64)
    [1.0, 0.1]
    """

    def row(t: int) -> Iterable[float]:
        return map(mul, left[i[t]], right[j[t]])

    if dtype is not float64:  # a product of two floats of 24 bits is exact in double
        return _rounded_sums(row, len(i), dtype)
    if not all(_is_moderate(row) for rows in (left, right) for row in rows):
        return [_sum_of_products(left[p], right[q]) for p, q in zip(i, j, strict=True)]
    # Split each factor in two halves of 26 bits, a = a1 + a2: the four products of halves are exact.
    lefts = [a1 + a1 + a2 + a2 for a1, a2 in map(_split, left)]
    rights = [b1 + b2 + b1 + b2 for b1, b2 in map(_split, right)]
    return _rounded_sums(lambda t: map(mul, lefts[i[t]], rights[j[t]]), len(i), dtype, plain=row)


def wrapped_products(
    left: Sequence[Sequence[int]],
    right: Sequence[Sequence[int]],
    i: Sequence[int],
    j: Sequence[int],
    dtype: DType,
) -> list[int]:
    """`products` of integers, which wrap."""
    return wrap([sum(map(mul, left[p], right[q])) for p, q in zip(i, j, strict=True)], dtype)


def running_sums(row: Row, dtype: DType) -> list[float]:
    """The sums of the first value, of the first two, and so on, each rounded once.

    >>> running_sums([1e16, 1.0, -1e16], float64)
    [1e+16, 1e+16, 1.0]
    """
    form = FORMATS[dtype]
    total, specials, zero = 0, 0.0, -0.0
    results = []
    for value in row:
        if math.isfinite(value):
            total += _units(value, form)
            if value or math.copysign(1.0, value) > 0.0:
                zero = 0.0
        else:
            specials += value
        results.append(specials or round_scaled(total, form.least, form) or zero)
    return results


def _rounded_sums(
    row: Callable[[int], Iterable[float]],
    count: int,
    dtype: DType,
    plain: Callable[[int], Iterable[float]] | None = None,
) -> list[float]:
    """The sum of `row(t)` for each t below `count`; the sign of a zero sum follows from the terms `plain(t)` if
    given.
    """
    form = FORMATS[dtype]
    try:
        totals = [math.fsum(row(t)) for t in range(count)]
    except (OverflowError, ValueError):
        totals = [_attempt(row(t)) for t in range(count)]
    if 0.0 in totals:
        terms = plain or row
        totals = [_sign_of_zero(terms(t)) if total == 0.0 else total for t, total in enumerate(totals)]
    if dtype is float64:
        return [_wide_sum(row(t), form) if total != total else total for t, total in enumerate(totals)]

    def exactly(t: int) -> float:
        total = totals[t]
        if not math.isfinite(total):
            return _wide_sum(row(t), form)
        return round_residual(total, math.fsum([*row(t), -total]), form)

    return round_estimates(totals, dtype, exactly)


def _attempt(row: Iterable[float]) -> float:
    try:
        return math.fsum(row)
    except (OverflowError, ValueError):
        return math.nan


def _sign_of_zero(row: Iterable[float]) -> float:
    """-0.0 if there are values and each is -0.0, else 0.0."""
    values = list(row)
    return -0.0 if values and all(v == 0.0 and math.copysign(1.0, v) < 0.0 for v in values) else 0.0


def _wide_sum(row: Iterable[float], form: Format) -> float:
    """The sum of values of any size, infinities and NaN among them."""
    values = list(row)
    specials = [v for v in values if not math.isfinite(v)]
    if specials:
        return sum(specials)
    return round_scaled(sum([_units(v, _DOUBLE) for v in values]), _DOUBLE.least, form)


def _sum_of_products(left: Row, right: Row) -> float:
    """The sum of products of doubles of any size."""
    values = [a * b for a, b in zip(left, right, strict=True)]
    specials = [
        v for v, a, b in zip(values, left, right, strict=True) if not (math.isfinite(a) and math.isfinite(b))
    ]
    if specials:
        return sum(specials)
    total = sum([_units(a, _DOUBLE) * _units(b, _DOUBLE) for a, b in zip(left, right, strict=True)])
    return round_scaled(total, 2 * _DOUBLE.least, _DOUBLE) if total else _sign_of_zero(values)


def _units(value: float, form: Format) -> int:
    """A finite float as a multiple of the smallest positive number of the format."""
    n, e = decompose(value)
    return shift(n, e - form.least)


def _is_moderate(row: Row) -> bool:
    """Whether products of halves of these floats neither overflow nor underflow."""
    return all(2.0**-450 < v < 2.0**450 or -(2.0**-450) > v > -(2.0**450) or v == 0.0 for v in row)


def _split(row: Row) -> tuple[list[float], list[float]]:
    """Each float as the sum of two of at most 26 bits (T. J. Dekker, Numerische Mathematik 18, 1971)."""
    high = [_SPLITTER * v - (_SPLITTER * v - v) for v in row]
    return high, [v - h for v, h in zip(row, high, strict=True)]
