"""Bounds: exact numbers, unit roundoffs, and theorems on the error of a computation.

A `Dyadic` is an array of integers times one power of two: every float is such a number, and sums and products of them
are exact.  The theorems are those of N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, 2002;
each law names its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tensorken_conformance import limits
from tensorken_conformance.numbers.rounding import FORMATS, Format, power_of_two
from tensorken_core.language.capabilities import Capabilities

Array = np.ndarray[Any, Any]

GUARD = 64
"""The extra bits of a bound before it is divided, so that rounding it up changes almost nothing."""


# ---- exact numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dyadic:
    """An array of exact numbers: integers times a power of two.

    Attributes:
        integers: Python ints, in an array of objects.
        exponent: the exponent of the power of two.

    >>> x = Dyadic.of(np.array([0.5, 0.1]))
    >>> (x * x).sum().fraction() == Fraction(0.5) ** 2 + Fraction(0.1) ** 2
    True
    """

    integers: Array
    exponent: int

    @staticmethod
    def of(x: Any) -> Dyadic:
        """Floats or ints as they are.

        Raises:
            ValueError: if one is not finite.
        """
        values = np.asarray(x)
        if values.dtype.kind in "iub":
            return Dyadic(values.astype(object), 0)
        if values.dtype.kind == "O":
            return Dyadic(values, 0)
        wide = values.astype(np.float64)
        if not np.isfinite(wide).all():
            raise ValueError("only finite numbers are whole numbers times a power of two")
        significands, exponents = np.frexp(wide)
        whole = np.ldexp(significands, 53).astype(np.int64)
        some = whole != 0
        if not some.any():
            return Dyadic(whole.astype(object), 0)
        twos = np.where(some, whole & -whole, 1)
        places = np.frexp(twos.astype(np.float64))[1].astype(np.int64) - 1
        shifts = exponents.astype(np.int64) - 53 + places
        least = int(shifts[some].min())
        shifts = np.where(some, shifts - least, 0)
        integers = (whole >> places).astype(object)
        return Dyadic(_objects(integers << shifts.astype(object), values.shape), least)

    @staticmethod
    def number(x: Fraction | int) -> Dyadic:
        """One number whose denominator is a power of two."""
        x = Fraction(x)
        return Dyadic(_objects(x.numerator, ()), -(x.denominator.bit_length() - 1))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        shape: tuple[int, ...] = self.integers.shape
        return shape

    @property
    def T(self) -> Dyadic:
        """The matrices transposed."""
        return Dyadic(self.integers.swapaxes(-1, -2), self.exponent)

    def __getitem__(self, index: Any) -> Dyadic:
        found = self.integers[index]
        return Dyadic(found if isinstance(found, np.ndarray) else _objects(found, ()), self.exponent)

    def __add__(self, other: Dyadic) -> Dyadic:
        a, b, exponent = aligned(self, other)
        return Dyadic(_objects(a + b), exponent)

    def __sub__(self, other: Dyadic) -> Dyadic:
        a, b, exponent = aligned(self, other)
        return Dyadic(_objects(a - b), exponent)

    def __mul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(_objects(self.integers * other.integers), self.exponent + other.exponent)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(_objects(np.matmul(self.integers, other.integers)), self.exponent + other.exponent)

    def __abs__(self) -> Dyadic:
        return Dyadic(_objects(np.abs(self.integers)), self.exponent)

    def sum(self, axes: Any = None) -> Dyadic:
        """The sum over axes, which keep size 1; by default the sum of all elements."""
        if axes is None:
            return Dyadic(_objects(np.add.reduce(self.integers.reshape(-1))), self.exponent)
        return Dyadic(_objects(np.add.reduce(self.integers, axes, keepdims=True)), self.exponent)

    def mapped(self, function: Callable[[Array], Array]) -> Dyadic:
        """The result of a function that adds or moves elements."""
        return Dyadic(_objects(function(self.integers)), self.exponent)

    def times(self, factors: Any) -> Dyadic:
        """The product with non-negative fractions, rounded up by less than 2**-GUARD of it."""
        factors = np.asarray(factors, object)
        wide = (np.abs(self.integers) << GUARD) * _numerators(factors)
        return Dyadic(_objects(-(-wide // _denominators(factors))), self.exponent - GUARD)

    def exceeds(self, other: Dyadic) -> Array:
        """Where this is larger than the other."""
        a, b, _ = aligned(self, other)
        return np.asarray(a > b, bool)

    def equals(self, other: Dyadic) -> Array:
        """Where both are the same number."""
        a, b, _ = aligned(self, other)
        return np.asarray(a == b, bool)

    def over(self, other: Dyadic) -> Array:
        """The quotients, as floats; 0 where the other is 0."""
        return np.asarray(
            _quotients(self.integers, other.integers, self.exponent - other.exponent), np.float64
        )

    def fraction(self, index: Any = ()) -> Fraction:
        """One of the numbers."""
        return Fraction(self.integers[index]) * power_of_two(self.exponent)

    def fractions(self) -> Array:
        """All of them."""
        scale = power_of_two(self.exponent)
        return _objects(np.frompyfunc(lambda n: Fraction(n) * scale, 1, 1)(self.integers))


def aligned(a: Dyadic, b: Dyadic) -> tuple[Array, Array, int]:
    """The whole numbers of both for the smaller of the two exponents."""
    exponent = min(a.exponent, b.exponent)
    return _raised(a, exponent), _raised(b, exponent), exponent


def _raised(x: Dyadic, exponent: int) -> Array:
    return x.integers << (x.exponent - exponent) if x.exponent > exponent else x.integers


def _objects(x: Any, shape: tuple[int, ...] | None = None) -> Array:
    """An array of objects, also of a single one."""
    if isinstance(x, np.ndarray):
        return x if shape is None else x.reshape(shape)
    found = np.empty((), object)
    found[()] = x
    return found


def _quotient(a: int, b: int, exponent: int) -> float:
    """a / b * 2**exponent as a float, at most about 2**1020; 0 where b is 0."""
    if not b:
        return 0.0
    places = a.bit_length() - b.bit_length()
    ratio = a / (b << places) if places >= 0 else (a << -places) / b
    return math.ldexp(ratio, min(max(places + exponent, -1080), 1020))


_quotients = np.frompyfunc(_quotient, 3, 1)
_numerators = np.frompyfunc(lambda x: x.numerator, 1, 1)
_denominators = np.frompyfunc(lambda x: x.denominator, 1, 1)


# ---- errors ------------------------------------------------------------------------------------------------


def gamma(count: int, unit: Fraction) -> Fraction:
    """gamma_n = n u / (1 - n u): the largest relative error of n roundings (Higham, lemma 3.1).

    Raises:
        ValueError: if n u is not below 1, where the lemma does not hold.

    >>> gamma(3, Fraction(1, 8)) == Fraction(3, 5)
    True
    """
    if count * unit >= 1:
        raise ValueError(
            f"gamma_{count} is not defined for the unit roundoff 2**-{unit.denominator.bit_length() - 1}"
        )
    return max(count, 0) * unit / (1 - max(count, 0) * unit)


def gammas(counts: Any, unit: Fraction) -> Array:
    """gamma_n for each of many n.

    >>> gammas([1, 1, 2], Fraction(1, 8)).tolist()
    [Fraction(1, 7), Fraction(1, 7), Fraction(1, 3)]
    """
    counts = np.asarray(counts)
    table = {int(n): gamma(int(n), unit) for n in np.unique(counts)}
    found = np.empty(counts.shape, object)
    for index, n in np.ndenumerate(counts):
        found[index] = table[int(n)]
    return found


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The errors of a backend's arithmetic in a dtype, as declared, and at most those that a level allows."""

    capabilities: Capabilities
    dtype: str
    level: int = 2

    @property
    def format(self) -> Format:
        """The format of the dtype."""
        return FORMATS[self.dtype]

    @property
    def flushes(self) -> bool:
        """Whether subnormal operands and results may become zero."""
        return self.dtype in self.capabilities.flushes_subnormals

    def error(self, *ops: str) -> Fraction:
        """The relative error of one of these ops: half a unit for rounding, and the allowed error.

        An error of k representable numbers is at most k + 1/2 units in the last place, each at most 2 u.
        """
        errors = [limits.allowed(self.capabilities, op, self.dtype, self.level) for op in ops]
        return (2 * max(errors) + 1) * self.format.unit

    @property
    def unit(self) -> Fraction:
        """The relative error of a sum or a product of two numbers."""
        return self.error("add", "sub", "mul")

    @property
    def loss(self) -> Fraction:
        """The absolute error of a product or a quotient by underflow."""
        return self.format.normal if self.flushes else self.format.subnormal / 2

    @property
    def faithful(self) -> bool:
        """Whether sums and products that need no rounding are exact."""
        return not any(limits.allowed(self.capabilities, op, self.dtype, 2) for op in ("add", "sub", "mul"))
