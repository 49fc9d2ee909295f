"""Memory: the bytes of a device that hold values, and the pool that they come from and return to."""

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

FINE_CLASSES_FROM = 2**20
"""Above this size there are four classes of blocks in each octave, below one."""

MIN_IDLE = 2**26
"""Bytes that may always be idle."""

MAX_GROWTH = 1.25
"""The most memory, in use or idle, relative to the recent peak."""

PEAK_WINDOW = 64
"""The number of recent submissions whose peak counts."""

_numbers = itertools.count()  # unique over all devices


@functools.lru_cache(maxsize=4096)
def class_of(size: int) -> int:
    """The size of the block that holds this many bytes.

    >>> [class_of(n) for n in (4, 257, 3000, 2**20 + 4, 2**20 * 5 // 4 + 4)]
    [256, 512, 4096, 1310720, 1572864]
    """
    if size <= SMALLEST:
        return SMALLEST
    octave = 1 << (size - 1).bit_length()
    if octave <= FINE_CLASSES_FROM:
        return octave
    step = octave // 8
    return -(-size // step) * step


@functools.lru_cache(maxsize=1024)
def classes_of(sizes: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The block sizes of a program's values, where no block is larger than `most`."""
    return tuple([min(class_of(size), most) for size in sizes])


class Memory:
    """Bytes on a device, which return to the pool when nothing refers to this object any more.

    Attributes:
        key: the number of the block that holds them.
        size: in bytes.
    """

    __slots__ = ("__weakref__", "_returned", "key", "size")

    def __init__(self, key: int, size: int, returned: deque[int]) -> None:
        self.key = key
        self.size = size
        self._returned = returned

    def __del__(self) -> None:
        """Return the block.  This runs wherever Python collects garbage, so it takes no lock."""
        self._returned.append(self.key)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a memory, bound to a kernel.

    Attributes:
        memory: the memory that it is a part of.
        offset: of the window; a multiple of the device's `min-storage-buffer-offset-alignment`.
        size: in bytes, a multiple of 4.
    """

    memory: Memory
    offset: int
    size: int

    @property
    def key(self) -> tuple[int, int, int]:
        """The number of the block, and the part of it."""
        return self.memory.key, self.offset, self.size


@dataclass(slots=True, eq=False)
class Block:
    """A buffer of the driver.

    Attributes:
        buffer: of the driver.
        size: in bytes.
        returned: when it was last returned, counted in submissions.
    """

    buffer: Any
    size: int
    returned: int = 0


class Pool:
    """The blocks of a device, by number.

    Only the pool refers to buffers, so Python's garbage collection never releases a buffer that will be reused.
    Pending kernels may still read a returned block: it is *dirty* until they have been submitted.  Later kernels may
    write into a dirty block, as they run afterwards; the host must not, as its data is sent first.  Buffers are never
    destroyed: they are released, and the driver keeps a buffer while submitted work uses it.

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
        self._peaks = [0, 0]  # peak use in the previous and in the current window of submissions

    @property
    def used(self) -> int:
        """Bytes of the blocks in use."""
        return self.total - self.idle

    def class_of(self, size: int) -> int:
        """The size of the block that holds this many bytes."""
        return min(class_of(size), self.most)

    # ---- taking and returning ------------------------------------------------------------------------------

    def take(self, size: int, clean: bool) -> Memory | None:
        """Memory in an idle block, or None; the lowest number first, so that loops reuse the same blocks.

        Args:
            size: in bytes.
            clean: whether no pending kernel may use it.
        """
        return self.take_all((size,), clean)[0]

    def take_all(self, sizes: tuple[int, ...], clean: bool) -> list[Memory | None]:
        """Memory for each of these sizes."""
        returned, clean_heaps = self.returned, self._clean
        dirty_heaps = {} if clean else self._dirty
        memories: list[Memory | None] = []
        for size, block_size in zip(sizes, classes_of(sizes, self.most), strict=True):
            heap = clean_heaps.get(block_size)
            if dirty_heaps:
                dirty = dirty_heaps.get(block_size)
                if dirty and (not heap or dirty[0] < heap[0]):
                    heap = dirty
            if heap:
                self.idle -= block_size
                memories.append(Memory(heappop(heap), size, returned))
            else:
                memories.append(None)
        self._note_peak()
        return memories

    def add(self, buffer: Any, size: int) -> Memory:
        """Memory in a new block."""
        number, block_size = next(_numbers), self.class_of(size)
        self.blocks[number] = Block(buffer, block_size)
        self.total += block_size
        self._note_peak()
        return Memory(number, size, self.returned)

    def collect(self, is_pending: bool) -> None:
        """Take back returned blocks.

        Args:
            is_pending: whether kernels are pending, which may use them.
        """
        heaps = self._dirty if is_pending else self._clean
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

    def _note_peak(self) -> None:
        used = self.used
        if used > self._peaks[1]:
            self._peaks[1] = used
            self.peak = max(self.peak, used)

    # ---- releasing -----------------------------------------------------------------------------------------

    def submitted(self) -> set[int]:
        """Record that pending work was submitted; returns the numbers of blocks released because too many are idle."""
        clean = self._clean
        dirty, self._dirty = self._dirty, {}  # first: an interruption must leave no block in both
        for block_size, numbers in dirty.items():
            heap = clean.get(block_size)
            if heap:
                for number in numbers:
                    heappush(heap, number)
            else:
                clean[block_size] = numbers
        self._submissions += 1
        if self._submissions % PEAK_WINDOW:
            return set()
        self._peaks = [self._peaks[1], self.used]
        return self.trim(0)

    def trim(self, size: int) -> set[int]:
        """Release the blocks idle the longest until this many more bytes fit; returns their numbers."""
        bound = int(MAX_GROWTH * max(*self._peaks, self.used + size)) + MIN_IDLE
        return self.release(lambda: self.total + size > bound)

    def release(self, more: Callable[[], bool] = lambda: True) -> set[int]:
        """Release clean blocks, the longest idle first, while `more()`; returns their numbers."""
        released: set[int] = set()
        if more():
            for number in self._by_age():
                if not more():
                    break
                block = self.blocks[number]
                self.total -= block.size
                self.idle -= block.size
                released.add(number)
            kept = {
                block_size: [n for n in heap if n not in released] for block_size, heap in self._clean.items()
            }
            for heap in kept.values():
                heapify(heap)
            self._clean = kept  # first: an interruption must leave no idle number without a block
            for number in released:
                del self.blocks[number]
        return released

    def _by_age(self) -> Iterator[int]:
        clean = [number for heap in self._clean.values() for number in heap]
        yield from sorted(clean, key=lambda n: (self.blocks[n].returned, -self.blocks[n].size))
