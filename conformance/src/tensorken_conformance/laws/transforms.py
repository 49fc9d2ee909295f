"""values.transforms: the ops fft, rfft and irfft, within the error of a fast transform."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.layouts import chains
from tensorken_conformance.numbers.rounding import FORMATS
from tensorken_conformance.oracles import terms, transforms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic, gamma
from tensorken_conformance.subject import Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS

ID = "values.transforms"

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 30, 31, 64, 67, 97, 100, 128, 134)
"""Powers of 2, products of small primes, primes, and twice a large prime."""

DEEP_LENGTHS = (11, 13, 15, 24, 27, 32, 49, 60, 61, 63, 65, 120, 127, 129, 200, 256, 257)

LONG = (1031, 4096, 4099)
"""The lengths that are tried with pulses alone, whose transforms have few terms: two primes and a power of two."""

FEW = (4, 7, 12)
"""The lengths that are tried with all values, and as views."""

VIEWS = ("permute", "flip", "crop", "expand")

VALUES = tuple("normals small-integers mixed waves pulses large subnormals zeros infinite nan".split())
"""Value classes; the transforms of waves are pulses; the squares of large ones overflow, and their sums do not."""

ROWS = 3


def cases(subject: Subject) -> Iterator[Case]:
    """Each op, dtype and length, for fft in both directions; each value class, and each view, for a few lengths."""
    lengths = LENGTHS + DEEP_LENGTHS if subject.depth == "deep" else LENGTHS
    some = lengths if subject.depth == "deep" else FEW
    for op in ("fft", "rfft", "irfft"):
        for dtype in subject.sampled([d for d in subject.dtypes() if d.name in ("float32", "float64")]):
            if subject.depth == "smoke":
                yield Case(ID, op, dtype.name, "6", "normals")
                continue
            yield from [Case(ID, op, dtype.name, str(n), "normals") for n in lengths]
            if op == "fft":
                yield from [Case(ID, op, dtype.name, str(n), "normals", "inverse") for n in lengths]
            yield from [Case(ID, op, dtype.name, str(n), values) for n in some for values in VALUES[1:]]
            yield from [Case(ID, op, dtype.name, str(n), "pulses") for n in LONG]
            yield from [Case(ID, op, dtype.name, f"{n}-{view}", "normals") for n in FEW for view in VIEWS]
            yield Case(ID, op, dtype.name, "4-empty", "normals")


def movement_of(case: Case) -> str:
    """The movement that makes the operands."""
    view = case.shape.partition("-")[2]
    return view if view in VIEWS else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """The operands of a case, the parts of the exact result, and the exact norm of each row.

    Attributes:
        operands: one or two arrays of the same shape.
        params: the params of the op.
        results: the exact parts; one for irfft.
        norm: the square of the norm of the whole transform.
        regular: which rows of the operands are finite.
    """

    operands: list[Array]
    params: tuple[Any, ...]
    results: list[Dyadic]
    norm: Dyadic
    regular: Array


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operands and the exact results of a case."""
    rng, n = terms.generator(subject, case), int(case.shape.partition("-")[0])
    count = n // 2 + 1 if case.op == "irfft" else n
    shape = (0 if case.shape.endswith("-empty") else ROWS, count)
    chain = chains.single(movement_of(case), shape)
    parts = [
        chains.fitted(chain, elements(rng, case.values, shape, case.dtype, n))
        for _ in range(1 if case.op == "rfft" else 2)
    ]
    if case.op == "irfft" and case.values == "nan":
        parts[1][0, 0] = np.nan  # which is ignored
    known = [parts[0], transforms.without_ends(parts[1], n)] if case.op == "irfft" else parts
    regular = np.all([np.isfinite(x).all(-1, keepdims=True) for x in known], 0)
    real, imag = [Dyadic.of(np.where(regular, x, 0)) for x in (known * 2)[:2]]
    if case.op == "rfft":
        imag = Dyadic(imag.integers * 0, 0)
    inverse = case.op == "irfft" or case.detail == "inverse"
    if case.op == "irfft":
        real, imag = transforms.hermitian(real, imag, n)
    found = transforms.transform(real, imag, inverse)
    norm = transforms.squares(real, imag) * Dyadic.number(n)
    some = slice(0, n // 2 + 1 if case.op == "rfft" else n)
    results = [part[..., some] for part in found[: 1 if case.op == "irfft" else 2]]
    params: dict[str, tuple[Any, ...]] = {"fft": (inverse,), "rfft": (), "irfft": (n,)}
    return Problem(parts, params[case.op], results, norm, regular)


def elements(rng: np.random.Generator, values: str, shape: tuple[int, ...], dtype: str, size: int) -> Array:
    """Operands of a value class for transforms of a size; the first row is always finite."""
    form, n = FORMATS[dtype], shape[-1]
    if values == "waves":
        rates, phases = rng.integers(0, n, (shape[0], 1)), rng.uniform(0, 6, (shape[0], 1))
        found = np.cos(rates * np.arange(n) * 2 * np.pi / n + phases)
    elif values == "pulses":
        found = np.zeros(shape)
        found[np.arange(shape[0]), rng.integers(0, n, shape[0])] = rng.standard_normal(shape[0])
    elif values == "large":
        # a convolution has larger intermediate results
        room = 64 * size**2 if transforms.is_convolution(size) else 4 * size
        found = rng.uniform(-1, 1, shape) * (float(form.largest) / room)
    else:
        found = terms.drawn(rng, values, shape, dtype, n)
        if values in ("infinite", "nan"):
            found[0] = rng.standard_normal(n)
    return np.asarray(found, dtype)


def needs(case: Case) -> tuple[str, ...]:
    """The cases of the movement that makes the operands."""
    return chains.needs(case.dtype, filter(None, [movement_of(case)]))


@law(ID, cases, level=2, needs=needs)
def check_transforms(subject: Subject, case: Case) -> Measured:
    """fft, rfft and irfft are off by no more than a fast transform, in the norm of each row.

    The error of a row is at most gamma of a few roundings for each stage, times the norm of its whole transform
    (Higham, theorem 24.2).  irfft ignores imaginary parts of numbers that are their own mirror images.  Each result
    of a row with an infinity or NaN has a part that is infinite or NaN, or some result of irfft; other rows are right.
    """
    given, dtype = problem(subject, case), DTYPES[case.dtype]
    chain = chains.single(movement_of(case), given.operands[0].shape)
    operands = [chains.lying(subject.call_counter, chain, x, dtype) for x in given.operands]
    got = [subject.read(y) for y in subject.together(subject.results(OPS[case.op], operands, given.params))]
    lost = any([subnormal_flushed(subject, case.dtype, x) for x in given.operands])
    if not given.regular.all():
        finite = np.all([np.isfinite(y) for y in got], 0)
        if case.op == "irfft":  # an element may be finite if its weight for the infinity is 0
            finite = finite.all(-1, keepdims=True)
        wrong = finite & ~given.regular
        if wrong.any():
            index = tuple(map(int, np.argwhere(wrong)[0]))
            raise Failure(f"{case.op}: expected an infinity or NaN{terms.at(index)}, got {got[0][index]!r}")
    return Measured(within(subject, case, got, given, lost))


def _worst(got: list[Array], exact: list[Dyadic], row: tuple[int, ...]) -> str:
    """The element of a row whose error is the largest, for messages."""

    def parts(k: int) -> tuple[list[float], list[Fraction]]:
        place = (*row, k)
        return [float(y[place]) for y in got], [part.fraction(place) for part in exact]

    def error(k: int) -> Fraction:
        return sum([(Fraction(a) - b) ** 2 for a, b in zip(*parts(k), strict=True)], Fraction(0))

    k = max(range(got[0].shape[-1]), key=error)
    found, expected = parts(k)
    wanted, got_number = _number(map(terms.shown, expected)), _number(map(repr, found))
    return f"at {[*row, k]} expected about {wanted}, got {got_number}"


def _number(parts: Iterable[str]) -> str:
    real, *imag = parts
    return f"({real}{'' if imag[0].startswith('-') else '+'}{imag[0]}j)" if imag else real


def subnormal_flushed(subject: Subject, dtype: str, x: Array) -> bool:
    """Whether an operand has subnormal numbers, which the backend may take for zeros."""
    small = (x != 0) & (np.abs(x) < float(FORMATS[dtype].normal))
    return bool(small.any()) and Arithmetic(subject.capabilities, dtype).flushes


def within(subject: Subject, case: Case, got: list[Array], given: Problem, lost: bool) -> float:
    """The largest error of a row in units of its norm, after checking that it is within the bound."""
    n = int(case.shape.partition("-")[0])
    return compared(
        f"{case.op}{given.params}",
        Arithmetic(subject.capabilities, case.dtype),
        [np.where(given.regular, y, 0) for y in got],
        given.results,
        given.norm,
        transforms.roundings(n),
        n * (4 if lost else 1),
    )


def compared(
    name: str,
    arithmetic: Arithmetic,
    got: list[Array],
    exact: list[Dyadic],
    norm: Dyadic,
    roundings: int,
    losses: int,
) -> float:
    """The largest error of a row, in units in the last place of its norm.

    Args:
        name: of the function, for messages.
        arithmetic: the errors of the backend.
        got: the results, one array for each part.
        exact: the exact ones.
        norm: the squares of the norms of the rows, of which the last axis has size 1.
        roundings: the number of roundings that bounds the relative error.
        losses: the number of underflows that bounds the absolute error of each element.

    Raises:
        Failure: if a row is off by more.
    """
    for y, part in zip(got, exact, strict=True):
        if y.shape != part.shape:
            raise Failure(f"{name}: expected shape {part.shape}, got {y.shape}")
        if not np.isfinite(y).all():
            index = tuple(map(int, np.argwhere(~np.isfinite(y))[0]))
            expected = terms.shown(part.fraction(index))
            raise Failure(f"{name}{terms.at(index)}: expected about {expected}, got {y[index].item()!r}")
    if not got[0].size:
        return 0.0
    errors = transforms.squares(*[Dyadic.of(y) - part for y, part in zip(got, exact, strict=True)])
    share = gamma(roundings, arithmetic.unit)
    count = sum(y.shape[-1] for y in got)
    lost = Dyadic.number(Fraction(losses**2 * count) * (2 * arithmetic.loss) ** 2)
    # at least (share * root(norm) + root(lost))**2
    most = norm.times(share**2 * Fraction(65, 64)) + lost.times(65)
    wrong = errors.exceeds(most)
    off = np.sqrt(errors.over(norm)) / float(2 * arithmetic.format.unit)
    if wrong.any():
        index = tuple(map(int, np.argwhere(wrong)[0]))
        raise Failure(
            f"{name}: row {list(index[:-1])} is off by {off[index]:.3g} units of its norm, "
            f"at most {float(share / (2 * arithmetic.format.unit)):.3g} are allowed; {_worst(got, exact, index[:-1])}",
            ulp=float(off[index]),
        )
    least = arithmetic.format.normal / arithmetic.format.unit  # below, the errors of underflow would dominate
    normal = norm.exceeds(Dyadic.number(least**2))
    return float(np.max(off, where=normal, initial=0.0))
