"""derivatives.differences: derivatives agree with differences of values, by the mean value theorem."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.enclosure.interval import PRECISION
from tensorken_conformance.law import law
from tensorken_conformance.laws.derivatives.bounds import (
    Bounds,
    Computation,
    Known,
    NotEnclosedError,
    between,
    bounds_of,
    certified,
    enclosed,
    fused_as,
    measured,
    require_equal,
    require_within,
)
from tensorken_conformance.laws.derivatives.scenarios import (
    Scenario,
    cases_of,
    dyadic,
    scenario_of,
    scenarios,
    tensors,
)
from tensorken_conformance.numbers.host_arrays import is_float
from tensorken_conformance.subject import Array, Subject
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.tensor import Tensor

NOT_SMOOTH = ("nextafter",)
"""Ops whose derivative is not that of their values."""

TRIES = 5
"""The largest number of directions that are tried to find one without a kink."""


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario whose values are smooth, for the first derivative and the second."""
    for case in cases_of("derivatives.differences", main=True)(subject):
        if not scenarios()[case.op, case.detail].crossing and case.op not in NOT_SMOOTH:
            yield case


class Stretch:
    """A short line through the operands of a scenario, along which it is differentiated.

    Args:
        scenario: the function.
        dtype: of the floats.
        rng: draws the middle, the direction, and for second derivatives the tangents of the first.
        step: the length of the line, relative to the size of the operands.
        second: whether the tangent of the function is differentiated, in place of its value.
    """

    def __init__(
        self, scenario: Scenario, dtype: DType, rng: random.Random, step: float, second: bool
    ) -> None:
        self.scenario, self.dtype, self.step, self.second = scenario, dtype, step, second
        self.middle = [x.astype(dtype.name) if is_float(x) else x for x in scenario.draw(rng)]
        self.tangents, self.way = (
            [dyadic(rng, self.middle[i].shape) for i in scenario.variables] for _ in range(2)
        )

    def point(self, by: float) -> list[Array]:
        """The operands after a number of steps along the line, rounded."""
        values = list(self.middle)
        for i, v in zip(self.scenario.variables, self.way, strict=True):
            values[i] = (self.middle[i] + by * self.step * v).astype(self.dtype.name)
        return values

    def along(self, start: Sequence[Array], end: Sequence[Array]) -> list[Array]:
        """The differences of the variables, which are exact: P. H. Sterbenz, 1974."""
        return [end[i] - start[i] for i in self.scenario.variables]

    def _differentiated(self, interpreter: RawTensor[Any]) -> Scenario:
        """The scenario; for second derivatives that of its tangent."""
        if not self.second:
            return self.scenario
        v = tensors(interpreter, self.tangents, self.dtype)
        return replace(self.scenario, function=lambda *operands: self.scenario.pushed(operands, v))

    def at(self, by: float) -> Computation:
        """The value at a point."""

        def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
            operands = tensors(interpreter, self.point(by), self.dtype)
            return [self._differentiated(interpreter).function(*operands)]

        return compute

    def slope(
        self, interpreter: RawTensor[Any], operands: list[Tensor], way: Sequence[Array]
    ) -> list[Tensor]:
        """The derivative along a direction."""
        v = tensors(interpreter, way, self.dtype)
        return [self._differentiated(interpreter).pushed(operands, v)]


@law("derivatives.differences", cases, level=3)
def differences(subject: Subject, case: Case) -> Measured:
    """f(b) - f(a) is a derivative of f between a and b, times b - a; so it is for the derivative of f.

    The derivative is enclosed on the line from a to b.  Where that is impossible, central differences with steps of
    two sizes are used, whose distance bounds their error (L. F. Richardson, 1911).
    """
    dtype, rng, scenario = DTYPES[case.dtype], subject.random(case), scenario_of(case)
    precision = PRECISION[dtype.name]
    notes: list[Bounds] = []
    for second in (False, True):
        for _ in range(TRIES):
            near = Stretch(scenario, dtype, rng, precision**0.5, second)
            far = Stretch(scenario, dtype, rng, precision**0.25, second)
            found = _by_mean_value(subject, case, near) or _by_richardson(subject, case, far)
            if found:
                break
        else:
            raise Failure(
                f"{case.op}: its derivative jumps in each of {TRIES} directions, so this proves nothing"
            )
        notes += found
    return measured(notes)


def _by_mean_value(subject: Subject, case: Case, stretch: Stretch) -> list[Bounds]:
    """Compare with the enclosure of the derivative on the line; no bounds if that is too wide, as near a kink."""
    order = "second" if stretch.second else "first"
    start, end = stretch.point(-1.0), stretch.point(1.0)
    way = stretch.along(start, end)
    interpreter = fused_as(subject, Known(subject.capabilities))
    operands = [between(interpreter, a, b, stretch.dtype) for a, b in zip(start, end, strict=True)]
    try:
        (slope,) = [bounds_of(y) for y in stretch.slope(interpreter, operands, way)]
    except NotEnclosedError:
        return []
    size = max([float(np.abs(v).max(initial=0.0)) for v in way])
    widest = float((slope.high - slope.low).max(initial=0.0))
    largest = float(np.maximum(np.abs(slope.low), np.abs(slope.high)).max(initial=size))
    if not widest <= stretch.step**0.5 * largest:
        return []
    ends = [certified(subject, stretch.at(by), [f"{case.op}: value"])[0][0] for by in (-1.0, 1.0)]
    name = f"{case.op}: {order} derivative"
    require_equal(
        "f(b) - f(a)", ends[1].plus(ends[0].scaled(-1.0)), f"the {order} derivative times b - a", slope
    )
    (got,) = stretch.slope(subject.stack, tensors(subject.stack, start, stretch.dtype), way)
    require_within(name, subject.read(got), slope)
    return [*ends, slope]


def _by_richardson(subject: Subject, case: Case, stretch: Stretch) -> list[Bounds]:
    """Compare with central differences, whose error is at most the change by twice the step; no bounds at a kink."""
    order = "second" if stretch.second else "first"
    way = stretch.along(stretch.point(-1.0), stretch.point(1.0))

    def slope(by: float) -> Computation:
        def compute(interpreter: RawTensor[Any]) -> list[Tensor]:
            return stretch.slope(interpreter, tensors(interpreter, stretch.point(by), stretch.dtype), way)

        return compute

    left, right = (subject.read(slope(by)(subject.stack)[0]).astype(np.float64) for by in (-2.0, 2.0))
    size = max([float(np.abs(v).max(initial=0.0)) for v in way])
    if np.abs(left - right).max(initial=0.0) > stretch.step**0.5 * np.abs(left).max(initial=size):
        return []
    bounds = [enclosed(subject, stretch.at(by))[0] for by in (-1.0, 1.0, -2.0, 2.0)]
    near, far = (bounds[k + 1].plus(bounds[k].scaled(-1.0)) for k in (0, 2))
    apart = np.abs((near.low + near.high) / 2.0 - (far.low + far.high) / 4.0)
    expected = Bounds(near.low - apart, near.high + apart, False, near.low.size)
    (found,), _ = certified(subject, slope(0.0), [f"{case.op}: {order} derivative"])
    require_equal(f"the {order} derivative", found, "differences", expected)
    return [*bounds, found, expected]
