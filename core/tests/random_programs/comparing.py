"""Comparing: how far apart two results of one program may be.

What rounds nothing is equal.  What rounds is within a few units in the last place; where it is not, the steps run
again with their results (or operands) moved by such units, which tells how far apart two right results may be.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.random_programs.design import by_design
from core.tests.random_programs.program import Array, Program, Step

UNITS = 8
"""How many units in the last place a step may be off, without any further question."""

MOVED = 6
"""How often steps run again with operands that are moved."""

SPREAD = 24.0
"""How many times farther apart results may be than those with operands that are moved by two units."""

COMPOSED = ("linalg", "lambda")
"""What stands in steps of many ops, whose errors are relative to their largest intermediate results, 1 or more."""


@dataclass(frozen=True)
class Disagreement:
    """Two ways to run a program that do not give the same.

    Attributes:
        way: which gave what is not as expected.
        step: where.
        says: what was expected, and what came.
    """

    way: str
    step: Step | None
    says: str

    def __str__(self) -> str:
        return f"{self.way}: {self.step.row if self.step else ''}: {self.says}"


# ---- comparing -------------------------------------------------------------------------------------------------


def apart(found: Array, wanted: Array, exact: bool, signs: bool = False) -> Array:
    """Where two arrays of one shape and dtype differ by more than a few units; or in the signs of zeros, if asked."""
    if wanted.dtype.kind != "f":
        return np.asarray(found != wanted)
    info = np.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        if signs:
            same &= (found != 0) | (np.signbit(found) == np.signbit(wanted))
        if not exact:
            a, b = found.astype("float64"), wanted.astype("float64")
            room = UNITS * (float(info.eps) * np.abs(b) + float(info.smallest_subnormal))
            same |= np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= room)
            if info.dtype.name != "float64":  # the largest number and infinity are neighbours
                same |= (
                    (np.sign(a) == np.sign(b))
                    & (np.maximum(np.abs(a), np.abs(b)) == np.inf)
                    & (np.minimum(np.abs(a), np.abs(b)) >= float(info.max) * (1 - UNITS * float(info.eps)))
                )
    return np.asarray(~same)


def room(wanted: Array, others: list[Array]) -> Array:
    """How far apart right results may be, from the results of operands that are moved; inf where anything may be."""
    if wanted.dtype.kind != "f":
        return np.asarray(np.any([other != wanted for other in others], axis=0) * np.inf)
    with np.errstate(all="ignore"):
        w = wanted.astype("float64")
        spread = np.zeros(wanted.shape)
        for other in others:
            o = other.astype("float64")
            same = (o == w) | (np.isnan(o) & np.isnan(w))
            step = np.where(np.isfinite(o) & np.isfinite(w), np.abs(o - w), np.inf)
            spread = np.maximum(spread, np.where(same, 0.0, step))
        return np.asarray(SPREAD * spread)


def moved(x: Array, rng: random.Random, by: float = 2.0) -> Array:
    """Numbers moved by up to that many units in their last places."""
    if x.dtype.kind != "f":
        return x
    eps = float(np.finfo(x.dtype).eps)
    factors = np.array([1.0 + eps * by * rng.choice((-1.0, -0.5, 0.5, 1.0)) for _ in range(x.size)])
    with np.errstate(all="ignore"):
        y: Array = (x.astype("float64") * factors.reshape(x.shape)).astype(x.dtype)
        return np.where(np.isfinite(y) | ~np.isfinite(x), y, x)


def described(found: Array, wanted: Array, wrong: Array) -> str:
    """Where two results differ, in one line."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    at = f" at {list(place)}" if place else ""
    return f"expected {wanted[place]}, got {found[place]}{at}, {wanted.dtype}{list(wanted.shape)}"


def of_kind(found: Any, wanted: Array) -> str | None:
    """What is wrong with a shape or a dtype."""
    if tuple(found.shape) != wanted.shape or str(found.dtype) != str(wanted.dtype):
        return f"expected {wanted.dtype}{list(wanted.shape)}, got {found.dtype}{list(found.shape)}"
    return None


