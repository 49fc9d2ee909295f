"""derivatives.duality and derivatives.linearity: products with the Jacobian, which forward and reverse mode compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import Bounds, certified, measured, require_equal, total
from tensorken_conformance.laws.derivatives.scenarios import (
    cases_of,
    choices,
    dyadic,
    needed,
    result_of,
    scenario_of,
    tensors,
)
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

BASIS = 6
"""Up to how many elements the directions are all basis vectors, in a deep run."""


@law("derivatives.duality", cases_of("derivatives.duality", smoke=True), level=3, needs=needed)
def duality(subject: Subject, case: Case) -> Measured:
    """Reverse mode is the transpose of forward mode: <u, J v> = <J^T u, v>, for each operand alone and for all."""
    scenario, rng = scenario_of(case), subject.random(case)
    dtype, values = DTYPES[case.dtype], scenario.draw(rng)
    count = {"smoke": 1, "default": 2, "deep": 8}[subject.depth]
    notes: list[Bounds] = []
    for active in choices(scenario.variables):
        at = [values[i] for i in active]
        pushes = [[dyadic(rng, x.shape) for x in at] for _ in range(count)]
        if subject.depth == "deep" and sum(x.size for x in at) <= BASIS:
            pushes += basis(at)
        shape, kind = result_of(subject, scenario, values, dtype)
        pulls = [dyadic(rng, shape) for _ in range(count)]

        def compute(
            place: RawTensor[Any],
            active: Sequence[int] = active,
            pushes: Sequence[Sequence[Array]] = pushes,
            pulls: Sequence[Array] = pulls,
            kind: DType = kind,
        ) -> list[Tensor]:
            operands = scenario.operands(place, values, dtype)
            f, at = scenario.along(operands, active), [operands[i] for i in active]
            pushed = [tk.jvp(f, at, tensors(place, v, dtype))[1] for v in pushes]
            pull_back = tk.vjp(f, *at)[1]
            pulled = [t for u in pulls for t in pull_back(tensors(place, [u], kind)[0])]
            return [*pushed, *pulled]

        names = ["J v"] * len(pushes) + [f"J^T u by operand {i}" for _ in pulls for i in active]
        bounds, _ = certified(subject, compute, [f"{case.op}: {name}" for name in names])
        pushed, pulled = bounds[: len(pushes)], bounds[len(pushes) :]
        for k, u in enumerate(pulls):
            rows = pulled[k * len(active) : (k + 1) * len(active)]
            for v, column in zip(pushes, pushed, strict=True):
                require_equal("<u, J v>", column.dot(u), "<J^T u, v>", dot(rows, v))
        notes += bounds
    return measured(notes)


@law("derivatives.linearity", cases_of("derivatives.linearity", main=True), level=3, needs=needed)
def linearity(subject: Subject, case: Case) -> Measured:
    """Derivatives are linear in the tangent or cotangent: J(8v - w/2) = 8 J v - J w / 2; those of zeros are zeros."""
    scenario, rng = scenario_of(case), subject.random(case)
    dtype, values = DTYPES[case.dtype], scenario.draw(rng)
    active = scenario.variables
    at = [values[i] for i in active]
    v, w = ([dyadic(rng, x.shape) for x in at] for _ in range(2))
    shape, kind = result_of(subject, scenario, values, dtype)
    u, z = (dyadic(rng, shape) for _ in range(2))
    pushes = [v, w, [8.0 * a - b / 2.0 for a, b in zip(v, w, strict=True)], [0.0 * a for a in v]]
    pulls = [u, z, 8.0 * u - z / 2.0, 0.0 * u]

    def compute(place: RawTensor[Any]) -> list[Tensor]:
        operands = scenario.operands(place, values, dtype)
        f, at = scenario.along(operands, active), [operands[i] for i in active]
        pushed = [tk.jvp(f, at, tensors(place, v, dtype))[1] for v in pushes]
        pull_back = tk.vjp(f, *at)[1]
        return [*pushed, *[t for u in pulls for t in pull_back(tensors(place, [u], kind)[0])]]

    count = len(active)
    names = [f"J {t}" for t in _TERMS] + [f"J^T {t}, operand {i}" for t in _TERMS for i in active]
    bounds, found = certified(subject, compute, [f"{case.op}: {name}" for name in names])
    first, second, combined, zero = range(4)
    for start, step, what in [
        (0, 1, "J"),
        *[(4 + k, count, f"J^T, operand {i}:") for k, i in enumerate(active)],
    ]:
        one, other, both = (bounds[start + step * k] for k in (first, second, combined))
        require_equal(
            f"{what} (8v - w/2)", both, f"8 {what} v - {what} w/2", one.scaled(8.0).plus(other.scaled(-0.5))
        )
        if found[start + step * zero].any():
            raise Failure(f"{case.op}: expected zeros of {what} 0, got {found[start + step * zero].tolist()}")
    return measured(bounds)


_TERMS = ("v", "w", "(8v - w/2)", "0")


def dot(bounds: Sequence[Bounds], weights: Sequence[Array]) -> Bounds:
    """The bounds of the sum over several tensors of their elements times exact weights."""
    ends = [np.stack([b.low * w, b.high * w]) for b, w in zip(bounds, weights, strict=True)]
    low = np.concatenate([e.min(0).ravel() for e in ends])
    high = np.concatenate([e.max(0).ravel() for e in ends])
    return total(low, high)


def basis(at: Sequence[Array]) -> list[list[Array]]:
    """All basis vectors of several operands."""
    found = []
    for i, x in enumerate(at):
        for k in range(x.size):
            direction = [np.zeros(y.shape) for y in at]
            direction[i].reshape(-1)[k] = 1.0
            found.append(direction)
    return found
