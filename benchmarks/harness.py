"""How two programs are compared: turn by turn on one pinned thread, by CPU time, after their results agreed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ROUNDS = 15
ROUND_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Workload:
    """One computation, by us and by a peer; both return nested lists or arrays of the same numbers."""

    name: str
    peer: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    numbers: Callable[[Any], list[float]]  # of either result, for the comparison
    tolerance: float = 1e-4


@dataclass(frozen=True, slots=True)
class Figure:
    """What a workload cost."""

    name: str
    peer: str
    ours: float  # seconds of CPU time a call, the median over the rounds
    theirs: float
    ratio: float  # the median of the ratios of neighbouring rounds


def pin() -> None:
    """Keep this process on one processor, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def compare(workload: Workload) -> Figure:
    """Check that both compute the same, then time them in turn: load from elsewhere then hits both alike."""
    ours, theirs = workload.numbers(workload.ours()), workload.numbers(workload.theirs())
    if len(ours) != len(theirs):
        raise AssertionError(
            f"{workload.name}: {len(ours)} numbers of ours, {len(theirs)} of {workload.peer}"
        )
    for a, b in zip(ours, theirs, strict=True):
        if not abs(a - b) <= workload.tolerance * max(1.0, abs(b)):
            raise AssertionError(f"{workload.name}: we compute {a}, {workload.peer} computes {b}")
    calls_ours, calls_theirs = _calls(workload.ours), _calls(workload.theirs)
    pairs = [
        (_seconds(workload.ours, calls_ours), _seconds(workload.theirs, calls_theirs)) for _ in range(ROUNDS)
    ]
    return Figure(
        workload.name,
        workload.peer,
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
    )


def _calls(f: Callable[[], Any]) -> int:
    """How many calls fill a round."""
    count = 1
    while True:
        seconds = _seconds(f, count) * count
        if seconds > ROUND_SECONDS / 4:
            return max(1, round(count * ROUND_SECONDS / seconds))
        count *= 4


def _seconds(f: Callable[[], Any], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        f()
    return (time.process_time() - start) / count
