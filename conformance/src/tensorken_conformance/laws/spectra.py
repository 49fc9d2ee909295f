"""values.spectra: the functions of tk.fft: lengths, axes, norms, halves of spectra, shifts and frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.transforms import compared
from tensorken_conformance.oracles import exact, terms
from tensorken_conformance.oracles.bounds import Arithmetic, Array, Dyadic
from tensorken_conformance.oracles.spectra import OF_REAL, TO_REAL, Spectrum, spectrum
from tensorken_conformance.subject import Subject, parts_of, put, put_parts
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.tensor.tensor import Tensor

ID = "values.spectra"

NORMS = ("backward", "ortho", "forward")

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
"""The functions of one axis."""

SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")

TWO = ("fft2", "ifft2", "rfft2", "irfft2")

ROUND_TRIPS = {"fft": "ifft", "rfft": "irfft", "ihfft": "hfft", "fftn": "ifftn", "rfftn": "irfftn"}
"""Functions, and those that undo them."""

SHIFTS = ("fftshift", "ifftshift")

FREQUENCIES = ("fftfreq", "rfftfreq")


@dataclass(frozen=True, slots=True)
class Call:
    """How a function is called.

    Attributes:
        shape: of the operand.
        sizes: the lengths as given; None: not given.
        axes: the axes as given; None: not given.
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...] | None = None
    axes: tuple[int, ...] | None = None

    def lengths(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lengths of the transforms, and their axes, which are not negative."""
        rank = len(self.shape)
        if self.axes is not None:
            axes = tuple([axis % rank for axis in self.axes])
        elif name in TWO or name in ONE:
            axes = (rank - 2, rank - 1)[name in ONE :]
        else:
            axes = tuple(range(rank if self.sizes is None else len(self.sizes)))
            axes = tuple([axis + rank - len(axes) for axis in axes])
        if self.sizes is not None:
            return self.sizes, axes
        found = [self.shape[axis] for axis in axes]
        if name in TO_REAL:
            found[-1] = 2 * (found[-1] - 1)
        return tuple(found), axes

    def run(self, name: str, x: Tensor, norm: str) -> Tensor:
        """Call the function."""
        function = getattr(tk.fft, name)  # looked up at each call, as faults replace functions
        if name not in ONE:
            given = {} if self.axes is None else {"axes": self.axes}
            result: Tensor = function(x, self.sizes, norm=norm, **given)
            return result
        n, axis = self.sizes[0] if self.sizes else None, self.axes[0] if self.axes else -1
        result = function(x, n, axis, norm)
        return result


CALLS: dict[str, Call] = {
    "even": Call((3, 6)),
    "odd": Call((3, 7)),
    "one": Call((2, 3), (1,)),
    "odd-result": Call((2, 4), (7,)),
    "first-axis": Call((6, 3), None, (0,)),
    "middle-axis": Call((2, 5, 3), None, (-2,)),
    "padded": Call((2, 5), (12,)),
    "cropped": Call((9, 2), (4,), (0,)),
    "cropped-odd": Call((9, 2), (5,), (0,)),
}
"""The calls of functions of one axis; `odd-result` has an odd length that half a spectrum does not tell."""

CALLS_OF_SEVERAL: dict[str, Call] = {
    "plain": Call((3, 4, 6)),
    "odd": Call((3, 5)),
    "axes": Call((3, 4, 5), None, (2, 0)),
    "sizes": Call((3, 4, 5), (4, 7)),
    "sizes-of-axes": Call((3, 4, 5), (2, 8), (1, 0)),
}
"""The calls of functions of several axes."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each function and call, some with each norm and others with one; in a smoke run two functions."""
    wide = [dtype for dtype in subject.dtypes() if dtype.name in ("float32", "float64")]
    for dtype in subject.sampled(wide):
        if subject.depth == "smoke":
            yield from [Case(ID, name, dtype.name, "odd", "ortho") for name in ("rfft", "hfft")]
            continue
        for name in (*ONE, *SEVERAL, *TWO):
            for number, call in enumerate(CALLS if name in ONE else CALLS_OF_SEVERAL):
                if name not in TWO or call in ("plain", "odd"):
                    some = NORMS if number < 2 or subject.depth == "deep" else NORMS[number % 3 :][:1]
                    yield from [Case(ID, name, dtype.name, call, norm) for norm in some]
        for number, name in enumerate(ROUND_TRIPS):
            yield Case(ID, name, dtype.name, "round-trip", NORMS[number % 3])
        yield from [Case(ID, name, dtype.name, call) for name in SHIFTS for call in CALLS_OF_SEVERAL]
        yield from [Case(ID, name, dtype.name) for name in FREQUENCIES]


@dataclass(frozen=True, slots=True)
class Problem:
    """The parts of the operand of a case, and the exact result."""

    parts: list[Array]
    result: Spectrum


@terms.remembered
def problem(subject: Subject, case: Case) -> Problem:
    """The operand and the exact result of a case."""
    rng, call = terms.generator(subject, case), call_of(case)
    real, imag = rng.standard_normal((2, *call.shape)).astype(case.dtype)
    parts = [real] if case.op in OF_REAL else [real, imag]
    exact_imag = Dyadic.of(np.zeros_like(real) if case.op in OF_REAL else imag)
    result = spectrum(case.op, Dyadic.of(real), exact_imag, *call.lengths(case.op), case.values)
    return Problem(parts, result)


def call_of(case: Case) -> Call:
    """The call of a case."""
    calls = CALLS if case.op in ONE else CALLS_OF_SEVERAL
    return calls["odd" if case.shape == "round-trip" else case.shape]


def by_rows(x: Any, axes: Sequence[int]) -> Any:
    """The array with these axes as one, the last."""
    x = np.moveaxis(x, axes, range(-len(axes), 0))
    return x.reshape((*x.shape[: x.ndim - len(axes)], -1))


@law(ID, cases, level=2)
def check_spectra(subject: Subject, case: Case) -> Measured:
    """The functions of tk.fft return the transforms that numpy.fft defines, within the errors of their steps.

    Operands are cropped, or padded with zeros, to the given lengths along the given axes; norms are those of the
    product of the lengths; each function is undone by its inverse.  Shifts are exact, frequencies within 1 ULP.
    """
    dtype = DTYPES[case.dtype]
    if case.op in SHIFTS:
        _check_shift(subject, case, dtype)
        return Measured()
    if case.op in FREQUENCIES:
        return Measured(_check_frequencies(subject, case, dtype))
    given, call = problem(subject, case), call_of(case)
    x = put_parts(subject.stack, given.parts, dtype)
    y = call.run(case.op, x, case.values)
    sizes, axes = call.lengths(case.op)
    arithmetic = Arithmetic(subject.capabilities, case.dtype)
    name, losses = f"{case.op}, {case.shape}, norm={case.values}", 4 * int(np.prod(sizes))

    def check(name: str, got: list[Array], parts: list[Dyadic], norm: Dyadic, roundings: int) -> float:
        for y, part in zip(got, parts, strict=True):
            if y.shape != part.shape:
                raise Failure(f"{name}: expected shape {part.shape}, got {y.shape}")
        rows = [by_rows(y, axes) for y in got]
        exactly = [part.mapped(lambda z: by_rows(z, axes)) for part in parts]
        norms = norm.mapped(lambda z: by_rows(z, axes))
        return compared(name, arithmetic, rows, exactly, norms, roundings, losses)

    result = given.result
    if case.shape != "round-trip":
        got = [subject.read(part) for part in parts_of(y)]
        if (len(got) == 1) != (case.op in TO_REAL) or y.real.dtype is not dtype:
            raise Failure(f"{name}: expected parts of {dtype}, got {y.dtype}")
        return Measured(check(name, got, result.parts, result.norm, result.roundings))
    back = Call(y.shape, sizes, axes).run(ROUND_TRIPS[case.op], y, case.values)
    parts = [Dyadic.of(part) for part in given.parts]
    squares = [(part * part).sum(axes) for part in (parts * 2)[:2]]  # a half of a spectrum stands for two
    got = [subject.read(part) for part in parts_of(back)]
    return Measured(check(name, got, parts, squares[0] + squares[1], 3 * result.roundings))


def _check_shift(subject: Subject, case: Case, dtype: DType) -> None:
    """fftshift moves the element of frequency 0 to the middle, ifftshift moves it back."""
    call = call_of(case)
    values = np.arange(np.prod(call.shape)).reshape(call.shape).astype(case.dtype)
    axes = range(len(call.shape)) if call.axes is None else [axis % len(call.shape) for axis in call.axes]
    expected = values
    for axis in axes:
        half = call.shape[axis] // 2
        expected = np.roll(expected, half if case.op == "fftshift" else -half, axis)
    got = subject.read(getattr(tk.fft, case.op)(put(subject.stack, values, dtype), call.axes))
    exact.same(got, expected, f"{case.op}, {case.shape}")


def _check_frequencies(subject: Subject, case: Case, dtype: DType) -> float:
    """The frequencies of 1 to 9 elements, in ULP."""
    worst = 0.0
    for n in (1, 2, 3, 4, 8, 9):
        for d in (1.0, 0.3):
            count = n if case.op == "fftfreq" else n // 2 + 1
            whole = np.arange(count)
            whole = np.where(whole > (n - 1) // 2, whole - n, whole) if case.op == "fftfreq" else whole
            expected = (whole / (n * d)).astype(case.dtype)
            with tk.use_backend(subject.stack):
                got = subject.read(getattr(tk.fft, case.op)(n, d, dtype=dtype))
            if got.shape != expected.shape:
                raise Failure(f"{case.op}({n}, {d}): expected shape {expected.shape}, got {got.shape}")
            off = np.abs(got - expected) / np.spacing(np.maximum(np.abs(expected), 1e-3))
            if not (off <= 1).all():
                raise Failure(f"{case.op}({n}, {d}): expected {expected.tolist()}, got {got.tolist()}")
            worst = max(worst, float(off.max()))
    return worst
