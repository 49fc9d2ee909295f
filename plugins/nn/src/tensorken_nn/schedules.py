"""Schedules: how a learning rate changes from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tensorken.errors import ArgumentError

Schedule: TypeAlias = float | Callable[[int], float]
"""A constant, or a function of the number of the step; the first is 1."""


def linear(start: float, end: float, steps: int) -> Callable[[int], float]:
    """From `start`, at step 1, in equal parts towards `end`, which it reaches one step after the last.

    >>> rate = linear(1.0, 0.0, steps=4)
    >>> [rate(step) for step in (1, 2, 4, 5, 6)]
    [1.0, 0.75, 0.25, 0.0, 0.0]
    """
    if steps < 1:
        raise ArgumentError(f"linear: need at least one step, got {steps}")

    def rate(step: int) -> float:
        return start + (end - start) * min(step - 1, steps) / steps

    return rate


def value(schedule: Schedule, step: int) -> float:
    """What a schedule says of a step.

    >>> value(0.1, 7), value(lambda step: 1 / step, 4)
    (0.1, 0.25)
    """
    return schedule(step) if callable(schedule) else schedule
