"""Memories: the bytes of a device that hold values, and the pool that they come from and go back to."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

SMALLEST = 256
"""Bytes of the smallest block."""

FINE = 2**20
"""Above so many bytes there are four classes of blocks in each octave, below one."""

SPARE = 2**26
"""How many bytes may lie idle in any case."""

SLACK = 1.25
"""How much more there may be, in use or idle, than was lately in use at once."""

WINDOW = 64
"""Submissions after which it is forgotten how much was in use."""

_numbers = itertools.count()  # no two blocks have the same one, be they on one device or on two


@functools.lru_cache(maxsize=4096)
def class_of(size: int) -> int:
    """How large a block is that so many bytes come to lie in.

    >>> [class_of(n) for n in (4, 257, 3000, 2**20 + 4, 2**20 * 5 // 4 + 4)]
    [256, 512, 4096, 1310720, 1572864]
    """
    if size <= SMALLEST:
        return SMALLEST
    octave = 1 << (size - 1).bit_length()
    if octave <= FINE:
        return octave
    step = octave // 8
    return -(-size // step) * step


@functools.lru_cache(maxsize=1024)
def classes_of(sizes: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The same for each of these sizes, which are those of a program, where no block is larger than that."""
    return tuple([min(class_of(size), most) for size in sizes])


class Memory:
    """Some bytes on a device, which go back to it when nobody refers to them any more.

    Attributes:
        place: the number of the block in which they lie.
        size: how many bytes they are.
    """

    __slots__ = ("__weakref__", "_returned", "place", "size")

    def __init__(self, place: int, size: int, returned: deque[int]) -> None:
        self.place = place
        self.size = size
        self._returned = returned

    def __del__(self) -> None:
        """Hand the block back.  This runs wherever Python collects garbage, so it waits for nothing."""
        self._returned.append(self.place)


@dataclass(frozen=True, slots=True)
class Window:
    """Part of a memory, as a kernel sees it.

    Attributes:
        memory: of which this is a part.
        offset: where it begins; a multiple of the device's `min-storage-buffer-offset-alignment`.
        size: in bytes, a multiple of 4.
    """

    memory: Memory
    offset: int
    size: int

    @property
    def place(self) -> tuple[int, int, int]:
        """The number of the block, and which part of it."""
        return self.memory.place, self.offset, self.size


@dataclass(slots=True, eq=False)
class Block:
    """A buffer of the driver's.

    Attributes:
        buffer: the driver's.
        size: in bytes.
        returned: when it came back last, counted in submissions.
    """

    buffer: Any
    size: int
    returned: int = 0


class Pool:
    """The blocks of a device, by number.

    All of them are held here and nowhere else: what Python collects as garbage never has a buffer in it, which it would
    release under the hands of those who use the block next.  A block that has come back may still be read by kernels
    that wait: it is *dirty* until they have been handed over.  Other kernels may write into it, as they come later;
    what is written by the host goes first, and must not.  None is ever destroyed: it is let go, and the driver keeps it
    while something that was handed over uses it.

    Args:
        most: bytes of the largest block.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.blocks: dict[int, Block] = {}
        self.returned: deque[int] = deque()
        self.total = 0
        self.idle = 0
        self.peak = 0
        self._clean: dict[int, list[int]] = {}
        self._dirty: dict[int, list[int]] = {}
        self._submissions = 0
        self._lately = [0, 0]  # the most that was in use at once, in the window before this and in this

    @property
    def used(self) -> int:
        """Bytes of the blocks that somebody has."""
        return self.total - self.idle

    def class_of(self, size: int) -> int:
        """Bytes of the block that so many come to lie in."""
        return min(class_of(size), self.most)

    # ---- taking and giving back ----------------------------------------------------------------------------

    def take(self, size: int, clean: bool) -> Memory | None:
        """Memory in an idle block, or None: in the one with the smallest number, so that loops find the same ones.

        Args:
            size: bytes that are needed.
            clean: whether no kernel that waits may refer to it.
        """
        return self.take_all((size,), clean)[0]

    def take_all(self, sizes: tuple[int, ...], clean: bool) -> list[Memory | None]:
        """The same for each of these sizes."""
        returned, clean_heaps = self.returned, self._clean
        dirty_heaps = {} if clean else self._dirty
        found: list[Memory | None] = []
        for size, place in zip(sizes, classes_of(sizes, self.most), strict=True):
            heap = clean_heaps.get(place)
            if dirty_heaps:
                dirty = dirty_heaps.get(place)
                if dirty and (not heap or dirty[0] < heap[0]):
                    heap = dirty
            if heap:
                self.idle -= place
                found.append(Memory(heappop(heap), size, returned))
            else:
                found.append(None)
        self._note()
        return found

    def add(self, buffer: Any, size: int) -> Memory:
        """Memory in a new block."""
        number, place = next(_numbers), self.class_of(size)
        self.blocks[number] = Block(buffer, place)
        self.total += place
        self._note()
        return Memory(number, size, self.returned)

    def collect(self, waiting: bool) -> None:
        """Take in what has been given back.

        Args:
            waiting: whether kernels wait, which may refer to it.
        """
        heaps = self._dirty if waiting else self._clean
        returned, blocks, now = self.returned, self.blocks, self._submissions
        while returned:
            number = returned.popleft()
            block = blocks[number]
            size, block.returned = block.size, now
            self.idle += size
            heap = heaps.get(size)
            if heap is None:
                heap = heaps[size] = []
            heappush(heap, number)

    def _note(self) -> None:
        used = self.used
        if used > self._lately[1]:
            self._lately[1] = used
            self.peak = max(self.peak, used)

    # ---- letting go ----------------------------------------------------------------------------------------

    def submitted(self) -> set[int]:
        """All that waited has been handed over; the numbers of the blocks that are let go, as too many lie idle."""
        clean = self._clean
        for place, numbers in self._dirty.items():
            heap = clean.get(place)
            if heap:
                for number in numbers:
                    heappush(heap, number)
            else:
                clean[place] = numbers
        self._dirty.clear()
        self._submissions += 1
        if self._submissions % WINDOW:
            return set()
        self._lately = [self._lately[1], self.used]
        return self.trim(0)

    def trim(self, size: int) -> set[int]:
        """Let go what has lain idle longest, until there is room for so many bytes more; the numbers of the blocks."""
        bound = int(SLACK * max(*self._lately, self.used + size)) + SPARE
        return self.release(lambda: self.total + size > bound)

    def release(self, more: Callable[[], bool] = lambda: True) -> set[int]:
        """Let go of clean blocks, those first that have lain idle longest, while `more`; their numbers."""
        released: set[int] = set()
        if more():
            for number in self._by_age():
                if not more():
                    break
                block = self.blocks.pop(number)
                self.total -= block.size
                self.idle -= block.size
                released.add(number)
            self._clean = {
                place: [n for n in heap if n not in released] for place, heap in self._clean.items()
            }
            for heap in self._clean.values():
                heapify(heap)
        return released

    def _by_age(self) -> Iterator[int]:
        clean = [number for heap in self._clean.values() for number in heap]
        yield from sorted(clean, key=lambda n: (self.blocks[n].returned, -self.blocks[n].size))
