"""Selftest: the proof of the kit: it finds every seeded fault and every mutant, and none where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Selftest:
    """What a selftest has found.

    Attributes:
        seeds: how many seeds of random numbers it ran with.
        faults: how many faulty backends there are.
        caught: how many of them every seed caught by the law that they are aimed at.
        mutants: how many changes of the reference backend there are.
        killed: how many of them a law found.
        equivalent: how many of them are listed as changing nothing.
        alarms: how many cases failed on right backends.
        misses: a line for each thing that is not as it should be.
        seconds: how long it took.
    """

    seeds: int
    faults: int
    caught: int
    mutants: int
    killed: int
    equivalent: int
    alarms: int
    misses: tuple[str, ...]
    seconds: float

    @property
    def detection(self) -> str:
        """Such as `detection 78/78`."""
        return f"detection {self.caught}/{self.faults}"

    @property
    def status(self) -> int:
        """The exit status: 0 if everything was as it should be, else 1."""
        return 1 if self.misses else 0


def run(
    seeds: int = 1, deep: bool = False, select: Collection[str] = (), tell: Callable[[str], None] = print
) -> Selftest:
    """Try the kit on backends whose faults are known, on mutants of a right one, and on right ones.

    Args:
        seeds: with how many seeds of random numbers, from 0 on.
        deep: whether to examine the right backends in full, and to measure how narrow the faults are.
        select: families or ids of faults, laws, `mutants` or `right`; none: all.
        tell: called with each line of the report, as it comes.

    Raises:
        ValueError: if `select` names what there is not.
    """
    raise NotImplementedError


def recorded() -> dict[str, Any]:
    """The result of the last full selftest of this version of the kit, which reports show."""
    text = resources.files("tensorken_conformance").joinpath("detection.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
