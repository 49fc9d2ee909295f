"""derivatives.consistency: forward and reverse mode agree, are linear, and give symmetric second derivatives."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import Bounds, certified, measured, require_equal, total
from tensorken_conformance.laws.derivatives.scenarios import (
    SMOKE,
    Point,
    cases_of,
    choices,
    dyadic,
    point_of,
    scenario_of,
)
from tensorken_conformance.oracles import exact
from tensorken_conformance.subject import Array, Depth, Subject, require_facts
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

PAIRS: dict[Depth, int] = {"smoke": 1, "default": 1, "deep": 8}
"""The number of tangents and of cotangents."""

BASIS = 6
"""The most elements for which a deep run uses all basis vectors as tangents, too."""


@law("derivatives.consistency", cases_of("derivatives.consistency", smoke=True), level=3)
def consistency(subject: Subject, case: Case) -> Measured:
    """Reverse mode is the transpose of forward mode, both are linear and keep values, and Hessians are symmetric.

    <u, J v> = <J^T u, v>, for each operand alone and for all; jacfwd and jacrev are equal.  Tangents and cotangents
    have the shapes and dtypes of results and operands.  Neither mode, no two of them nested and no vmap over one
    example change a bit of the value.  For one scenario of each op, J(8v - w/2) = 8 J v - J w / 2, the
    derivative along zeros is zero, and the Hessians of a weighted sum agree in all four compositions of the modes.
    """
    scenario, rng = scenario_of(case), subject.random(case)
    point = point_of(subject, scenario, scenario.draw(rng), DTYPES[case.dtype])
    smoke = subject.depth == "smoke"
    thorough = scenario.name == SMOKE if smoke else scenario.main or subject.depth == "deep"
    found: list[Bounds] = []
    for active in choices(scenario.variables)[-1 if smoke else 0 :]:
        linear = thorough and active == scenario.variables
        found += _products(subject, case.op, point, active, linear, rng)
    if thorough or not smoke:
        _require_same_bits(subject, case.op, point)
        found += _jacobians(subject, case.op, point)
    if thorough:
        found += _hessians(subject, case.op, point, dyadic(rng, point.shape))
    return measured(found)


def _products(
    subject: Subject, op: str, point: Point, active: Sequence[int], linear: bool, rng: random.Random
) -> list[Bounds]:
    """Check the duality of J v and J^T u and, if `linear`, that both are linear."""
    at = [point.values[i] for i in active]
    count = max(PAIRS[subject.depth], 2 * linear)
    pushes = [[dyadic(rng, x.shape) for x in at] for _ in range(count)]
    pulls = [dyadic(rng, point.shape) for _ in range(count)]
    combined = [8.0 * a - b / 2.0 for a, b in zip(*pushes[:2], strict=True)] if linear else []
    if subject.depth == "deep" and sum(x.size for x in at) <= BASIS:
        pushes += basis(at)
    pairs = len(pushes)
    if linear:
        pushes += [combined, [0.0 * a for a in combined]]
        pulls += [8.0 * pulls[0] - pulls[1] / 2.0, 0.0 * pulls[0]]

    def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
        f, at = point.scenario.at(point.operands(interpreter), active)
        y, pull_back = tk.vjp(f, *at)
        pushed = [tk.jvp(f, at, point.tangents(interpreter, v)) for v in pushes]
        pulled = [pull_back(point.cotangent(interpreter, u)) for u in pulls]
        if interpreter is subject.stack:
            for parts in pushed:
                require_facts(f"{op}: result under jvp", parts[0], y.shape, y.dtype)
                require_facts(f"{op}: tangent", parts[1], y.shape, y.dtype)
            for i, x, t in zip(active, at, pulled[0], strict=True):
                require_facts(f"{op}: cotangent of operand {i}", t, x.shape, x.dtype)
        return [*[tangent for _, tangent in pushed], *[t for parts in pulled for t in parts]]

    names = [f"{op}: J v"] * len(pushes) + [f"{op}: J^T u by operand {i}" for _ in pulls for i in active]
    bounds, values = certified(subject, compute, names)
    columns, rest = bounds[: len(pushes)], bounds[len(pushes) :]
    rows = [rest[k : k + len(active)] for k in range(0, len(rest), len(active))]
    for u, row in zip(pulls[:count], rows, strict=False):
        for v, column in zip(pushes[:pairs], columns, strict=False):
            require_equal("<u, J v>", column.dot(u), "<J^T u, v>", dot(row, v))
    if linear:
        _require_linear("J", [*columns[:2], *columns[-2:]], values[len(pushes) - 1])
        for k, i in enumerate(active):
            parts = [rows[j][k] for j in (0, 1, -2, -1)]
            _require_linear(f"J^T by operand {i}:", parts, values[len(values) - len(active) + k])
    return bounds


def _require_linear(what: str, parts: Sequence[Bounds], zero: Array) -> None:
    """Require a derivative to be linear, from its values at v, w, 8v - w/2 and 0; the last must be exactly 0."""
    one, other, both, _ = parts
    require_equal(
        f"{what} (8v - w/2)", both, f"8 {what} v - {what} w/2", one.scaled(8.0).plus(other.scaled(-0.5))
    )
    if zero.any():
        raise Failure(f"expected zeros of {what} 0, got {zero.tolist()}")


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


KEEPING: dict[str, Callable[[Any, Any], Any]] = {
    "jvp": lambda f, v: lambda *at: tk.jvp(f, at, v)[0],
    "vjp": lambda f, v: lambda *at: tk.vjp(f, *at)[0],
}
"""The value of a function under each mode."""


def _require_same_bits(subject: Subject, op: str, point: Point) -> None:
    """Require each mode, two nested, and vmap over one example to keep all bits of the value."""
    f, at = point.scenario.at(point.operands(subject.stack))

    def mapped(*at: Tensor) -> Tensor:
        y: Tensor = tk.vmap(f)(*[x.reshape((1, *x.shape)) for x in at])
        return y.reshape(y.shape[1:])

    expected = subject.read(f(*at))
    ways = {"vmap": mapped} | {mode: keep(f, at) for mode, keep in KEEPING.items()}
    for inner, outer in itertools.product(KEEPING, KEEPING):
        ways[f"{outer} of {inner}"] = KEEPING[outer](ways[inner], at)
    for way, value in ways.items():
        exact.same(subject.read(value(*at)), expected, f"{op}: value under {way}")


def _jacobians(subject: Subject, op: str, point: Point) -> list[Bounds]:
    """Check that the Jacobian by forward mode and that by reverse mode are equal."""
    variables = point.scenario.variables
    every = tuple(range(len(variables)))

    def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
        f, at = point.scenario.at(point.operands(interpreter))
        return [*tk.jacfwd(f, every)(*at), *tk.jacrev(f, every)(*at)]

    names = [f"{op}: {way} by operand {i}" for way in ("jacfwd", "jacrev") for i in variables]
    bounds, _ = certified(subject, compute, names)
    for i, forward, reverse in zip(variables, bounds, bounds[len(variables) :], strict=False):
        require_equal(f"jacfwd by operand {i}", forward, "jacrev", reverse)
    return bounds


COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "forward over reverse": lambda f: tk.jacfwd(tk.jacrev(f)),
    "reverse over reverse": lambda f: tk.jacrev(tk.jacrev(f)),
    "reverse over forward": lambda f: tk.jacrev(tk.jacfwd(f)),
    "forward over forward": lambda f: tk.jacfwd(tk.jacfwd(f)),
}
"""The compositions that compute a Hessian; only a deep run tries the last two on ops on matrices, which are slow."""


def _hessians(subject: Subject, op: str, point: Point, weights: Array) -> list[Bounds]:
    """Check that the Hessians of a weighted sum of the results agree and are symmetric."""
    few = not point.scenario.enclosed and subject.depth != "deep"
    ways = list(COMPOSITIONS)[: 2 if few else 4]
    variables = point.scenario.variables
    sizes = np.cumsum([0, *[point.values[i].size for i in variables]]).tolist()
    flat = np.concatenate([point.values[i].reshape(-1) for i in variables])

    def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
        f, at = point.scenario.at(point.operands(interpreter))
        z, scales = point.tangents(interpreter, [flat, weights])

        def weighted(z: Tensor) -> Tensor:
            parts = [z[a:b].reshape(x.shape) for a, b, x in zip(sizes, sizes[1:], at, strict=False)]
            result: Tensor = (f(*parts) * scales).sum()
            return result

        return [COMPOSITIONS[way](weighted)(z) for way in ways]

    bounds, _ = certified(subject, compute, [f"{op}: {way}" for way in ways])
    for way, found in zip(ways, bounds, strict=True):
        require_equal(f"the Hessian {ways[0]}", bounds[0], f"that {way}", found)
        require_equal(f"the Hessian {way}", found, "its transpose", Bounds(found.low.T, found.high.T))
    return bounds
