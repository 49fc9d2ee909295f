"""Index expressions: integers computed from a kernel's loop variables, kept as sums so that divisions cancel.

An expression is data.  A target prints it, evaluates it, or turns it into instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd
from typing import Protocol


class IndexTarget(Protocol):
    """Computes indices that are not sums of variables."""

    def divide(self, dividend: IndexExpression, operator: str, divisor: int, size: int) -> IndexExpression:
        """The quotient (`/`) or remainder (`%`) of numbers that are not negative: a variable of this many values."""

    def bounded(self, index: IndexExpression, size: int) -> IndexExpression:
        """The index as a variable of this many values; where it is out of these bounds, it is not used."""


@dataclass(eq=False)
class IndexExpression:
    """A sum of variables times factors, and a constant.

    It is immutable by convention: a frozen dataclass takes three times as long to create, and a kernel creates many.

    Attributes:
        terms: the factor of each variable.
        constant: the constant term.
        sizes: for each variable the number of its values, from 0 up.
        quotients: for each variable that is a quotient: its dividend, divisor, and the variable of the remainder.
    """

    terms: Mapping[str, int]
    constant: int
    sizes: Mapping[str, int]
    quotients: Mapping[str, tuple[IndexExpression, int, str]] = field(default_factory=dict)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal sums."""
        return (*sorted([term for term in self.terms.items() if self.sizes[term[0]] > 1]), self.constant)

    @cached_property
    def end(self) -> int | None:
        """One more than the largest value; None if the sum may be negative."""
        low = self.constant + sum([f * (self.sizes[v] - 1) for v, f in self.terms.items() if f < 0])
        if low < 0:
            return None
        return 1 + self.constant + sum([f * (self.sizes[v] - 1) for v, f in self.terms.items() if f > 0])

    def _with(self, terms: Mapping[str, int], constant: int) -> IndexExpression:
        """Another sum of the same variables."""
        return IndexExpression(terms, constant, self.sizes, self.quotients)

    def __add__(self, other: IndexExpression) -> IndexExpression:
        terms = dict(self.terms)
        for v, f in other.terms.items():
            terms[v] = terms.get(v, 0) + f
        kept = {v: f for v, f in terms.items() if f}
        sizes, quotients = {**self.sizes, **other.sizes}, {**self.quotients, **other.quotients}
        return IndexExpression(kept, self.constant + other.constant, sizes, quotients)._recombined()

    def _recombined(self) -> IndexExpression:
        """Replace a quotient times its divisor plus the remainder by the dividend."""
        for v, (dividend, by, remainder) in self.quotients.items():
            factor = self.terms.get(remainder)
            if factor and self.terms.get(v) == factor * by:
                rest = {x: f for x, f in self.terms.items() if x not in (v, remainder)}
                return self._with(rest, self.constant) + dividend.times(factor)
        return self

    def times(self, factor: int) -> IndexExpression:
        """The sum multiplied by a factor."""
        terms = {v: f * factor for v, f in self.terms.items()} if factor else {}
        return self._with(terms, self.constant * factor)

    def over(self, factor: int) -> IndexExpression:
        """The sum divided by a divisor of all factors, rounded down."""
        terms = {v: f // factor for v, f in self.terms.items()}
        return self._with(terms, self.constant // factor)

    def plus(self, number: int) -> IndexExpression:
        """The sum plus a number."""
        return self._with(self.terms, self.constant + number)

    def divided(self, by: int, target: IndexTarget) -> tuple[IndexExpression, IndexExpression]:
        """Quotient and remainder; the target computes quotients and remainders that the sum does not determine."""
        if by == 1:
            return self, constant_index(0)
        multiples = {v: f // by for v, f in self.terms.items() if f % by == 0}
        others = {v: f for v, f in self.terms.items() if v not in multiples}
        rest = self._with(others, self.constant % by)
        if rest.end is not None and rest.end <= by:
            return self._with(multiples, self.constant // by), rest
        if rest.end is not None and multiples:  # the division of the rest may cancel later
            quotient, remainder = rest.divided(by, target)
            return self._with(multiples, self.constant // by) + quotient, remainder
        step = gcd(by, *self.terms.values())
        if step > 1:  # neighbours, such as the elements of a vector, share one division
            quotient, remainder = self.over(step).divided(by // step, target)
            return quotient, remainder.times(step).plus(self.constant % step)
        end = self.end
        if end is not None and end <= by:
            return constant_index(0), self
        most = 2**31 if end is None else -(-end // by)
        quotient, remainder = target.divide(self, "/", by, most), target.divide(self, "%", by, by)
        if not (quotient.terms and remainder.terms):
            return quotient, remainder
        (dividend,), (remainder_variable,) = quotient.terms, remainder.terms
        return replace(quotient, quotients={dividend: (self, by, remainder_variable)}), remainder

    def text(self, literal: Callable[[int], str]) -> str:
        """The sum as text, in which `literal` writes the numbers."""
        if not self.terms:
            return literal(self.constant)
        positive = [v if f == 1 else f"{v} * {literal(f)}" for v, f in self.terms.items() if f > 0]
        negative = [v if f == -1 else f"{v} * {literal(-f)}" for v, f in self.terms.items() if f < 0]
        if self.constant > 0 or not positive:
            positive.insert(0, literal(self.constant))
        elif self.constant < 0:
            negative.append(literal(-self.constant))
        return " - ".join([" + ".join(positive), *negative])

    def __str__(self) -> str:
        return self.text(str)

    def value(self, values: Mapping[str, int]) -> int:
        """The number, for these values of the variables."""
        return self.constant + sum([f * values[v] for v, f in self.terms.items()])


def constant_index(number: int) -> IndexExpression:
    """A known number."""
    return IndexExpression({}, number, {})


def variable(name: str, size: int) -> IndexExpression:
    """A variable with this many values; one with a single value is 0."""
    return constant_index(0) if size == 1 else IndexExpression({name: 1}, 0, {name: size})


def written_variable(name: str, size: int) -> IndexExpression:
    """A variable even if it has a single value, so that kernels of one element share the text of larger ones."""
    return IndexExpression({name: 1}, 0, {name: size})
