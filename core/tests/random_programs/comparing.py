"""Comparison of two results of a program, with a tolerance.

Exact results must be equal.  Rounded results must be within a few units in the last place.  If not, the steps run
again with results (or operands) moved by such units; the differences that this makes give the tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.random_programs.design import by_design
from core.tests.random_programs.numbers import (
    Array,
    epsilon,
    inexact,
    is_python,
    joined,
    largest,
    magnitudes,
    parts,
    smallest_normal,
)
from core.tests.random_programs.program import Program, Step

UNITS = 8
"""The error of a step, in units in the last place, that is always tolerated."""

MOVED = 6
"""How often steps run again with moved operands."""

SPREAD = 24.0
"""The tolerance, as a multiple of the difference between results for operands that are moved by two units."""

COMPOSED = ("linalg", "lambda")
"""Texts in steps of many ops, whose errors are relative to their largest intermediate result, which is 1 or more."""


@dataclass(frozen=True)
class Disagreement:
    """Different results of two ways to run a program.

    Attributes:
        way: the way with the unexpected result.
        step: the step with the difference; None for a derivative.
        says: the expected and the actual result.
    """

    way: str
    step: Step | None
    says: str

    def __str__(self) -> str:
        return f"{self.way}: {self.step.row if self.step else ''}: {self.says}"


# ---- comparing -------------------------------------------------------------------------------------------------


def differs(found: Array, wanted: Array, exact: bool, signs: bool = False) -> Array:
    """Where two arrays differ by more than a few units, or, if exact, at all, also in the signs of zeros.

    The units of both parts of a complex number are those of its absolute value.
    """
    if not inexact(wanted):
        return np.asarray(found != wanted)
    eps, most = epsilon(wanted), largest(wanted)
    result = np.zeros(wanted.shape, bool)
    with np.errstate(all="ignore"):
        allowed = UNITS * eps * (magnitudes(wanted) + smallest_normal(wanted))
        for a, b in zip(parts(found), parts(wanted), strict=True):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            if signs:
                same &= (a != 0) | (np.signbit(a) == np.signbit(b))
            if not exact:
                same |= np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)
                if most < np.finfo("float64").max:  # the largest number and infinity are neighbours
                    same |= (
                        (np.sign(a) == np.sign(b))
                        & (np.maximum(np.abs(a), np.abs(b)) == np.inf)
                        & (np.minimum(np.abs(a), np.abs(b)) >= most * (1 - UNITS * eps))
                    )
            result |= ~same
    return result


def tolerance(wanted: Array, others: list[Array]) -> Array:
    """The tolerance of a result, from the results for moved operands; inf where any result is possible."""
    if not inexact(wanted):
        changed = np.any([other != wanted for other in others], axis=0)
        return np.asarray(np.where(changed, np.inf, 0.0))
    with np.errstate(all="ignore"):
        spread = np.zeros(wanted.shape)
        for other in others:
            for o, w in zip(parts(other), parts(wanted), strict=True):
                same = (o == w) | (np.isnan(o) & np.isnan(w))
                step = np.where(np.isfinite(o) & np.isfinite(w), np.abs(o - w), np.inf)
                spread = np.maximum(spread, np.where(same, 0.0, step))
        return np.asarray(SPREAD * spread)


def perturbed(x: Any, rng: random.Random, by: float = 2.0, of_largest: bool = False) -> Any:
    """Numbers moved by up to `by` units in the last place, of the number itself or of the largest.

    Integers and Python numbers, which are exact, stay.
    """
    if is_python(x) or not inexact(x):
        return x
    eps = epsilon(x)
    found = []
    with np.errstate(all="ignore"):
        size = magnitudes(x)
        size = size[np.isfinite(size)].max(initial=0.0) if of_largest else size
        for part in parts(x):
            moves = np.array([eps * by * rng.choice((-1.0, -0.5, 0.5, 1.0)) for _ in range(x.size)])
            found.append(part + size * moves.reshape(x.shape))
        y = joined(tuple(found), x)
        return np.where(np.isfinite(y) | ~np.isfinite(x), y, x)


def describe(found: Array, wanted: Array, wrong: Array) -> str:
    """Where two results differ, in one line."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    at = f" at {list(place)}" if place else ""
    return f"expected {wanted[place]}, got {found[place]}{at}, {wanted.dtype}{list(wanted.shape)}"


