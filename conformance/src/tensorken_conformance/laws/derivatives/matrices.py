"""derivatives.forward-is-reverse and derivatives.symmetry: Jacobians and Hessians, whichever modes they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import Bounds, certified, measured, require_equal
from tensorken_conformance.laws.derivatives.scenarios import (
    Scenario,
    cases_of,
    dyadic,
    needed,
    result_of,
    scenario_of,
    tensors,
)
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor


@law("derivatives.forward-is-reverse", cases_of("derivatives.forward-is-reverse"), level=3, needs=needed)
def forward_is_reverse(subject: Subject, case: Case) -> Measured:
    """The Jacobian by forward mode and that by reverse mode are one, wherever local derivatives are finite."""
    scenario, rng = scenario_of(case), subject.random(case)
    dtype, values = DTYPES[case.dtype], scenario.draw(rng)
    places = scenario.variables

    def compute(place: RawTensor[Any]) -> list[Tensor]:
        operands = scenario.operands(place, values, dtype)
        f, at = scenario.along(operands, places), [operands[i] for i in places]
        every = tuple(range(len(places)))
        return [*tk.jacfwd(f, every)(*at), *tk.jacrev(f, every)(*at)]

    names = [f"{case.op}: {way} by operand {i}" for way in ("jacfwd", "jacrev") for i in places]
    bounds, _ = certified(subject, compute, names)
    for i, forward, reverse in zip(places, bounds, bounds[len(places) :], strict=False):
        require_equal(f"jacfwd by operand {i}", forward, "jacrev", reverse)
    return measured(bounds)


COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "forward over reverse": lambda f: tk.jacfwd(tk.jacrev(f)),
    "reverse over forward": lambda f: tk.jacrev(tk.jacfwd(f)),
    "forward over forward": lambda f: tk.jacfwd(tk.jacfwd(f)),
    "reverse over reverse": lambda f: tk.jacrev(tk.jacrev(f)),
}
"""The ways to a Hessian."""


@law("derivatives.symmetry", cases_of("derivatives.symmetry", main=True), level=3, needs=needed)
def symmetry(subject: Subject, case: Case) -> Measured:
    """The Hessians of a weighted sum of the results, by all four compositions of the modes, agree and are symmetric.

    Of ops on matrices, whose bounds are dear, two compositions are taken, but in a deep run.
    """
    scenario, rng = scenario_of(case), subject.random(case)
    dtype, values = DTYPES[case.dtype], scenario.draw(rng)
    chosen = (
        [*COMPOSITIONS]
        if scenario.enclosed or subject.depth == "deep"
        else ["forward over reverse", "reverse over reverse"]
    )
    weights = dyadic(rng, result_of(subject, scenario, values, dtype)[0])

    def compute(place: RawTensor[Any]) -> list[Tensor]:
        f, z = joined(scenario, place, values, weights, dtype)
        return [COMPOSITIONS[way](f)(z) for way in chosen]

    bounds, _ = certified(subject, compute, [f"{case.op}: {way}" for way in chosen])
    (first, expected), *rest = zip(chosen, bounds, strict=True)
    for way, found in rest:
        require_equal(f"the Hessian {first}", expected, f"that {way}", found)
    for way, found in zip(chosen, bounds, strict=True):
        require_equal(f"the Hessian {way}", found, "its transpose", Bounds(found.low.T, found.high.T))
    return measured(bounds)


def joined(
    scenario: Scenario, place: RawTensor[Any], values: list[Array], weights: Array, dtype: Any
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The weighted sum of the results as a function of one vector, in which all variables lie end to end."""
    operands = scenario.operands(place, values, dtype)
    (scales,) = tensors(place, [weights], dtype)
    f = scenario.along(operands, scenario.variables)
    shapes = [operands[i].shape for i in scenario.variables]

    def weighted(z: Tensor) -> Tensor:
        parts, start = [], 0
        for shape in shapes:
            size = int(np.prod(shape, dtype=int))
            parts.append(z[start : start + size].reshape(shape))
            start += size
        return (f(*parts) * scales).sum()

    flat = np.concatenate([values[i].reshape(-1) for i in scenario.variables])
    return weighted, tensors(place, [flat], dtype)[0]
