"""Learning rate schedules.

A schedule is a number, or a function of the number of the step; the first step is 1. In a compiled function the step is
a float tensor of shape (), and so is the rate, so that one program works for all steps. The schedules here take both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.scalars import Scalar, cos, floor, maximum, minimum, switch_after

Rate: TypeAlias = Callable[[Any], Any]
"""A function from the number of a step, a Python number or a tensor of shape (), to the rate, of the same kind."""

Schedule: TypeAlias = float | Tensor | Rate
"""A constant, or a function of the number of the step; the first is 1."""


def linear(start: float, end: float, steps: int) -> Rate:
    """Linear from `start` at step 1 to `end` at step `steps + 1`, then constant.

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
    """Half a cosine wave from `start` at step 1 to `end` at step `steps + 1`, then constant.

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
    """`start`, multiplied by `factor` after every `every` steps.

    Raises:
        ArgumentError: if `every` or the factor is not positive.

    >>> rate = staircase(1.0, 0.5, every=3)
    >>> [rate(step) for step in range(1, 8)]
    [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]
    """
    _check_steps("staircase", every)
    if not factor > 0.0:
        raise ArgumentError(f"staircase: the factor must be positive, got {factor}")

    def rate(step: Any) -> Any:
        # With the half, no rounding of the quotient can reach the next stair.
        stair = floor((step - 0.5) / every)
        return start * factor**stair

    return rate


def join(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Rate:
    """Schedules one after the other; each boundary is the last step of a schedule.

    Each schedule starts with its own step 1. Numbers give a piecewise constant rate.

    Raises:
        ArgumentError: if the number of boundaries is not one less than that of schedules, or they do not increase
            from 1.

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
        raise ArgumentError(f"join: the boundaries must increase from 1, got {list(boundaries)}")

    def rate(step: Any) -> Any:
        # All schedules are evaluated, as one program must work for all steps, but none before its first step.
        rates = [rate_at(s, maximum(step - start, 1)) for s, start in zip(schedules, starts, strict=True)]
        result = rates[-1]
        for last, earlier in zip(reversed(boundaries), reversed(rates[:-1]), strict=True):
            result = switch_after(last, step, earlier, result)
        return result

    return rate


def warmup(schedule: Schedule, steps: int) -> Rate:
    """A schedule preceded by `steps` steps in which the rate rises linearly to its first rate.

    Raises:
        ArgumentError: if there is no step.

    >>> rate = warmup(linear(1.0, 0.0, 4), steps=3)
    >>> [rate(step) for step in range(1, 7)]
    [0.25, 0.5, 0.75, 1.0, 0.75, 0.5]
    """
    _check_steps("warmup", steps)
    return join([lambda step: rate_at(schedule, 1) * step / (steps + 1), schedule], [steps])


def rate_at(schedule: Schedule, step: Scalar) -> Any:
    """The rate of a schedule at a step.

    >>> rate_at(0.1, 7), rate_at(lambda step: 1 / step, 4)
    (0.1, 0.25)
    """
    return schedule(step) if callable(schedule) else schedule


def _check_steps(name: str, steps: int) -> None:
    if steps < 1:
        raise ArgumentError(f"{name}: need at least one step, got {steps}")
