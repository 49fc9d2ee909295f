"""How programs are compared: turn by turn on one pinned thread, by CPU time, after their results agreed."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

ROUNDS = 9
TURN_SECONDS = 0.05
SLOW_SECONDS = 0.25  # whose calls take longer takes part in the first rounds alone
FEW_ROUNDS = 3

PROCESSORS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

NOT_OFFERED = "—"
FAILS = "fails"
DIFFERS = "differs"


class Side(Protocol):
    """One program of a comparison."""

    def __call__(self) -> Any:
        """Run it once, to the end."""

    def numbers(self) -> list[Any]:
        """What it computes, as numpy arrays."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours, in seconds or bytes, and by peer its ratio to theirs, or the word that stands for none."""

    name: str
    ours: float
    unit: str
    ratios: Mapping[str, float | str]


def pin() -> None:
    """Keep this process on one processor, where the system can."""
    if PROCESSORS:
        os.sched_setaffinity(0, {min(PROCESSORS)})


@contextmanager
def unpinned() -> Iterator[None]:
    """Let what starts meanwhile run on all the processors that this process was given."""
    if PROCESSORS:
        os.sched_setaffinity(0, PROCESSORS)
    try:
        yield
    finally:
        pin()


def compare(
    name: str,
    ours: Side,
    peers: Mapping[str, Side | None],
    tolerance: float,
    clock: Callable[[], float] = time.process_time,
) -> Row:
    """Check that all compute what we do, then time them in turn: load from elsewhere then hits all alike.

    A peer that cannot, or whose numbers differ, is said and left out.
    """
    expected = ours.numbers()
    ratios: dict[str, float | str] = dict.fromkeys(peers, NOT_OFFERED)
    sides: dict[str, Side] = {"": ours}
    for peer, side in peers.items():
        if side is None:
            continue
        try:
            difference = _difference(side.numbers(), expected, tolerance)
        except Exception as error:  # noqa: BLE001, a peer fails in whichever way it likes
            print(f"{name}: {peer} fails: {_first_line(error)}")
            ratios[peer] = FAILS
            continue
        if difference:
            print(f"{name}: {peer} {difference}")
            ratios[peer] = DIFFERS
        else:
            sides[peer] = side
    seconds = _turns(sides, clock)
    for peer, theirs in seconds.items():
        if peer:
            ratios[peer] = statistics.median(a / b for a, b in zip(seconds[""], theirs, strict=False))
    return Row(name, statistics.median(seconds[""]), "s", ratios)


def _difference(theirs: list[Any], ours: list[Any], tolerance: float) -> str:
    """In words how the arrays differ by more than the tolerance, as part of an array's largest number."""
    if [np.shape(x) for x in theirs] != [np.shape(x) for x in ours]:
        return f"computes {[np.shape(x) for x in theirs]}, we compute {[np.shape(x) for x in ours]}"
    for a, b in zip(ours, theirs, strict=True):
        most, scale = np.max(np.abs(a - b), initial=0.0), np.max(np.abs(b), initial=0.0)
        if not most <= tolerance * scale:
            return f"differs by {most:.3g} where the largest number is {scale:.3g}"
    return ""


def _turns(
    sides: Mapping[str, Side], clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """By side the seconds of a call, a figure for each round that the side took part in."""
    counts = {name: _calls(side, clock) for name, side in sides.items()}
    rounds = {name: FEW_ROUNDS if slow else ROUNDS for name, (_, slow) in counts.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    gc.collect()
    gc.freeze()  # what the libraries have made is not gone through again at each collection
    for i in range(ROUNDS):
        for name in names if i % 2 == 0 else reversed(names):
            if i < rounds[name]:
                seconds[name].append(_seconds(sides[name], counts[name][0], clock))
    return seconds


def _calls(side: Side, clock: Callable[[], float]) -> tuple[int, bool]:
    """How many calls fill a turn, and whether one alone takes very long."""
    for _ in range(2):  # some compile at the first calls, and others find out at the second what they need
        side()
    count = 1
    while True:
        seconds = _seconds(side, count, clock)
        if seconds * count > TURN_SECONDS / 4:
            return max(1, round(TURN_SECONDS / seconds)), seconds > SLOW_SECONDS
        count *= 4


def _seconds(f: Callable[[], Any], count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        f()
    return (clock() - start) / count


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:150] if lines else ''}"
