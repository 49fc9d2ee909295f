"""Evaluation of special functions: polynomials and series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken_core.language.dtypes import float32


def chebyshev(u: Any, coefficients: Sequence[float]) -> Any:
    """The Chebyshev series by Clenshaw's recurrence; float32 needs only the terms above its precision."""
    least = 2.0**-28 * max(map(abs, coefficients)) if u.dtype is float32 else 0.0
    terms = list(coefficients)
    while abs(terms[-1]) < least:
        terms.pop()
    first, second = u * 0.0 + terms[-1], u * 0.0
    for coefficient in reversed(terms[1:-1]):
        first, second = u * first * 2.0 - second + coefficient, first
    return u * first - second + terms[0]


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, that of the lowest power first."""
    y: Any = x * 0.0 + coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        y = y * x + coefficient
    return y


_ATANH = [1.0 / (2 * k + 3) for k in range(18)]
"""(atanh(r) - r) / r**3 in powers of r**2, for r up to 1/3 to the last digit of float64."""


def log1p_minus(x: Any, one_more: Any = 1.0) -> Any:
    """log1p(x) - x, without cancellation for abs(x) < 1/2: 2 (atanh(r) - r) - r x with r = x / (2 + x).

    The formula is that of A. R. DiDonato and A. H. Morris, "Algorithm 708", 1992.

    Args:
        one_more: 1 + x, which has more digits than x near -1; not used for abs(x) < 1/2.
    """
    near = x.abs() < 0.5
    inner = near.where(x, 0.0)
    r = inner / (inner + 2.0)
    square = r * r
    series = 2.0 * r * square * horner(square, _ATANH) - r * inner
    return near.where(series, near.where(1.0, one_more).log() - x)
