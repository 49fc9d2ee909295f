"""Schedules: how a learning rate changes from step to step.

A schedule is a number, or a function of the number of the step, of which the first is 1. A function that is compiled
counts its steps in a tensor, of shape () and a float dtype, and then the rate is such a tensor too: the program is the
same for all steps. What is here does both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.scalars import Scalar, cos, floor, maximum, minimum, until

Rate: TypeAlias = Callable[[Any], Any]
"""From the number of a step, a Python number or a tensor of shape (), to such a number."""

Schedule: TypeAlias = float | Tensor | Rate
"""A constant, or a function of the number of the step; the first is 1."""


def linear(start: float, end: float, steps: int) -> Rate:
    """From `start`, at step 1, in equal parts towards `end`, which it reaches one step after the last.

    Raises:
        ArgumentError: if there is no step.

    >>> rate = linear(1.0, 0.0, steps=4)
    >>> [rate(step) for step in (1, 2, 4, 5, 6)]
    [1.0, 0.75, 0.25, 0.0, 0.0]
    """
    _check_steps("linear", steps)

    def rate(step: Any) -> Any:
        return start + (end - start) * minimum(step - 1, steps) / steps

    return rate


def cosine(start: float, end: float, steps: int) -> Rate:
    """From `start`, at step 1, along half a wave towards `end`, which it reaches one step after the last.

    Source: Loshchilov, Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts (2017), equation 5.

    Raises:
        ArgumentError: if there is no step.

    >>> rate = cosine(1.0, 0.0, steps=4)
    >>> [round(rate(step), 3) for step in (1, 2, 3, 4, 5, 6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    _check_steps("cosine", steps)

    def rate(step: Any) -> Any:
        return end + (start - end) * 0.5 * (1.0 + cos(minimum(step - 1, steps) * (math.pi / steps)))

    return rate


def staircase(start: float, factor: float, every: int) -> Rate:
    """From `start`, multiplied by `factor` each time that so many steps were taken.

    Raises:
        ArgumentError: if a stair has no step, or the factor is not positive.

    >>> rate = staircase(1.0, 0.5, every=3)
    >>> [rate(step) for step in range(1, 8)]
    [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]
    """
    _check_steps("staircase", every)
    if not factor > 0.0:
        raise ArgumentError(f"staircase: the factor must be positive, got {factor}")

    def rate(step: Any) -> Any:
        # In the middle between two multiples, no rounding of the quotient reaches the next stair.
        stair = floor((step - 0.5) / every)
        return start * factor**stair

    return rate


def join(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Rate:
    """Schedules one after the other; the last step of each but the last is its boundary.

    Each begins with its own step 1. Numbers make a rate that is constant in pieces.

    Raises:
        ArgumentError: if there is not one boundary between each two schedules, or the boundaries do not grow from 1.

    >>> rate = join([0.1, linear(0.1, 0.0, 2), 1e-3], boundaries=[2, 4])
    >>> [rate(step) for step in range(1, 7)]
    [0.1, 0.1, 0.1, 0.05, 0.001, 0.001]
    """
    if len(schedules) != len(boundaries) + 1:
        raise ArgumentError(
            f"join: {len(schedules)} schedules have {max(len(schedules) - 1, 0)} boundaries between them, "
            f"got {len(boundaries)}"
        )
    starts = [0, *boundaries]
    if any([before >= after for before, after in zip(starts, boundaries, strict=False)]):
        raise ArgumentError(f"join: the boundaries must grow from 1, got {list(boundaries)}")

    def rate(step: Any) -> Any:
        # All are asked, since one program serves all steps; but none about a step before its first.
        rates = [value(s, maximum(step - start, 1)) for s, start in zip(schedules, starts, strict=True)]
        found = rates[-1]
        for last, earlier in zip(reversed(boundaries), reversed(rates[:-1]), strict=True):
            found = until(last, step, earlier, found)
        return found

    return rate


def warmup(schedule: Schedule, steps: int) -> Rate:
    """A schedule after so many steps in which the rate rises towards its first rate in equal parts.

    Raises:
        ArgumentError: if there is no step.

    >>> rate = warmup(linear(1.0, 0.0, 4), steps=3)
    >>> [rate(step) for step in range(1, 7)]
    [0.25, 0.5, 0.75, 1.0, 0.75, 0.5]
    """
    _check_steps("warmup", steps)
    return join([lambda step: value(schedule, 1) * step / (steps + 1), schedule], [steps])


def value(schedule: Schedule, step: Scalar) -> Any:
    """What a schedule says of a step.

    >>> value(0.1, 7), value(lambda step: 1 / step, 4)
    (0.1, 0.25)
    """
    return schedule(step) if callable(schedule) else schedule


def _check_steps(name: str, steps: int) -> None:
    if steps < 1:
        raise ArgumentError(f"{name}: need at least one step, got {steps}")
