"""Memory: one piece for all that a program computes on the way, its places used again as values die."""

from __future__ import annotations

import heapq
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


SIMILAR = 8
"""How many gaps of about the wanted size are tried; others of that class may be too small."""


class Planner:
    """Decides where each value lies: in a gap between those that live at the same time, else after the last.

    A gap of the very size is taken first, then the first of the smallest class that has larger ones.  A class has the
    sizes between two powers of two.  Each step costs the logarithm of the number of gaps, however many values live.

    >>> planner = Planner()
    >>> first, second, third = [planner.take(64) for _ in range(3)]
    >>> planner.free(second)
    >>> planner.take(64).offset == second.offset, planner.size
    (True, 192)
    """

    def __init__(self) -> None:
        self.size = 0
        self._end = 0
        self._gaps: dict[int, int] = {}  # from where each begins to its size
        self._starts: dict[int, int] = {}  # from where each ends to where it begins
        self._same: dict[int, list[int]] = {}  # for each size a heap of offsets, also of gaps that are gone
        self._classes: list[list[int]] = []  # for each class the same

    def take(self, size: int) -> Place:
        """A place of this many bytes."""
        size = max(LINE, -(-size // LINE) * LINE)
        offset = self._fitting(size)
        if offset is None:
            offset = self._end
            self._end += size
            self.size = max(self.size, self._end)
        else:
            rest = self._remove(offset) - size
            if rest:
                self._add(offset + size, rest)
        return Place(offset, size)

    def free(self, place: Place) -> None:
        """Let others have it."""
        start, end = place.offset, place.offset + place.size
        if start in self._starts:
            start = self._starts[start]
            self._remove(start)
        if end in self._gaps:
            end += self._remove(end)
        if end == self._end:
            self._end = start
        else:
            self._add(start, end - start)

    def _fitting(self, size: int) -> int | None:
        """Where the gap begins that is taken; None if there is none."""
        found = self._first(self._same.get(size), size, size)
        own = size.bit_length()
        for number in range(own + 1, len(self._classes)):
            if found is not None:
                return found
            found = self._first(self._classes[number], 1 << (number - 1), (1 << number) - 1)
        if found is None and own < len(self._classes):
            found = self._similar(self._classes[own], size)
        return found

    def _first(self, heap: list[int] | None, least: int, most: int) -> int | None:
        """The first gap of a heap with a size in this range; those before it are gone."""
        while heap:
            if least <= self._gaps.get(heap[0], 0) <= most:
                return heap[0]
            heapq.heappop(heap)
        return None

    def _similar(self, heap: list[int], size: int) -> int | None:
        """Of a few gaps of the class of a size the first that is large enough."""
        tried: list[int] = []
        found = None
        while found is None and len(tried) < SIMILAR:
            first = self._first(heap, 1 << (size.bit_length() - 1), (1 << size.bit_length()) - 1)
            if first is None:
                break
            if self._gaps[first] >= size:
                found = first
            else:
                tried.append(heapq.heappop(heap))
        for offset in tried:
            heapq.heappush(heap, offset)
        return found

    def _add(self, start: int, size: int) -> None:
        self._gaps[start] = size
        self._starts[start + size] = start
        heapq.heappush(self._same.setdefault(size, []), start)
        number = size.bit_length()
        while len(self._classes) <= number:
            self._classes.append([])
        heapq.heappush(self._classes[number], start)

    def _remove(self, start: int) -> int:
        """The gap is no more; its size."""
        size = self._gaps.pop(start)
        del self._starts[start + size]
        return size


def memory(size: int) -> Array:
    """This many bytes, from a multiple of a cache line on."""
    piece = np.empty(size + LINE, np.uint8)
    start = -piece.__array_interface__["data"][0] % LINE
    return piece[start : start + size]
