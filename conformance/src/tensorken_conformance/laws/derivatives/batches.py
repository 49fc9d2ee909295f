"""derivatives.vmap: vmap equals a loop over the examples, for every op and its derivatives."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tensorken as tk
from tensorken_conformance.case import Case, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import Bounds, certified, enclosed, measured, require_equal
from tensorken_conformance.laws.derivatives.scenarios import (
    SMOKE,
    Point,
    Scenario,
    constant_ops,
    dyadic,
    main_dtype,
    point_of,
    scenarios,
)
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

SIZE = 2
"""The number of examples."""

Axes = tuple[int | None, ...]


def ways(count: int) -> dict[str, Axes]:
    """The batch axis of each operand: the first of all, the last of all, or the first of all but one operand."""
    found: dict[str, Axes] = {"first": (0,) * count, "last": (-1,) * count}
    if count > 1:
        for shared in range(count):
            found[f"shared-{shared}"] = tuple([None if i == shared else 0 for i in range(count)])
    return found


def candidates(subject: Subject) -> Iterator[tuple[Scenario, DType]]:
    """Each op, with derivatives or without, and each function; and its dtype."""
    dtype = main_dtype(subject)
    if dtype is not None:
        yield from [(s, dtype) for s in scenarios().values() if s.main]
    yield from constant_ops(subject)


def cases(subject: Subject) -> Iterator[Case]:
    """Each candidate, batched in each way; functions in one way except in a deep run; in the smoke run one function."""
    for scenario, dtype in candidates(subject):
        if subject.depth == "smoke" and scenario.name != SMOKE:
            continue
        known = ways(len(scenario.draw(random.Random(0))))
        for way in known if scenario.is_op or subject.depth == "deep" else [*known][-1:]:
            yield Case("derivatives.vmap", scenario.name, dtype.name, detail=f"{scenario.detail}@{way}")


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples of a scenario, and directions for each.

    Attributes:
        points: the operands of each example.
        axes: the batch axis of each operand; None for one that all examples share.
        out_axis: the batch axis of the result.
        pushes: a tangent for each variable of each example; where the variable is shared, so is its tangent.
        pulls: a cotangent for each example.
    """

    points: list[Point]
    axes: Axes
    out_axis: int
    pushes: list[list[Array]]
    pulls: list[Array]

    def one(self, interpreter: RawTensor[Any], k: int) -> list[Tensor]:
        """The value, the tangent and the cotangents of one example."""
        point = self.points[k]
        scenario, operands = point.scenario, point.operands(interpreter)
        y = scenario.function(*operands)
        if not scenario.variables:
            return [y]
        pushed = scenario.pushed(operands, point.tangents(interpreter, self.pushes[k]))
        return [y, pushed, *scenario.pulled(operands, point.cotangent(interpreter, self.pulls[k]))]

    def all(self, interpreter: RawTensor[Any]) -> list[Tensor]:
        """The same for all examples: vmap of the function and its derivatives, then derivatives of vmap."""
        point = self.points[0]
        operands = [
            self._stacked(interpreter, [p.values[i] for p in self.points], axis)
            for i, axis in enumerate(self.axes)
        ]
        scenario, count = point.scenario, len(operands)
        mapped = replace(scenario, function=tk.vmap(scenario.function, self.axes, self.out_axis))
        y = mapped.function(*operands)
        if not scenario.variables:
            return [y]
        axes = tuple([self.axes[i] for i in scenario.variables])
        v = [self._stacked(interpreter, [p[j] for p in self.pushes], axis) for j, axis in enumerate(axes)]
        u = point.cotangent(interpreter, np.stack(self.pulls, self.out_axis))
        push: Any = tk.vmap(
            lambda *xs: scenario.pushed(xs[:count], xs[count:]), self.axes + axes, self.out_axis
        )
        pull: Any = tk.vmap(lambda *xs: scenario.pulled(xs[:count], xs[count]), (*self.axes, self.out_axis))
        return [
            y,
            push(*operands, *v),
            *pull(*operands, u),
            mapped.pushed(operands, v),
            *mapped.pulled(operands, u),
        ]

    def _stacked(self, interpreter: RawTensor[Any], rows: Sequence[Array], axis: int | None) -> Tensor:
        values = rows[0] if axis is None else np.stack(rows, axis=axis)
        return self.points[0].tangents(interpreter, [values])[0]


@law("derivatives.vmap", cases, level=3)
def vmap(subject: Subject, case: Case) -> Measured:
    """vmap equals a loop over examples, also for derivatives; derivatives of vmap equal those of the loop."""
    detail, _, way = case.detail.rpartition("@")
    named = scenarios().get((case.op, detail))
    scenario = named or next(s for s, _ in constant_ops(subject) if s.name == case.op)
    rng, dtype = subject.random(case), DTYPES[case.dtype]
    batch = _drawn(subject, scenario, dtype, way, rng)
    rows = [enclosed(subject, functools.partial(batch.one, k=k)) for k in range(SIZE)]
    value, *derivatives = [_stacked(parts, batch.out_axis) for parts in zip(*rows, strict=True)]
    expected, names = [value], ["vmap"]
    if derivatives:
        pushed = derivatives[0]
        pulled = list(zip(*[row[2:] for row in rows], strict=True))
        axes = [batch.axes[i] for i in scenario.variables]
        expected += [pushed, *[_stacked(parts, 0) for parts in pulled], pushed]
        expected += [_gathered(parts, axis) for parts, axis in zip(pulled, axes, strict=True)]
        names += ["vmap of jvp", *["vmap of vjp"] * len(axes), "jvp of vmap", *["vjp of vmap"] * len(axes)]
    bounds, _ = certified(subject, batch.all, [f"{case.op}: {name}" for name in names])
    for name, found, looped in zip(names, bounds, expected, strict=True):
        require_equal(name, found, "the loop", looped)
    return measured([*bounds, *expected])


def _drawn(subject: Subject, scenario: Scenario, dtype: DType, way: str, rng: random.Random) -> Batch:
    drawn = [scenario.draw(rng) for _ in range(SIZE)]
    axes = ways(len(drawn[0]))[way]
    examples = [
        [drawn[0][i] if axis is None else drawn[k][i] for i, axis in enumerate(axes)] for k in range(SIZE)
    ]
    pushes = [[dyadic(rng, examples[0][i].shape) for i in scenario.variables] for _ in range(SIZE)]
    for j, i in enumerate(scenario.variables):
        if axes[i] is None:
            for k in range(1, SIZE):
                pushes[k][j] = pushes[0][j]
    first = point_of(subject, scenario, examples[0], dtype)
    points = [first, *[replace(first, values=values) for values in examples[1:]]]
    pulls = [dyadic(rng, first.shape) for _ in range(SIZE)]
    return Batch(points, axes, -1 if way == "last" else 0, pushes, pulls)


def _stacked(parts: Sequence[Bounds], axis: int) -> Bounds:
    low, high = np.stack([b.low for b in parts], axis), np.stack([b.high for b in parts], axis)
    maybe_nan = np.stack([np.broadcast_to(b.maybe_nan, b.low.shape) for b in parts], axis)
    return Bounds(low, high, maybe_nan, sum(b.estimated for b in parts), sum(b.unknown for b in parts))


def _gathered(parts: Sequence[Bounds], axis: int | None) -> Bounds:
    """The cotangent of a batched operand; for a shared one the sum over the examples."""
    if axis is not None:
        return _stacked(parts, axis)
    return functools.reduce(lambda a, b: a.plus(b), parts)
