"""Places: whole numbers that a kernel computes from its loop variables, kept as sums so that divisions cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd

from tensorken_wgpu.templates import whole


@dataclass(eq=False)
class Place:
    """A sum of variables times factors, and a constant.

    Nobody changes one; a frozen dataclass would take three times as long to make, and a kernel makes many.

    Attributes:
        terms: for each variable its factor.
        constant: what is added.
        sizes: for each variable how many values it has, from 0 up.
        quotients: for each variable that is a quotient of what, by what, and which variable is the remainder.
    """

    terms: Mapping[str, int]
    constant: int
    sizes: Mapping[str, int]
    quotients: Mapping[str, tuple[Place, int, str]] = field(default_factory=dict)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal sums."""
        return (*sorted([term for term in self.terms.items() if self.sizes[term[0]] > 1]), self.constant)

    @cached_property
    def end(self) -> int | None:
        """One more than the largest value; None if it is not known to be 0 or more throughout."""
        low = self.constant + sum([f * (self.sizes[v] - 1) for v, f in self.terms.items() if f < 0])
        if low < 0:
            return None
        return 1 + self.constant + sum([f * (self.sizes[v] - 1) for v, f in self.terms.items() if f > 0])

    def _with(self, terms: Mapping[str, int], constant: int) -> Place:
        """Another sum of the same variables."""
        return Place(terms, constant, self.sizes, self.quotients)

    def __add__(self, other: Place) -> Place:
        terms = dict(self.terms)
        for v, f in other.terms.items():
            terms[v] = terms.get(v, 0) + f
        kept = {v: f for v, f in terms.items() if f}
        sizes, quotients = {**self.sizes, **other.sizes}, {**self.quotients, **other.quotients}
        return Place(kept, self.constant + other.constant, sizes, quotients)._put_together()

    def _put_together(self) -> Place:
        """This, with what it was that has been divided, where its quotient and remainder meet again."""
        for v, (of, by, remainder) in self.quotients.items():
            factor = self.terms.get(remainder)
            if factor and self.terms.get(v) == factor * by:
                rest = {x: f for x, f in self.terms.items() if x not in (v, remainder)}
                return self._with(rest, self.constant) + of.times(factor)
        return self

    def times(self, factor: int) -> Place:
        """This, multiplied."""
        terms = {v: f * factor for v, f in self.terms.items()} if factor else {}
        return self._with(terms, self.constant * factor)

    def over(self, factor: int) -> Place:
        """This, divided by what divides all factors; rounded down."""
        terms = {v: f // factor for v, f in self.terms.items()}
        return self._with(terms, self.constant // factor)

    def plus(self, number: int) -> Place:
        """This and a number."""
        return self._with(self.terms, self.constant + number)

    def divided(self, by: int, name: Callable[[str, int], Place]) -> tuple[Place, Place]:
        """Quotient and remainder; where they do not follow from the sum, `name` gives what is computed a name."""
        if by == 1:
            return self, fixed(0)
        multiples = {v: f // by for v, f in self.terms.items() if f % by == 0}
        others = {v: f for v, f in self.terms.items() if v not in multiples}
        rest = self._with(others, self.constant % by)
        if rest.end is not None and rest.end <= by:
            return self._with(multiples, self.constant // by), rest
        step = gcd(by, *self.terms.values())
        if step > 1:  # what lies beside it, as the elements of a vector, is divided by the same division
            quotient, remainder = self.over(step).divided(by // step, name)
            return quotient, remainder.times(step).plus(self.constant % step)
        end = self.end
        if end is not None and end <= by:
            return fixed(0), self
        most = 2**31 if end is None else -(-end // by)
        quotient, remainder = name(f"({self}) / {whole(by)}", most), name(f"({self}) % {whole(by)}", by)
        if not (quotient.terms and remainder.terms):
            return quotient, remainder
        (of,), (rest_of_it,) = quotient.terms, remainder.terms
        return replace(quotient, quotients={of: (self, by, rest_of_it)}), remainder

    def __str__(self) -> str:
        if not self.terms:
            return whole(self.constant)
        up = [v if f == 1 else f"{v} * {whole(f)}" for v, f in self.terms.items() if f > 0]
        down = [v if f == -1 else f"{v} * {whole(-f)}" for v, f in self.terms.items() if f < 0]
        if self.constant > 0 or not up:
            up.insert(0, whole(self.constant))
        elif self.constant < 0:
            down.append(whole(-self.constant))
        return " - ".join([" + ".join(up), *down])


def fixed(number: int) -> Place:
    """A number that is known."""
    return Place({}, number, {})


def variable(name: str, size: int) -> Place:
    """A variable with this many values; one with a single value is 0."""
    return fixed(0) if size == 1 else Place({name: 1}, 0, {name: size})


def always(name: str, size: int) -> Place:
    """The same, written down even if it has a single value: so kernels of one element are those of many."""
    return Place({name: 1}, 0, {name: size})
