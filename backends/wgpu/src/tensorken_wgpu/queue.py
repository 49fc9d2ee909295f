"""Queue: kernels and copies that wait to be handed to a device, what is under way there, and what is read from it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import wgpu

from tensorken_core.errors import BackendError
from tensorken_wgpu.encoding import Copy, Work, encoded, hand_over
from tensorken_wgpu.failures import is_exhausted, reason
from tensorken_wgpu.groups import Groups
from tensorken_wgpu.life import Life
from tensorken_wgpu.memories import SMALLEST, Pool, class_of
from tensorken_wgpu.reading import read

WAITING = 256
"""How many kernels and copies may wait before they are handed over."""

NEW = 2**28
"""How many bytes of new memory may be made, or written, before what waits is handed over."""

UNDER_WAY = 32
"""How many submissions may be under way before the host waits for the device: a driver keeps what each of them uses."""

KEPT = 2**22
"""Buffers for reading that are as large at most are kept."""

_STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


class Queue:
    """The work of a device, in order.

    Kernels, and copies between memories, wait until something is read or many wait; then they go to the device in one
    submission.

    Args:
        device: the driver's.
        life: the device's.
        pool: its memory.
        groups: its bind groups.

    Attributes:
        lock: to be held by whoever calls what says so, or changes anything else of the device.
        waiting: the kernels and copies that wait.
        counts: what has been done, by name.

    Raises:
        GPUError: if the driver has no memory for it.
    """

    def __init__(self, device: Any, life: Life, pool: Pool, groups: Groups) -> None:
        self._device = device
        self._driver = device.queue
        self._life = life
        self._pool = pool
        self._groups = groups
        self._fence = device.create_buffer(size=SMALLEST, usage=wgpu.BufferUsage.COPY_SRC)
        self._staging: dict[int, list[Any]] = {}
        self._new = 0  # bytes that were made or written since the last submission
        self._written = 0  # bytes that were written and are perhaps still under way
        self._under_way = 0  # submissions
        self.lock = threading.RLock()
        self.waiting: list[Work] = []
        self.counts = {"kernels": 0, "copies": 0, "submissions": 0, "reads": 0, "writes": 0, "waits": 0}

    # ---- handing over --------------------------------------------------------------------------------------

    def add(self, work: Sequence[Work]) -> None:
        """Have kernels and copies wait, and hand over what waits where that is much.  Under the lock.

        Raises:
            BackendError: as for `submit`.
        """
        for start in range(0, len(work), WAITING):
            self.waiting += work[start : start + WAITING]
            if len(self.waiting) >= WAITING or self._new > NEW:
                self.submit()

    def made(self, size: int) -> None:
        """Note that so many bytes of new memory were made.  Under the lock."""
        self._new += size

    def write(self, buffer: Any, data: memoryview) -> None:
        """Write bytes into a buffer to which no kernel refers that waits.  Under the lock.

        Raises:
            BackendError: if the device is lost.
        """
        try:
            self._driver.write_buffer(buffer, 0, data)
        except wgpu.GPUError as error:
            raise self._life.failure(error, f"{len(data)} bytes cannot be written") from error
        self.counts["writes"] += 1
        self._new += len(data)
        self._written += len(data)
        if self._new > NEW:
            self._submit()
            self._bound()

    def submit(self) -> None:
        """Hand over what waits.

        Raises:
            BackendError: if the device is lost.
        """
        with self.lock:
            self._life.check()
            if self.waiting:
                self._submit()
                self._bound()

    def _submit(self, copy: Copy | None = None) -> int | None:
        """Hand over what waits, and then a copy between buffers; also what was written, even if nothing waits.

        By what number to wait for it, if it has one.
        """
        self._life.check()
        pool = self._pool
        pool.collect(bool(self.waiting))
        work = [*self.waiting, copy] if copy is not None else self.waiting
        try:
            commands = encoded(self._device, work)
        except wgpu.GPUError as error:
            if not is_exhausted(error):
                raise self._life.lose(f"it refused what waited: {reason(error)}") from error
            self.let_go()
            try:
                commands = encoded(self._device, work)
            except wgpu.GPUError as again:  # what waits goes on waiting
                raise self._life.failure(again, "what waits cannot be handed over") from again
        try:
            number = hand_over(self._driver, commands)
            copies = [type(one) for one in self.waiting].count(Copy)
            self.counts["kernels"] += len(self.waiting) - copies
            self.counts["copies"] += copies
            self.counts["submissions"] += 1
            self._under_way += 1
            self._new = 0
            self.waiting = []
        except BaseException as error:
            # An interruption too: run twice or not at all, kernels give wrong numbers.
            self._life.lose(f"{type(error).__name__} while work was handed over")
            raise
        self._groups.forget(pool.submitted())
        return number

    # ---- waiting -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Hand over what waits, have all of it done, and let go of all that lies idle.

        Raises:
            BackendError: as for `submit`.
        """
        with self.lock:
            self._submit()
            self.let_go()
            self._wait()  # so that the driver notices

    def let_go(self) -> None:
        """Let go of all memory that lies idle.  Under the lock."""
        self._pool.collect(bool(self.waiting))
        self._groups.forget(self._pool.release())
        self._staging = {SMALLEST: self._staging.get(SMALLEST, [])}  # to wait must remain possible

    def _bound(self) -> None:
        """Wait for the device if much is under way."""
        if self._under_way >= UNDER_WAY or self._written > NEW:
            self.counts["waits"] += 1
            self._wait()

    def _wait(self) -> None:
        self.fetched(self._fence, 0, 4)

    def fetched(self, buffer: Any, start: int, size: int) -> memoryview:
        """Bytes of a buffer once all that waits is done; other threads may go on meanwhile.

        Raises:
            BackendError: if the device is lost, or has no memory left for what is read.
        """
        whole = size + -size % 4
        place = class_of(whole)
        try:
            with self.lock:
                self._life.check()
                kept = self._staging.get(place)
                staging = kept.pop() if kept else self._device.create_buffer(size=place, usage=_STAGING)
                number = self._submit(Copy(buffer, start, staging, 0, whole))
                self.counts["reads"] += 1
                self._under_way = self._written = 0
            found = read(self._device, staging, whole, number)
        except (wgpu.GPUError, RuntimeError) as error:
            if isinstance(error, BackendError):
                raise
            raise self._life.failure(error, f"{size} bytes cannot be read") from error
        if place <= KEPT:
            self._staging.setdefault(place, []).append(staging)
        return found[:size]
