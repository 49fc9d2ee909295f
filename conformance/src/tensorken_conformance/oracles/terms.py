"""Terms: operands of sums, their exact sums, and the largest errors that a backend's sums may have.

For any order of adding n terms, also in a wider format or by pairs, the error of their sum is at most gamma_{n-1} times
the sum of their sizes (Higham, section 4.2); gamma_n for a sum of n products (section 3.1). If the sum of magnitudes
has no more digits than the format, no order of adding rounds, and the sum is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic, aligned, gammas
from tensorken_conformance.subject import Subject

_ONE = np.array(1, object)

ORDINARY = ("normals", "small-integers", "positive")
"""The value classes of level 1."""

FLOATS = (
    *(*ORDINARY, "cancellation", "mixed", "ties", "subnormals", "extremes"),
    *("zeros", "infinite", "infinities", "nan"),
)
INTS = ("small-integers", "wrapping")
CLASSES = {"float": FLOATS, "int": INTS}

T = TypeVar("T")


# ---- numbers -----------------------------------------------------------------------------------------------


def generator(subject: Subject, case: Case) -> np.random.Generator:
    """The generator of the random numbers of a case."""
    return np.random.default_rng(subject.random(case).getrandbits(64))


def remembered(build: Callable[[Subject, Case], T]) -> Callable[[Subject, Case], T]:
    """Cache the operands and the oracle of a case for all backends; the cache holds one seed."""
    kept: dict[Case, T] = {}
    seed: list[int] = []

    def call(subject: Subject, case: Case) -> T:
        if seed != [subject.seed]:
            kept.clear()
            seed[:] = [subject.seed]
        if case not in kept:
            kept[case] = build(subject, case)
        return kept[case]

    return call


def drawn(rng: np.random.Generator, values: str, shape: tuple[int, ...], dtype: str, count: int) -> Array:
    """Random terms of a value class, one of FLOATS or INTS.

    At most `count` terms are added up: small integers are so small that no sum of them is rounded.
    """
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        wraps = values == "wrapping"
        found = (
            rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
            if wraps
            else _nonzero(rng, 100, shape)
        )
        return np.asarray(found.astype(dtype))
    with np.errstate(all="ignore"):
        return np.asarray(_floats(rng, values, shape, dtype, max(count, 1))).astype(dtype)


def _floats(rng: np.random.Generator, values: str, shape: tuple[int, ...], dtype: str, count: int) -> Array:
    form = FORMATS[dtype]
    if values == "small-integers":
        return _nonzero(rng, min(100, 2**form.precision // count), shape)
    if values == "positive":
        return rng.uniform(0.5, 1.5, shape)
    if values == "mixed":
        spread = {"float16": 6.0, "float64": 200.0}.get(dtype, 30.0)
        return rng.standard_normal(shape) * 2.0 ** rng.uniform(-spread, spread, shape)
    if values == "cancellation":
        return _cancelling(rng, shape)
    if values == "ties":  # halves of the last place of 1, and numbers too small for twice the digits
        half = 2.0**-form.precision
        least = max(half * 2.0**-40, float(form.subnormal))
        return rng.choice([1.0, 1.0, half, -half, 3 * half, -3 * half, least, -least], shape)
    if values == "subnormals":
        return _nonzero(rng, 2 ** (form.precision - 2), shape) * float(form.subnormal)
    if values == "extremes":
        return rng.choice([1.0, 0.75, -1.0, -0.75], shape) * float(form.largest)
    ordinary = rng.standard_normal(shape)
    if values == "zeros":
        return np.where(rng.random(shape) < 0.7, -0.0, 0.0) if rng.random() < 0.5 else np.full(shape, -0.0)
    special = {
        "infinite": [rng.choice([np.inf, -np.inf])],
        "infinities": [np.inf, -np.inf],
        "nan": [np.nan, np.inf],
    }
    if values in special:
        places = rng.random(shape) < max(0.05, min(0.5, 1.5 / count))
        if places.size:
            places.reshape(-1)[rng.integers(places.size)] = True
        return np.where(places, rng.choice(special[values], shape), ordinary)
    return ordinary


def _nonzero(rng: np.random.Generator, largest: int, shape: tuple[int, ...]) -> Array:
    """Nonzero integers up to the largest, of either sign, so that a sum that leaves one out is wrong."""
    return np.asarray(rng.integers(1, max(largest, 1), shape, endpoint=True) * rng.choice([-1, 1], shape))


def _cancelling(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Large terms, each followed by nearly its negative, and small terms between them."""
    flat = rng.standard_normal(int(np.prod(shape, dtype=int))) * 1024.0
    flat[1::2] = -flat[: flat.size // 2 * 2 : 2] * (1.0 + rng.uniform(-(2.0**-9), 2.0**-9, flat.size // 2))
    flat[rng.random(flat.size) < 0.2] /= 4096.0
    return flat.reshape(shape)


# ---- what a sum must be ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sums:
    """Exact sums.

    Attributes:
        total: the sums of the finite terms.
        magnitude: the sums of their sizes.
        count: the numbers of terms.
        special: NaN or an infinity for sums with such terms; 0 for the others.
        unsigned: where a zero may have either sign, since all terms are -0.0.
    """

    total: Dyadic
    magnitude: Dyadic
    count: Array
    special: Array
    unsigned: Array


Add = Callable[[Array], Array]
"""Adds up numbers of any type, along the axes of the op."""


def sums(terms: Array, add: Add) -> Sums:
    """The exact sums of floats or ints."""
    if terms.dtype.kind in "iO":
        exact = Dyadic.of(terms)
        some = add(np.ones(terms.shape, np.int64))
        return Sums(exact.mapped(add), abs(exact).mapped(add), some, np.zeros(some.shape), some >= 0)
    return sums_of(Dyadic.of(np.where(np.isfinite(terms), terms, 0)), terms.astype(np.float64), add)


def sums_of(exact: Dyadic, terms: Array, add: Add) -> Sums:
    """The exact sums of `exact`, with the signs of zeros, the infinities and the NaNs of `terms`."""

    def any_of(places: Array) -> Array:
        return np.asarray(add(places.astype(np.int64)) > 0)

    up, down = any_of(terms == np.inf), any_of(terms == -np.inf)
    nan = any_of(np.isnan(terms)) | (up & down)
    special = np.where(nan, np.nan, np.where(up, np.inf, np.where(down, -np.inf, 0.0)))
    count = np.asarray(add(np.ones(terms.shape, np.int64)))
    unsigned = ~any_of(~((terms == 0) & np.signbit(terms))) & (count > 0)
    return Sums(exact.mapped(add), abs(exact).mapped(add), count, special, unsigned)


def check_ints(says: str, sums: Sums, got: Array) -> None:
    """Require sums of ints to be exact, wrapped in two's complement; Failure if one is not."""
    bits, low = 8 * got.dtype.itemsize, int(np.iinfo(got.dtype).min)
    wrapped = (sums.total.integers - low) % 2**bits + low
    expected = np.asarray(wrapped, object).astype(got.dtype).reshape(got.shape)
    wrong = np.argwhere(got != expected)
    if len(wrong):
        index = tuple(map(int, wrong[0]))
        raise Failure(f"{says}{at(index)}: expected {expected[index]}, got {got[index]}")


def check_sums(
    says: str, sums: Sums, got: Array, arithmetic: Arithmetic, extra: int = 0, lost: Dyadic | None = None
) -> Measured:
    """Require sums of floats to be within the errors of any order of adding.

    Args:
        says: the beginning of the message.
        sums: the exact sums.
        got: the results.
        arithmetic: the arithmetic of the backend.
        extra: the number of roundings of a term beside those of adding: 1 for a product.
        lost: the largest error of each sum by underflow.

    Raises:
        Failure: if a sum is not within its error.
    """
    form = arithmetic.format
    roundings = np.maximum(sums.count - 1 + extra, 0)
    if arithmetic.faithful and sums.total.exponent >= form.least:  # sums with few bits are not rounded
        most = Dyadic(_ONE, sums.total.exponent + form.precision)
        roundings = np.where(sums.magnitude.exceeds(most), roundings, 0)
    bound = sums.magnitude.times(gammas(roundings, arithmetic.unit))
    if arithmetic.flushes:  # every operand and every partial sum may be flushed to zero
        bound = bound + Dyadic.of(2 * sums.count).times(2 * form.normal)
    if lost is not None:
        bound = bound + lost
    finite = np.isfinite(got)
    error = abs(Dyadic.of(np.where(finite, got, 0)) - sums.total)
    high = sums.magnitude + bound
    safe = ~high.exceeds(Dyadic.number(form.largest))  # no order of adding overflows
    size = abs(sums.total)
    one_sided = ~sums.magnitude.exceeds(size)
    sure = one_sided & ~Dyadic.number(form.overflow).exceeds(size - bound)  # every order of adding overflows
    wrong = np.where(finite, error.exceeds(bound) | sure, safe)
    sign = np.where(sums.total.integers < 0, -np.inf, np.inf)
    wrong |= sure & (got != sign)
    zero = (got == 0) & (sums.magnitude.integers == 0) & ~sums.unsigned & (not arithmetic.flushes)
    wrong |= np.asarray(zero & np.signbit(got), bool)
    plain = sums.special == 0
    wrong = np.where(plain, wrong, ~same(got, sums.special))
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise Failure(
            f"{says}{at(index)}: {_expected(sums, bound, index, bool(sure[index]))}, got {got[index].item()!r}"
            f"{_excess(error, bound, index) if plain[index] and finite[index] else ''}",
            ulp=_units(error, sums.magnitude, index, arithmetic) if plain[index] and finite[index] else None,
        )
    return _measured(error, sums.magnitude, np.asarray(plain & finite, bool), arithmetic)


def refuse(says: str, wrong: Array, expected: str, got: Array) -> None:
    """Raise Failure at the first wrong result, if there is one."""
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise Failure(f"{says}{at(index)}: expected {expected} got {got[index].item()!r}")


def same(got: Array, expected: Array) -> Array:
    """Where values are equal, or both NaN."""
    return np.asarray((got == expected) | (np.isnan(got) & np.isnan(expected)))


def at(index: tuple[int, ...]) -> str:
    """The index of an element, for messages."""
    return f" at {list(index)}" if index else ""


def shown(x: Fraction) -> str:
    """A number for messages, also one that is too large for a float."""
    try:
        return repr(float(x))
    except OverflowError:
        return f"{'-' if x < 0 else ''}2**{int(abs(x)).bit_length()}"


def _expected(sums: Sums, bound: Dyadic, index: tuple[int, ...], sure: bool) -> str:
    special, total = sums.special[index], sums.total.fraction(index)
    if special != 0:
        return f"expected {special}"
    if sure:
        return (
            f"expected {'-' if total < 0 else ''}inf, as {shown(total)} is too large in any order of adding"
        )
    return f"expected {shown(total)} give or take {shown(bound.fraction(index))}"


def _excess(error: Dyadic, bound: Dyadic, index: tuple[int, ...]) -> str:
    allowed, off = bound.fraction(index), error.fraction(index)
    return f": off by {float(off / allowed):.3g} times the bound" if allowed and off > allowed else ""


def _units(error: Dyadic, magnitude: Dyadic, index: tuple[int, ...], arithmetic: Arithmetic) -> float:
    """The error in units in the last place of the sum of sizes."""
    size = max(magnitude.fraction(index) * 2 * arithmetic.format.unit, arithmetic.format.subnormal)
    return float(error.fraction(index) / size)


def _measured(error: Dyadic, magnitude: Dyadic, places: Array, arithmetic: Arithmetic) -> Measured:
    """The largest error, in units in the last place of the sum of sizes."""
    form = arithmetic.format
    floor = Dyadic(_ONE, form.least + form.precision - 1)
    ratios = error.over(
        Dyadic(_larger(*aligned(magnitude, floor)[:2]), min(magnitude.exponent, floor.exponent))
    )
    return Measured(float(np.max(ratios, where=places, initial=0.0)) / float(2 * form.unit))


def _larger(a: Array, b: Array) -> Array:
    return np.asarray(np.maximum(a, b), object)
