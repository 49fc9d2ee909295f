"""values.products: prod and cumprod are within the rounding bound that holds for every order of multiplication."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.layouts.shapes import fitted, operand
from tensorken_conformance.limits import NARROW
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact, rounded, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic, gamma
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS

ID = "values.products"

VARIANTS = {"prod": reductions.several, "cumprod": reductions.one}

ORDINARY = ("normals", "small-factors")

FLOATS = (*ORDINARY, "zeros", "infinite", "nan", "undefined", "vanishing", "growing", "orders")
"""Value classes; `undefined`: zero times infinity; `orders`: overflows or underflows only in some orders."""

INTS = ("small-factors", "wrapping", "zeros")
VALUES = {"float": FLOATS, "int": INTS}

BITS = 240
"""The bits of a product that the oracle keeps."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype, shape and choice of axes on ordinary values; each value class on some shapes."""
    for op, variants in VARIANTS.items():
        yield from reductions.grid(subject, ID, op, variants, lambda d: VALUES[d.kind], ORDINARY, longest)


def longest(dtype: DType, values: str) -> int:
    """The most factors to which the bound applies; factors that need no rounding have no limit."""
    return FORMATS[dtype.name].terms if dtype.name in NARROW and values != "small-factors" else 10**6


def factors(rng: np.random.Generator, values: str, shape: tuple[int, ...], dtype: str, count: int) -> Array:
    """Factors of a value class, at most `count` of which are multiplied.

    But for the last three classes, no product of any of them leaves the range of normal numbers.
    """
    if np.dtype(dtype).kind in "iu":
        if values == "wrapping":
            ends = np.iinfo(dtype)
            return rng.integers(ends.min, ends.max, shape, dtype, endpoint=True) | np.ones((), dtype)
        found = _small(rng, shape, 20, (2, 3, 5, -7))
        return np.where((rng.random(shape) < 0.3) & (values == "zeros"), 0, found).astype(dtype)
    form = FORMATS[dtype]
    room = 2 - form.least - form.precision  # powers of two between 1 and either end, with a margin
    signs = rng.choice([-1.0, 1.0], shape)
    if values == "small-factors":
        few = min(room, form.precision * 2 // 3) // 2
        return np.asarray(_small(rng, shape, few, (2, 0.5, -2, 0.25, 3)), dtype)
    if values in ("vanishing", "growing", "orders"):
        direction = {"vanishing": [-1], "growing": [1], "orders": [-1, 1]}[values]
        return np.asarray(
            signs * 2.0 ** (rng.choice(direction, shape) * rng.integers(room // 2, room, shape)), dtype
        )
    spread = min(1.0, 0.9 * room / max(count, 1))
    found = np.asarray(signs * 2.0 ** rng.uniform(-spread, spread, shape), dtype)
    special = {"zeros": [0.0, -0.0], "infinite": [np.inf, -np.inf], "nan": [np.nan, np.nan, np.inf, 0.0]}
    chosen = special.get(values, [0.0, -np.inf, np.inf])
    if values == "normals":
        return found
    places = rng.random(shape) < max(0.1, min(0.5, 1.5 / max(count, 1)))
    return np.where(places, rng.choice(chosen, shape), found).astype(dtype)


def _small(rng: np.random.Generator, shape: tuple[int, ...], room: int, others: tuple[float, ...]) -> Array:
    """Ones of either sign and a few other factors, of which one is the first and one the last."""
    found = rng.choice([1.0, 1.0, 1.0, -1.0], shape)
    if not found.size:
        return found
    flat = found.reshape(-1)
    for index in {0, flat.size - 1, *rng.integers(0, flat.size, max(room - 2, 0)).tolist()}:
        flat[index] = rng.choice(others)
    return found


@dataclass(frozen=True, slots=True)
class Products:
    """Exact products.

    Attributes:
        whole: the first BITS bits of the product of the sizes of the factors that are finite and not 0.
        exponent: of the power of two by which that is to be multiplied.
        negative: whether an odd number of factors has a sign.
        count: how many factors there are.
        special: what a product is that has factors which are NaN, infinite or 0, the sign apart; 1 for the others.
        steady: whether a product of no part of the factors leaves the range of normal numbers.
    """

    whole: Array
    exponent: Array
    negative: Array
    count: Array
    special: Array
    steady: Array


def products(values: Array, params: tuple[Any, ...]) -> Products:
    """The products of floats."""
    rows, placed = _rows(values.astype(np.float64), params)
    plain = np.isfinite(rows) & (rows != 0)
    sizes = np.where(plain, np.abs(rows), 1.0)
    significands, exponents = np.frexp(sizes)
    wholes = np.ldexp(significands, 53).astype(np.int64)
    height = np.log2(sizes)
    form = FORMATS[values.dtype.name]

    def running(function: np.ufunc, x: Array, first: Any) -> Array:
        """The accumulation that begins with `first`."""
        return np.asarray(
            function.accumulate(np.concatenate([np.full((len(x), 1), first), x], axis=1), axis=1)
        )

    with np.errstate(invalid="ignore"):  # 0 times infinity
        special = running(np.multiply, np.where(plain, 1.0, np.abs(rows)), 1.0)
    up = running(np.add, np.maximum(height, 0.0), 0.0) < form.top - 2
    down = running(np.add, np.minimum(height, 0.0), 0.0) > form.least + form.precision
    table = np.array([_running(row) for row in wholes.tolist()], object).reshape(*special.shape, 2)
    whole, shifts = table[..., 0], table[..., 1].astype(np.int64)
    exponent = running(np.add, exponents.astype(np.int64) - 53, 0) + shifts
    negative = running(np.add, np.signbit(rows).astype(np.int64), 0) % 2 == 1
    count = np.broadcast_to(np.arange(special.shape[1]), special.shape)

    return Products(*[placed(x) for x in (whole, exponent, negative, count, special, up & down)])


def _rows(values: Array, params: tuple[Any, ...]) -> tuple[Array, Callable[[Array], Array]]:
    """The factors of each product as a row, and the function from running products of rows to results of the op."""
    scan = not isinstance(params[0], tuple)
    axes = params if scan else params[0]
    kept = [i for i in range(values.ndim) if i not in axes]
    moved = values.transpose([*kept, *axes])
    count = int(np.prod([values.shape[i] for i in axes], dtype=int))

    def placed(x: Array) -> Array:
        if scan:
            return np.moveaxis(x[:, 1:].reshape(moved.shape), -1, axes[0])
        return x[:, -1].reshape([1 if i in axes else n for i, n in enumerate(values.shape)])

    return moved.reshape(int(np.prod([values.shape[i] for i in kept], dtype=int)), count), placed


def _running(line: list[int]) -> list[tuple[int, int]]:
    """The products of the first 0, 1, 2, ... numbers, and the number of bits that each has lost."""
    whole, lost = 1, 0
    found = [(1, 0)]
    for value in line:
        whole *= value
        excess = whole.bit_length() - BITS
        if excess > 0:
            whole >>= excess
            lost += excess
        found.append((whole, lost))
    return found


@dataclass(frozen=True, slots=True)
class Problem:
    """The operand of a case, the params of the op, and the products of floats or ints."""

    values: Array
    params: tuple[Any, ...]
    floats: Products | None
    ints: terms.Sums | None


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operand and the exact products of a case."""
    rng, shape = terms.generator(subject, case), reductions.class_of(case.shape).shape
    params = VARIANTS[case.op](shape)[case.detail]
    count = reductions.length(params, shape)
    values = fitted(case.shape, factors(rng, case.values, shape, case.dtype, count))
    if is_float(values):
        return Problem(values, params, products(values, params), None)
    modulus = 2 ** (8 * values.dtype.itemsize)
    rows, placed = _rows(values, params)
    table = [list(accumulate(row, lambda a, b: a * b % modulus, initial=1)) for row in rows.tolist()]
    whole = placed(np.array(table, object).reshape(len(rows), rows.shape[1] + 1))
    total = Dyadic(whole, 0)
    return Problem(
        values, params, None, terms.Sums(total, abs(total), np.zeros(()), np.zeros(()), np.zeros(()))
    )


@law(ID, cases, level=2, needs=exact.needs_of)
def check_products(subject: Subject, case: Case) -> Measured | None:
    """Products are exact for ints, and for floats within gamma_{n-1} of themselves, in any order.

    They are exact for floats, too, where no product of some of the factors has more digits than the format. The sign of
    a product, also of a zero or an infinity, is the product of the signs; NaN, and zero times infinity, are NaN. A
    product that leaves the range of normal numbers only in some orders may be zero, infinite or NaN, or within the
    bound. An empty product is 1.

    The bound: Higham, section 3.1. If a backend declares no error for the op, its result is the exact product rounded
    once.
    """
    given, dtype = problem(subject, case), DTYPES[case.dtype]
    x = operand(subject, case.shape, given.values, dtype)
    got = subject.read(subject.run(OPS[case.op], [x], given.params))
    says = f"{case.op}{tuple(given.params)}"
    if given.ints is not None:
        terms.check_ints(says, given.ints, got)
        return None
    assert given.floats is not None
    exactly = given.floats
    measured = check_floats(says, exactly, got, Arithmetic(subject.capabilities, case.dtype), case.values)
    if rounded.declared(subject, case):
        whole = np.where(exactly.negative, -exactly.whole, exactly.whole)
        lost = 4 * int(np.max(exactly.count, initial=1))  # below BITS bits, less than one for each factor
        rounded.require(says, case.dtype, whole, exactly.exponent, got, exactly.special == 1.0, lost)
    return measured


def check_floats(says: str, exact: Products, got: Array, arithmetic: Arithmetic, values: str) -> Measured:
    """Require products of floats to be within the bound that holds for any order of multiplication.

    Raises:
        Failure: if one is not.
    """
    form, worst = arithmetic.format, 0.0
    signed = np.signbit(got) == exact.negative
    number = (exact.special == 1.0) & np.isfinite(got) & (got != 0)
    with np.errstate(invalid="ignore"):
        good = np.where(np.isnan(exact.special), np.isnan(got), (np.abs(got) == exact.special) & signed)
    good = np.where((exact.special == 1.0) & ~number, ~exact.steady & (np.isnan(got) | signed), good)
    # of which no part needs rounding
    short = exact.steady & (_odd(exact.whole) < 2**form.precision) & arithmetic.faithful

    @functools.cache
    def bound(count: int) -> Fraction:
        return gamma(count - 1, arithmetic.unit) + Fraction(4 * count, 2**BITS)

    for index in map(tuple, np.argwhere(number)):
        ratio = _off(float(got[index]), exact.whole[index], int(exact.exponent[index]))
        allowed = 0 if short[index] else bound(int(exact.count[index])) * 2**BITS
        good[index] = signed[index] and ratio <= allowed
        if good[index]:
            worst = max(worst, float(ratio) / 2**BITS)
    if values in ("growing", "vanishing"):  # in every order
        height = exact.exponent + np.frompyfunc(int.bit_length, 1, 1)(exact.whole)
        sure = np.asarray((height > form.top + 1) if values == "growing" else (height < form.least - 1), bool)
        end = np.isinf(got) if values == "growing" else got == 0
        good = np.where(sure & (exact.special == 1.0), end & signed, good)
    wrong = np.argwhere(~good)
    if len(wrong):
        index = tuple(map(int, wrong[0]))
        size = exact.whole[index] * Fraction(2) ** int(exact.exponent[index])
        what = float(exact.special[index])
        sign = "-" if exact.negative[index] and what == what else ""
        expected = f"{sign}{terms.shown(size) if what == 1.0 else what}"
        share = 0 if short[index] else bound(int(exact.count[index]))
        off = abs(abs(Fraction(float(got[index]))) - size) / size if number[index] else None
        raise Failure(
            f"{says}{terms.at(index)}: expected {expected}, to {float(share):.3g} of it, got {got[index].item()!r}",
            ulp=None if off is None else float(off / (2 * form.unit)),
        )
    return Measured(worst / float(2 * form.unit))


_odd = np.frompyfunc(lambda whole: whole // (whole & -whole), 1, 1)


def _off(value: float, whole: int, exponent: int) -> int:
    """The relative error of a number, times 2**BITS, rounded up."""
    p, q = abs(value).as_integer_ratio()
    shift = -(q.bit_length() - 1) - exponent
    p, whole = (p << shift, whole) if shift >= 0 else (p, whole << -shift)
    return -(-(abs(p - whole) << BITS) // whole)
