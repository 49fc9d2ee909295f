"""The memory of a compiled program: one buffer, whose regions are reused as values die."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from tensorken_numpy.arrays import Array

CACHE_LINE = 64
"""Bytes of a cache line, to which regions are aligned."""


@dataclass(eq=False, slots=True)
class Region:
    """A region of the memory."""

    offset: int
    size: int


MAX_TRIES = 8
"""The most gaps of the size's own class that are tried; a gap of this class may be too small."""


class Planner:
    """Assigns a region to each value: a gap between regions in use, else the end of the memory.

    A gap of exactly the size is preferred, then the first gap of the smallest class of larger sizes.  A class holds
    the sizes between two powers of two.  Each step costs the logarithm of the number of gaps, however many values
    live.

    >>> planner = Planner()
    >>> first, second, third = [planner.take(64) for _ in range(3)]
    >>> planner.free(second)
    >>> planner.take(64).offset == second.offset, planner.size
    (True, 192)
    """

    def __init__(self) -> None:
        self.size = 0
        self._end = 0
        self._gaps: dict[int, int] = {}  # start of each gap -> its size
        self._starts: dict[int, int] = {}  # end of each gap -> its start
        self._same: dict[int, list[int]] = {}  # size -> heap of starts, some of them stale
        self._classes: list[list[int]] = []  # for each class a heap of starts, some of them stale

    def take(self, size: int) -> Region:
        """A region of this many bytes."""
        size = max(CACHE_LINE, -(-size // CACHE_LINE) * CACHE_LINE)
        offset = self._fitting(size)
        if offset is None:
            offset = self._end
            self._end += size
            self.size = max(self.size, self._end)
        else:
            rest = self._remove(offset) - size
            if rest:
                self._add(offset + size, rest)
        return Region(offset, size)

    def free(self, region: Region) -> None:
        """Free a region."""
        start, end = region.offset, region.offset + region.size
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
        """The start of the gap to use; None if there is none."""
        start = self._first(self._same.get(size), size, size)
        own_class = size.bit_length()
        for number in range(own_class + 1, len(self._classes)):
            if start is not None:
                return start
            start = self._first(self._classes[number], 1 << (number - 1), (1 << number) - 1)
        if start is None and own_class < len(self._classes):
            start = self._similar(self._classes[own_class], size)
        return start

    def _first(self, heap: list[int] | None, least: int, most: int) -> int | None:
        """The first gap of a heap with a size in this range; drops stale entries before it."""
        while heap:
            if least <= self._gaps.get(heap[0], 0) <= most:
                return heap[0]
            heapq.heappop(heap)
        return None

    def _similar(self, heap: list[int], size: int) -> int | None:
        """The first gap of the size's own class that is large enough, among the first few."""
        tried: list[int] = []
        start = None
        while start is None and len(tried) < MAX_TRIES:
            first = self._first(heap, 1 << (size.bit_length() - 1), (1 << size.bit_length()) - 1)
            if first is None:
                break
            if self._gaps[first] >= size:
                start = first
            else:
                tried.append(heapq.heappop(heap))
        for offset in tried:
            heapq.heappush(heap, offset)
        return start

    def _add(self, start: int, size: int) -> None:
        self._gaps[start] = size
        self._starts[start + size] = start
        heapq.heappush(self._same.setdefault(size, []), start)
        number = size.bit_length()
        while len(self._classes) <= number:
            self._classes.append([])
        heapq.heappush(self._classes[number], start)

    def _remove(self, start: int) -> int:
        """Remove a gap and return its size."""
        size = self._gaps.pop(start)
        del self._starts[start + size]
        return size


def aligned_memory(size: int) -> Array:
    """An array of this many bytes, aligned to a cache line."""
    buffer = np.empty(size + CACHE_LINE, np.uint8)
    start = -buffer.__array_interface__["data"][0] % CACHE_LINE
    return buffer[start : start + size]
