"""values.exponential-sums: softmax, log_softmax and logsumexp, within the errors of exp, log and of adding."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.layouts.shapes import fitted, operand
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.operands import reductions
from tensorken_conformance.oracles import exact, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, gamma
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.op import OPS

ID = "values.exponential-sums"

OPERATIONS = ("softmax", "log_softmax", "logsumexp")

ORDINARY = ("normals",)

VALUES = (*ORDINARY, "equal", "wide", "shifted", "huge", "masked", "all-masked", "infinite", "nan")
"""Value classes; `shifted`: far from 0, but near to each other; `masked`: -inf among the others."""

DIGITS = decimal.Context(prec=40, Emin=-(10**8), Emax=10**8, traps=[])
"""The context of exponentials and logarithms, with 23 digits more than float64."""

VANISHES = -5000.0
"""Exponentials of smaller numbers are zero in every format."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype, shape and choice of axes on ordinary values; each value class on some shapes."""
    for op in OPERATIONS:
        several, kinds = reductions.several, ("float",)
        yield from reductions.grid(
            subject, ID, op, several, lambda d: VALUES, ORDINARY, longest, kinds=kinds, views=False
        )


def longest(dtype: DType, values: str) -> int:
    """The most terms to which the bound applies."""
    most = 1100 if values == "normals" else 257
    return min(most, FORMATS[dtype.name].terms)


def exponents(rng: np.random.Generator, values: str, shape: tuple[int, ...], dtype: str) -> Array:
    """Operands of a value class."""
    found = rng.standard_normal(shape)
    reach = {"float16": 14.0, "float64": 720.0}.get(dtype, 95.0)
    if values == "equal":
        found = np.full(shape, rng.standard_normal() * 8)
    elif values == "wide":
        found = rng.uniform(-reach, reach, shape)
    elif values == "shifted":
        digits = FORMATS[dtype].precision - 4
        found = rng.choice([-1.0, 1.0]) * 2.0**digits + np.round(found * 4)
    elif values == "huge":
        found = rng.choice([1.0, 1.0, 0.5, -0.5, -1.0], shape) * float(FORMATS[dtype].largest)
    elif values == "all-masked":
        found = np.full(shape, -np.inf)
    elif values in ("masked", "infinite", "nan"):
        special = {
            "masked": [-np.inf],
            "infinite": [np.inf, np.inf, -np.inf],
            "nan": [np.nan, np.inf, -np.inf],
        }
        places = rng.random(shape) < 0.3
        found = np.where(places, rng.choice(special[values], shape), found)
    return np.asarray(found, dtype)