def beyond(found: Array, wanted: Array, allowed: Array) -> Array:
    """Where results are farther apart than allowed."""
    with np.errstate(all="ignore"):
        if wanted.dtype.kind != "f":
            return np.asarray(allowed == 0)
        far = ~(np.abs(found.astype("float64") - wanted.astype("float64")) <= allowed)
    return np.asarray(far & (allowed != np.inf))


def room_of_step(step: Step, operands: Mapping[str, Array], place: int) -> Array:
    """How far apart results of one step may be."""
    rng = random.Random(step.text)
    wanted = numpy_of(step(tk, tensors(operands))[place])
    others = [
        numpy_of(step(tk, tensors({k: moved(x, rng) for k, x in operands.items()}))[place])
        for _ in range(MOVED)
    ]
    return room(wanted, others) + composed(step, wanted)


def composed(step: Step, wanted: Array) -> float:
    """How far results of a step of many ops may be off, since its intermediate results are rounded."""
    if wanted.dtype.kind != "f" or not wanted.size or not any(mark in step.text for mark in COMPOSED):
        return 0.0
    with np.errstate(all="ignore"):
        finite = np.abs(np.where(np.isfinite(wanted), wanted, 0.0).astype("float64"))
    return SPREAD * float(np.finfo(wanted.dtype).eps) * max(1.0, float(finite.max()))


def numpy_of(x: Any) -> Array:
    """A value as a numpy array."""
    return np.asarray(x)


def tensors(values: Mapping[str, Array]) -> dict[str, Any]:
    """Arrays as tensors."""
    return {name: tk.tensor(x) for name, x in values.items()}


# ---- whole programs ----------------------------------------------------------------------------------------------


def evaluated(program: Program, leaves: Mapping[str, Array]) -> dict[str, Any]:
    """All values, eagerly on numpy."""
    return program.run(tk, tensors(leaves))


def room_of_program(program: Program, leaves: Mapping[str, Array], ends: tuple[str, ...]) -> dict[str, Array]:
    """How far apart right results of a program may be: operands and results of each step that rounds are moved."""
    rng = random.Random(len(program.steps))
    runs: list[dict[str, Array]] = []
    base = {name: numpy_of(x) for name, x in evaluated(program, leaves).items()}
    for _ in range(MOVED):
        found: dict[str, Any] = tensors(leaves)
        for step in program.steps:
            if step.exact:
                found.update(zip(step.names, step(tk, found), strict=True))
                continue
            operands = {name: tk.tensor(moved(numpy_of(found[name]), rng)) for name in step.operands}
            for name, x in zip(step.names, step(tk, operands), strict=True):
                found[name] = tk.tensor(moved(numpy_of(x), rng))
        runs.append({name: numpy_of(found[name]) for name in ends})
    makers = {name: step for step in program.steps for name in step.names}
    return {
        name: room(base[name], [run[name] for run in runs]) + composed(makers[name], base[name])
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
    """Ends of a whole program against what eager evaluation gave."""
    makers = {name: step for step in program.steps for name in step.names}
    for name, f, w in zip(ends, found, wanted, strict=True):
        if wrong := of_kind(f, w):
            yield Disagreement(way, makers[name], wrong)
            continue
        f = numpy_of(f)
        exact = all(step.exact for step in program.needed([makers[name]]).steps)
        off = apart(f, w, exact or program.whole, signs=exact and not program.whole)
        if off.any() and not (exact or program.whole):
            off &= beyond(f, w, allowed()[name])
        if off.any():
            for leaves in examples:
                values = {key: numpy_of(x) for key, x in evaluated(program, leaves).items()}
                for step in program.needed([makers[name]]).steps:
                    operands = {key: values[key] for key in step.operands}
                    off &= ~by_design(step, operands, f, w)
        if off.any():
            yield Disagreement(way, makers[name], described(f, w, off))
