"""values.norms: the root of the sum of squares, without intermediate overflow, within the rounding bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.sums import added_over
from tensorken_conformance.layouts.shapes import fitted, operand
from tensorken_conformance.limits import NARROW
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic, gamma
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS

ID = "values.norms"

ORDINARY = ("normals", "small-integers")

VALUES = (*ORDINARY, "mixed", "large", "small", "subnormals", "extremes", "zeros", "infinite", "nan")
"""Value classes; squares of `large` ones overflow, and those of `small` ones vanish."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each dtype, shape and choice of axes on ordinary values; each value class on some shapes."""
    yield from reductions.grid(
        subject, ID, "norm", reductions.several, lambda dtype: VALUES, ORDINARY, longest, kinds=("float",)
    )


def longest(dtype: DType, values: str) -> int:
    """The most terms to which the bound applies."""
    return FORMATS[dtype.name].terms if dtype.name in NARROW else 10**6


@dataclass(frozen=True, slots=True)
class Problem:
    """The operand of a case, the params of the op, and the sums of squares."""

    values: Array
    params: tuple[Any, ...]
    squares: terms.Sums


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operand and the exact squares of a case."""
    rng, shape = terms.generator(subject, case), reductions.class_of(case.shape).shape
    params = reductions.several(shape)[case.detail]
    count = reductions.length(params, shape)
    values = fitted(case.shape, elements(rng, case.values, shape, case.dtype, count))
    finite = np.isfinite(values)
    whole = Dyadic.of(np.where(finite, values, 0))
    special = np.where(finite, 1.0, np.abs(values.astype(np.float64)))
    return Problem(values, params, terms.sums_of(whole * whole, special, partial(added_over, params[0])))


def elements(rng: np.random.Generator, values: str, shape: tuple[int, ...], dtype: str, count: int) -> Array:
    """Operands of a value class."""
    form = FORMATS[dtype]
    room = int(np.ceil(np.log2(max(count, 1)))) // 2 + 3
    if values == "large":
        return np.asarray(rng.uniform(-1, 1, shape) * 2.0 ** (form.top - room), dtype)
    if values == "small":
        return np.asarray(rng.uniform(-1, 1, shape) * 2.0 ** (form.least + form.precision + 1), dtype)
    return terms.drawn(rng, values, shape, dtype, count)


@law(ID, cases, level=2, needs=exact.needs_of)
def check_norms(subject: Subject, case: Case) -> Measured:
    """norm is the root of the sum of squares, within the rounding of its steps, and overflows only if the result does.

    So squares of large elements do not overflow, those of small ones do not vanish. The norm of zeros, and of an empty
    tensor, is 0.0; NaN among the elements makes it NaN, an infinity without NaN makes it infinite.

    The bound: each element is divided by a scale and squared, n squares are added, the root is multiplied by the scale,
    at gamma_{n+2} before the root and two roundings after it (Higham, lemma 3.1).
    """
    given, dtype = problem(subject, case), DTYPES[case.dtype]
    x = operand(subject, case.shape, given.values, dtype)
    got = subject.read(subject.run(OPS["norm"], [x], given.params))
    arithmetic, squares = Arithmetic(subject.capabilities, case.dtype), given.squares
    form, count = arithmetic.format, int(squares.count.max(initial=0))
    relative, lost = share(count, arithmetic.error("div", "mul", "sqrt", "add"), arithmetic)
    if arithmetic.flushes and (np.abs(given.values) < float(form.normal))[given.values != 0].any():
        # the norm of the elements that may become zero
        lost += (math.isqrt(count) + 1) * Fraction(form.normal)
    finite, slack = np.isfinite(got), Dyadic.number(lost)
    square, length = squares.total, Dyadic.of(np.where(finite, got, 0))
    most = square.times((1 + relative) ** 2)
    wide, narrow = length + slack, length - slack
    most_below = square.times(2 * relative - relative**2)
    low = (wide * wide + most_below).exceeds(square) | (wide * wide).equals(square)
    high = ~(narrow * narrow).exceeds(most) | (narrow.integers < 0)
    end = Dyadic.number(form.largest - lost)
    infinite = (got == np.inf) & ~(end * end).exceeds(most)
    good = np.where(finite, ~np.signbit(got) & low & high, infinite)
    good = np.where(squares.special == 0, good, terms.same(got, squares.special))
    zero = (squares.special == 0) & (square.integers == 0)
    good = np.where(zero, (got == 0) & ~np.signbit(got), good).astype(bool)
    off = abs(length * length - square).over(square) / 2 / float(2 * form.unit)
    if not good.all():
        index = tuple(map(int, np.argwhere(~good)[0]))
        special, root = squares.special[index], _root(square.fraction(index))
        near = f"{terms.shown(root)} give or take {terms.shown(root * relative + lost)}"
        expected = near if special == 0 else special
        raise Failure(
            f"norm{given.params}{terms.at(index)}: expected {expected}, got {got[index].item()!r}",
            ulp=float(off[index]) if special == 0 and finite[index] else None,
        )
    normal = (square.exceeds(Dyadic.number(form.normal**2))) & finite & (squares.special == 0)
    return Measured(float(np.max(off, where=normal, initial=0.0)))


def share(count: int, unit: Fraction, arithmetic: Arithmetic) -> tuple[Fraction, Fraction]:
    """The relative rounding error of a norm of `count` elements, and its absolute error by underflow.

    The largest element over the scale is 1, or at least 1/2 if the scale is a power of two; so the sum of squares, of
    which underflow takes no more than a square of a quotient that vanishes and one that is rounded in the subnormal
    range, is at least 1/4.
    """
    before = gamma(count + 2, unit) + 4 * count * 2 * arithmetic.loss
    root = 1 + before / 2 + before**2 / 2  # since 1 - g/2 - g**2/2 <= sqrt(1 - g) for 0 <= g <= 1
    return root * (1 + unit) ** 2 - 1, arithmetic.loss


def _root(square: Fraction) -> Fraction:
    """The root, to 100 bits."""
    p, q = square.numerator, square.denominator  # q is a power of two
    shift, places = max(200 - p.bit_length(), 0), q.bit_length() - 1
    shift += (shift + places) % 2
    return isqrt(p << shift) * Fraction(2) ** (-(shift + places) // 2)