Results = tuple[Array, Array]
"""Exact results as Decimals; and as floats those that must be equal to the bit: NaN, infinities, zeros; else 1."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The operand of a case, the params of the ops, and their exact results.

    The elements of one sum are a row.

    Attributes:
        values: the operand.
        params: the axes.
        places: the indices of the elements of each row in the flat operand.
        below: the maximum of the row minus each element; 0 for an infinite maximum.
        powers: exp(-below), as floats.
        total: the sum of each row of them.
        log: its logarithm.
        results: the exact results of each op.
    """

    values: Array
    params: tuple[Any, ...]
    places: Array
    below: Array
    powers: Array
    total: Array
    log: Array
    results: dict[str, Results]


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operand and the exact results of a case, which all three ops share."""
    rng, shape = terms.generator(subject, case), reductions.class_of(case.shape).shape
    params = reductions.several(shape)[case.detail]
    values = fitted(case.shape, exponents(rng, case.values, shape, case.dtype))
    axes = params[0]
    kept = [i for i in range(len(shape)) if i not in axes]
    rows, count = [int(np.prod([shape[i] for i in some], dtype=int)) for some in (kept, axes)]
    places = np.arange(values.size).reshape(shape).transpose([*kept, *axes]).reshape(rows, count)
    table = values.reshape(-1).astype(np.float64)[places]
    with decimal.localcontext(DIGITS):
        found = [_row(row) for row in table.tolist()]
    below, powers = [np.array([row[i] for row in found], np.float64).reshape(rows, count) for i in (0, 1)]
    total, log = [np.array([row[i] for row in found], np.float64).reshape(rows, 1) for i in (2, 3)]
    results = {
        op: _split([row[4][op] for row in found], rows, 1 if op == "logsumexp" else count)
        for op in OPERATIONS
    }
    return Problem(values, params, places, below, powers, total, log, results)


Number = Decimal | float


def _split(found: list[list[Number]], rows: int, count: int) -> Results:
    """Exact results, and those that must be equal to the bit."""
    special = np.array([[1.0 if isinstance(y, Decimal) else y for y in row] for row in found], np.float64)
    whole = np.empty((rows, count), object)
    for i, row in enumerate(found):
        whole[i, :] = [y if isinstance(y, Decimal) else Decimal(1) for y in row]
    return whole, special.reshape(rows, count)


def _row(values: list[float]) -> tuple[list[float], list[float], float, float, dict[str, list[Number]]]:
    """For one row the differences to the maximum, their powers, the sum, its logarithm, and the results."""
    count = len(values)
    if not count:
        return [], [], 1.0, 0.0, {"softmax": [], "log_softmax": [], "logsumexp": [-np.inf]}
    if any(v != v for v in values):
        nan: list[Number] = [np.nan] * count
        all_nan = dict(zip(OPERATIONS, (nan, nan, nan[:1]), strict=True))
        return [0.0] * count, [1.0] * count, float(count), 0.0, all_nan
    top = max(values)
    finite = abs(top) != np.inf
    differences = [_difference(v, top, finite) for v in values]
    powers = [Decimal(0) if d is None else Decimal(1) if not d else d.exp() for d in differences]
    total = sum(powers, Decimal(0))
    log = total.ln()
    results: dict[str, list[Number]] = {
        "softmax": [0.0 if d is None else p / total for d, p in zip(differences, powers, strict=True)],
        "log_softmax": [-np.inf if d is None else d - log for d in differences],
        "logsumexp": [Decimal(top) + log if finite else top],
    }
    below = [0.0 if d is None else min(-float(d), 1e308) for d in differences]
    return below, [float(p) for p in powers], float(total), float(log), results


def _difference(value: float, top: float, finite: bool) -> Decimal | None:
    """value - top: 0 for equal infinities, None for minus infinity."""
    if value == top:
        return Decimal(0)
    return Decimal(value) - Decimal(top) if finite and value != -np.inf else None


def bounds(op: str, given: Problem, arithmetic: Arithmetic) -> Array:
    """The largest errors that the results of the op may have.

    That is for exp(x - top), where top is the maximum: the rounding of x - top is an absolute error of its exponent;
    exp, the sum, the quotient or the logarithm add theirs.

    Raises:
        ValueError: if the errors are so large that no bound follows.
    """
    form, count = arithmetic.format, given.below.shape[1]
    shift = float(arithmetic.error("sub"))
    exp, log = float(arithmetic.error("exp")), float(arithmetic.error("log", "log1p"))
    quotient, adding = float(arithmetic.error("div")), float(gamma(count - 1, arithmetic.unit))
    smallest = float(form.normal if arithmetic.flushes else form.subnormal)
    lost = smallest * max(1.0, exp / (2 * float(form.unit)))  # of a power that underflows
    near = np.where(given.below < -VANISHES, given.below, 0.0)
    power = np.expm1(near * shift + smallest) * (1 + exp) + exp
    total = (np.sum(given.powers * power, axis=1, keepdims=True) + count * lost) / given.total
    total = (1 + total) * (1 + adding) - 1
    if total.size and float(total.max()) >= 0.5:
        raise ValueError(f"{op} over {count} elements: the errors allowed are too large for a bound")
    if op == "softmax":
        relative = (1 + power) * (1 + quotient) / (1 - total) - 1
        small = lost / given.total / (1 - total) * (1 + quotient) + smallest
        return np.asarray(given.powers / given.total * relative + small)
    sure = -np.log1p(-total)
    sure += log * (np.abs(given.log) + sure) + smallest
    if op == "logsumexp":
        size = np.abs(given.results[op][0].astype(np.float64))
        return np.asarray((1 + shift) * sure + shift * np.minimum(size, float(form.largest)) + smallest)
    return np.asarray(
        (1 + shift) * (given.below * shift + sure) + shift * (given.below + given.log) + smallest
    )


@law(ID, cases, level=2, needs=exact.needs_of)
def check_exponential_sums(subject: Subject, case: Case) -> Measured:
    """softmax, log_softmax and logsumexp are as accurate as exp, log and addition of differences to the maximum.

    So nothing overflows, and elements that are far from 0 but near to each other lose no digits. -inf has no weight,
    unless all elements are -inf; infinite maxima share the weight, as equal numbers do; NaN among the elements makes
    all results NaN. logsumexp of an empty tensor is -inf.

    The bound: P. Blanchard, D. J. Higham, N. J. Higham, "Accurately computing the log-sum-exp and softmax functions",
    2021, section 4, with the declared errors of exp and log instead of one unit roundoff.
    """
    given, dtype = problem(subject, replace(case, op="any")), DTYPES[case.dtype]
    x = operand(subject, case.shape, given.values, dtype)
    flat = subject.read(subject.run(OPS[case.op], [x], given.params)).reshape(-1)
    wholes, special = given.results[case.op]
    got = flat.reshape(special.shape) if case.op == "logsumexp" else flat[given.places]
    arithmetic = Arithmetic(subject.capabilities, case.dtype)
    form = arithmetic.format
    plain, finite = special == 1.0, np.isfinite(got)
    allowed = bounds(case.op, given, arithmetic)
    off = np.asarray(_distance(np.where(finite, got, 0.0).astype(np.float64), wholes), np.float64)
    sizes = np.abs(wholes.astype(np.float64))
    near_end = sizes >= float(form.largest) * (1 - 2.0**-40) - np.minimum(allowed, float(form.largest))
    infinite = np.isinf(got) & (np.signbit(got) == (wholes < 0)) & near_end
    good = np.where(plain, np.where(finite, off <= allowed, infinite), terms.same(got, special)).astype(bool)
    sizes = np.minimum(sizes, float(form.largest))
    unit = 2 * float(form.unit) * np.maximum(sizes, float(form.normal) if case.op == "softmax" else 1.0)
    if not good.all():
        row, i = map(int, np.argwhere(~good)[0])
        near = f"{float(wholes[row, i])!r} give or take {allowed[row, i]:.3g}"
        what = near if plain[row, i] else special[row, i]
        place = row if case.op == "logsumexp" else int(given.places[row, i])
        raise Failure(
            f"{case.op}{given.params}: expected {what} at {place} of the flat result, got {got[row, i].item()!r}",
            ulp=float(off[row, i] / unit[row, i]) if plain[row, i] and finite[row, i] else None,
        )
    return Measured(float(np.max(off / unit, where=plain & finite, initial=0.0)))


def _apart(value: float, whole: Decimal) -> Decimal:
    return abs(Decimal(value) - whole)


_distance = np.frompyfunc(_apart, 2, 1)
