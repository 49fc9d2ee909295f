"""Compare programs: alternately on one pinned thread, by CPU time, after checking that their results agree."""

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
SLOW_SECONDS = 0.25  # candidates with longer calls run only in the first rounds
FEW_ROUNDS = 3

PROCESSORS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()

NOT_SUPPORTED = "—"
FAILS = "fails"
DIFFERS = "differs"


class Candidate(Protocol):
    """A program to compare."""

    def __call__(self) -> Any:
        """Run it once, including waiting for the result."""

    def numbers(self) -> list[Any]:
        """Its results as numpy arrays."""


@dataclass(frozen=True, slots=True)
class Row:
    """Our figure, in seconds or bytes, and by peer its ratio to theirs, or a word if there is none."""

    name: str
    ours: float
    unit: str
    ratios: Mapping[str, float | str]


def pin() -> None:
    """Pin this process to one processor, if the system supports it."""
    if PROCESSORS:
        os.sched_setaffinity(0, {min(PROCESSORS)})


@contextmanager
def unpinned() -> Iterator[None]:
    """Allow processes started in the block to use all processors."""
    if PROCESSORS:
        os.sched_setaffinity(0, PROCESSORS)
    try:
        yield
    finally:
        pin()


def compare(
    name: str,
    ours: Candidate,
    peers: Mapping[str, Candidate | None],
    tolerance: float,
    clock: Callable[[], float] = time.process_time,
) -> Row:
    """Check that all peers compute the same results, then time all in turns, so that other load affects all equally.

    Peers that fail or differ are reported and left out.
    """
    expected = ours.numbers()
    ratios: dict[str, float | str] = dict.fromkeys(peers, NOT_SUPPORTED)
    candidates: dict[str, Candidate] = {"": ours}
    for peer, candidate in peers.items():
        if candidate is None:
            continue
        try:
            difference = _difference(candidate.numbers(), expected, tolerance)
        except Exception as error:  # noqa: BLE001, a peer may raise anything
            print(f"{name}: {peer} fails: {_first_line(error)}")
            ratios[peer] = FAILS
            continue
        if difference:
            print(f"{name}: {peer} {difference}")
            ratios[peer] = DIFFERS
        else:
            candidates[peer] = candidate
    seconds = _time_in_turns(candidates, clock)
    for peer, theirs in seconds.items():
        if peer:
            ratios[peer] = statistics.median(a / b for a, b in zip(seconds[""], theirs, strict=False))
    return Row(name, statistics.median(seconds[""]), "s", ratios)


def _difference(theirs: list[Any], ours: list[Any], tolerance: float) -> str:
    """A message if the arrays differ by more than the tolerance, relative to the largest number; else empty."""
    if [np.shape(x) for x in theirs] != [np.shape(x) for x in ours]:
        return f"computes {[np.shape(x) for x in theirs]}, we compute {[np.shape(x) for x in ours]}"
    for a, b in zip(ours, theirs, strict=True):
        most, scale = np.max(np.abs(a - b), initial=0.0), np.max(np.abs(b), initial=0.0)
        if not most <= tolerance * scale:
            return f"differs by {most:.3g} where the largest number is {scale:.3g}"
    return ""


def _time_in_turns(
    candidates: Mapping[str, Candidate], clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """By candidate, the seconds of a call in each of its rounds."""
    counts = {name: _calls(candidate, clock) for name, candidate in candidates.items()}
    rounds = {name: FEW_ROUNDS if slow else ROUNDS for name, (_, slow) in counts.items()}
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    gc.collect()
    gc.freeze()  # collections must not traverse the objects of the libraries
    for i in range(ROUNDS):
        for name in names if i % 2 == 0 else reversed(names):
            if i < rounds[name]:
                seconds[name].append(_seconds(candidates[name], counts[name][0], clock))
    return seconds


def _calls(candidate: Candidate, clock: Callable[[], float]) -> tuple[int, bool]:
    """The number of calls that fill a turn, and whether a single call is slow."""
    for _ in range(2):  # warm up: some libraries compile in the first two calls
        candidate()
    count = 1
    while True:
        seconds = _seconds(candidate, count, clock)
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
