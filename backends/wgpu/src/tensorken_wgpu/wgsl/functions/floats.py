"""The float types for which functions are written, and the replacement of type-dependent words in their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

LOG_2 = Fraction(Decimal("0.69314718055994530941723212145817656807550013436025525412068"))
HALF_PI = Fraction(Decimal("1.57079632679489661923132169163975144209858469968755291048747"))


@dataclass(frozen=True, slots=True)
class Float:
    """A float type.

    Attributes:
        type: its name in WGSL.
        word: the name of the unsigned integer of its size.
        suffix: of the names of its functions.
        literal_suffix: of its literals.
        word_suffix: of literals of its unsigned integer.
        format: of the struct module.
        bits: of a number.
        digits: of its significand, in bits, with the leading one.
    """

    type: str
    word: str
    suffix: str
    literal_suffix: str
    word_suffix: str
    format: str
    bits: int
    digits: int

    @property
    def bias(self) -> int:
        """The exponent bias."""
        return (1 << (self.bits - self.digits - 1)) - 1

    def nearest(self, value: Fraction | float) -> Fraction:
        """The number of this type nearest to a value in its normal range."""
        size = abs(Fraction(value))
        if not size:
            return Fraction(0)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        unit = Fraction(2) ** (exponent - self.digits)
        while size / unit >= 1 << self.digits:
            unit *= 2
        return round(Fraction(value) / unit) * unit

    def literal(self, value: Fraction | float) -> str:
        """The literal of the number of this type nearest to a value in its normal range."""
        near = float(self.nearest(value))
        text = f"{near!r}{self.literal_suffix}"
        return text if near >= 0 else f"({text})"

    def word_of(self, value: int) -> str:
        """A literal of the unsigned integer."""
        return f"{value:#x}{self.word_suffix}"

    def split(self, value: Fraction, *digits: int) -> list[str]:
        """Literals whose sum is a positive value: one of at most `count` bits for each count, and one for the rest."""
        parts = []
        for count in digits:
            exponent = value.numerator.bit_length() - value.denominator.bit_length() + 1
            unit = Fraction(2) ** (exponent - count)
            part = value // unit * unit
            parts.append(self.literal(part))
            value -= part
        return [*parts, self.literal(value)]

    def series(self, x: str, coefficients: Iterable[Fraction]) -> str:
        """A polynomial, the constant first, by Horner's rule."""
        *others, last = coefficients
        text = self.literal(last)
        for c in reversed(others):
            text = f"fma({text}, {x}, {self.literal(c)})"
        return text


def economised(coefficients: Sequence[Fraction], low: Fraction, high: Fraction, count: int) -> list[Fraction]:
    """A polynomial with fewer coefficients that approximates a polynomial on an interval.

    The highest power is removed by subtracting a multiple of the Chebyshev polynomial of its degree, which has the
    smallest maximum on the interval; this is repeated.  C. Lanczos, "Applied Analysis", 1956.

    Args:
        coefficients: of the polynomial, the constant first.
        low: start of the interval.
        high: end of the interval.
        count: the number of coefficients to keep.

    >>> [str(c) for c in economised([Fraction(0), Fraction(0), Fraction(1)], Fraction(-1), Fraction(1), 2)]
    ['1/2', '0']
    """
    kept = [*coefficients]
    while len(kept) > count:
        chebyshev = _chebyshev(len(kept) - 1, low, high)
        factor = kept.pop() / chebyshev.pop()
        kept = [c - factor * t for c, t in zip(kept, chebyshev, strict=True)]
    return kept


def _chebyshev(degree: int, low: Fraction, high: Fraction) -> list[Fraction]:
    """The coefficients of a Chebyshev polynomial of degree 1 or more, transformed from [-1, 1] to [low, high]."""
    slope = 2 / (high - low)
    constant = 1 - slope * high
    previous, current = [Fraction(1)], [constant, slope]
    for _ in range(degree - 1):
        following = [
            2 * (constant * c + slope * b)
            for b, c in zip([Fraction(0), *current], [*current, Fraction(0)], strict=True)
        ]
        for i, c in enumerate(previous):
            following[i] -= c
        previous, current = current, following
    return current


FLOAT32 = Float("f32", "u32", "", "f", "u", "f", 32, 24)
FLOAT64 = Float("f64", "u64", "_f64", "lf", "lu", "d", 64, 53)


def with_words(text: str, words: Mapping[str, str]) -> str:
    """A text with some of its words replaced.

    >>> with_words("fn twice(x: F) -> F { return TWO * x; }", {"F": "f32", "TWO": "2.0f"})
    'fn twice(x: f32) -> f32 { return 2.0f * x; }'
    """
    return re.sub(r"[A-Za-z_]\w*", lambda match: words.get(match[0], match[0]), text)
