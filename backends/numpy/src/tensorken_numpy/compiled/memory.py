"""Memory: one piece for all that a program computes on the way, its places used again as values die."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np

from tensorken_numpy.contraction import Array

LINE = 64
"""Bytes: where a value starts is a multiple of a cache line."""


@dataclass(eq=False, slots=True)
class Place:
    """A stretch of the memory."""

    offset: int
    size: int


class Planner:
    """Decides where each value lies: in the first gap between those that live at the same time."""

    def __init__(self) -> None:
        self.size = 0
        self._living: list[Place] = []

    def take(self, size: int) -> Place:
        """A place of this many bytes."""
        size = max(LINE, -(-size // LINE) * LINE)
        offset = 0
        for place in self._living:
            if place.offset - offset >= size:
                break
            offset = place.offset + place.size
        found = Place(offset, size)
        bisect.insort(self._living, found, key=lambda place: place.offset)
        self.size = max(self.size, offset + size)
        return found

    def free(self, place: Place) -> None:
        """Let others have it."""
        self._living.remove(place)


def memory(size: int) -> Array:
    """This many bytes, from a multiple of a cache line on."""
    piece = np.empty(size + LINE, np.uint8)
    start = -piece.__array_interface__["data"][0] % LINE
    return piece[start : start + size]