def type_mismatch(found: Any, wanted: Array) -> str | None:
    """The error in the shape or dtype of a result; None if there is none."""
    if tuple(found.shape) != wanted.shape or str(found.dtype) != str(wanted.dtype):
        return f"expected {wanted.dtype}{list(wanted.shape)}, got {found.dtype}{list(found.shape)}"
    return None


def exceeds(found: Array, wanted: Array, allowed: Array) -> Array:
    """Where results differ by more than the tolerance."""
    if not inexact(wanted):
        return np.asarray(allowed == 0)
    with np.errstate(all="ignore"):
        far = np.zeros(wanted.shape, bool)
        for a, b in zip(parts(found), parts(wanted), strict=True):
            far |= ~((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)))
    return np.asarray(far & (allowed != np.inf))


def step_tolerance(step: Step, operands: Mapping[str, Array], place: int) -> Array:
    """The tolerance of a result of one step."""
    rng = random.Random(step.text)
    wanted = numpy_of(step(tk, tensors(operands))[place])
    others = [
        numpy_of(step(tk, tensors({k: perturbed(x, rng) for k, x in operands.items()}))[place])
        for _ in range(MOVED)
    ]
    return tolerance(wanted, others) + composition_tolerance(step, wanted)


def composition_tolerance(step: Step, wanted: Array) -> float:
    """The additional tolerance of a step of many ops, whose intermediate results are rounded."""
    if not inexact(wanted) or not wanted.size or not any(mark in step.text for mark in COMPOSED):
        return 0.0
    size = magnitudes(wanted)
    return SPREAD * epsilon(wanted) * max(1.0, float(size[np.isfinite(size)].max(initial=0.0)))


def numpy_of(x: Any) -> Any:
    """A value as a numpy array; a Python number as it is."""
    return x if is_python(x) else np.asarray(x)


def tensors(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as tensors; Python numbers as they are."""
    return {name: x if is_python(x) else tk.tensor(x) for name, x in values.items()}


# ---- whole programs ----------------------------------------------------------------------------------------------


def evaluated(program: Program, leaves: Mapping[str, Array]) -> dict[str, Any]:
    """All values, eagerly on numpy."""
    return program.run(tk, tensors(leaves))


def program_tolerances(
    program: Program, leaves: Mapping[str, Array], ends: tuple[str, ...]
) -> dict[str, Array]:
    """The tolerances of the results of a program, from runs in which operands and rounded results are moved."""
    rng = random.Random(len(program.steps))
    runs: list[dict[str, Array]] = []
    base = {name: numpy_of(x) for name, x in evaluated(program, leaves).items()}
    for _ in range(MOVED):
        found: dict[str, Any] = tensors(leaves)
        for step in program.steps:
            if step.exact:
                found.update(zip(step.names, step(tk, found), strict=True))
                continue
            operands = tensors({name: perturbed(numpy_of(found[name]), rng) for name in step.operands})
            of_largest = "linalg." in step.text  # the error of a factorization is that of the whole matrix
            for name, x in zip(step.names, step(tk, operands), strict=True):
                found[name] = tk.tensor(perturbed(numpy_of(x), rng, of_largest=of_largest))
        runs.append({name: numpy_of(found[name]) for name in ends})
    makers = {name: step for step in program.steps for name in step.names}
    return {
        name: tolerance(base[name], [run[name] for run in runs])
        + composition_tolerance(makers[name], base[name])
        for name in ends
    }


def compared(
    way: str,
    program: Program,
    ends: tuple[str, ...],
    found: list[Any],
    wanted: list[Array],
    allowed: Callable[[], dict[str, Array]],
    examples: list[Mapping[str, Array]],
) -> Iterator[Disagreement]:
    """Compare the final results of a program with those of eager evaluation."""
    makers = {name: step for step in program.steps for name in step.names}
    for name, f, w in zip(ends, found, wanted, strict=True):
        if wrong := type_mismatch(f, w):
            yield Disagreement(way, makers[name], wrong)
            continue
        f = numpy_of(f)
        exact = all(step.exact for step in program.needed([makers[name]]).steps)
        off = differs(f, w, exact or program.whole, signs=exact and not program.whole)
        if off.any() and not (exact or program.whole):
            off &= exceeds(f, w, allowed()[name])
        if off.any():
            for leaves in examples:
                values = {key: numpy_of(x) for key, x in evaluated(program, leaves).items()}
                for step in program.needed([makers[name]]).steps:
                    operands = {key: values[key] for key in step.operands}
                    off &= ~by_design(step, operands, f, w)
        if off.any():
            yield Disagreement(way, makers[name], describe(f, w, off))
