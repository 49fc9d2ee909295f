"""Function: a real function, correctly rounded by Ziv's strategy.

A function consists of its double from the C library; its special cases (special values, exact and saturated
results); and an enclosure, `enclose(*operands, bits)`, which returns `(n, e, error)` such that the true value is
within `error * 2**e` of `n * 2**e`, with about `bits` significant bits.

Results narrower than float64 are the rounded double, unless the double is close to a tie. Then, and always for
float64, Ziv's strategy decides: enclose with growing precision until the whole enclosure rounds to one number (A.
Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991). It terminates
unless the value is a tie. By the theorems of Lindemann and Weierstrass, of Gelfond and Schneider for logarithms to
a base, and of Siegel and Shidlovskii for erf, only powers can be ties, and those are special cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorken_core.language.dtypes import DType, float64
from tensorken_reference.rounding import FORMATS, Format, decompose, round_enclosed, round_estimates, shift

Enclosure = tuple[int, int, int]

_FIRST_BITS = 73  # 20 more than double: one value in ten thousand needs a second enclosure


@dataclass(frozen=True, slots=True)
class Function:
    """One function of real numbers."""

    double: Callable[..., float]  # near the true value; may raise for special cases
    case: Callable[..., float | None]  # (*operands, format) -> the result of a special case, else None
    enclose: Callable[..., Enclosure]  # (*operands, bits)

    def exactly(self, *operands: float, form: Format) -> float:
        """The true value rounded once."""
        result = self.case(*operands, form)
        bits = _FIRST_BITS
        while result is None:
            result = round_enclosed(*self.enclose(*operands, bits), form)
            bits *= 2
        return result

    def __call__(self, dtype: DType, *operands: Sequence[float]) -> list[float]:
        """Apply the function to every element of sequences of equal length."""
        form = FORMATS[dtype]
        if dtype is float64:
            return [self.exactly(*xs, form=form) for xs in zip(*operands, strict=True)]
        try:
            estimates = list(map(self.double, *operands))
        except (ValueError, OverflowError):
            estimates = list(map(self._attempt, *operands))
        return round_estimates(
            estimates, dtype, lambda i: self.exactly(*[xs[i] for xs in operands], form=form)
        )

    def _attempt(self, *operands: float) -> float:
        try:
            return self.double(*operands)
        except (ValueError, OverflowError):
            return math.nan


def exponent(x: float) -> int:
    """The e with 2**(e-1) <= abs(x) < 2**e; 0 for x = 0."""
    return math.frexp(x)[1]


def leading_zeros(x: float) -> int:
    """The number of zero bits between the binary point and the first digit of x; 0 if abs(x) >= 1/2."""
    return max(0, -exponent(x))


def to_fixed(x: float, w: int) -> int:
    """x at `w` bits, rounded down."""
    n, e = decompose(x)
    return shift(n, e + w)


def odd_case(x: float, form: Format) -> float | None:
    """x itself where a function x * (1 + c * x**2 + ...) with abs(c) <= 1/2 rounds to it, or x is NaN."""
    return x if x != x or abs(x) < 2.0 ** -(form.precision // 2 + 1) else None
