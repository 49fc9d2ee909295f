"""Staging: buffers that the host maps, through which data goes to and from a device, kept for reuse.

A driver takes long to create a large buffer that both sides can access.  Large data passes in parts through two
buffers of each direction: the device copies one part while the host copies the other.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import wgpu

from tensorken_wgpu.device.memory import SMALLEST, class_of

PART = 2**25
"""The bytes of a part; data of more bytes is read and written in parts."""

IN_FLIGHT = 2
"""The parts on their way at once."""

MAX_SHARED = 2**22
"""Of smaller buffers any number is kept, as threads may read at once; of larger ones `IN_FLIGHT`."""

_READ = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
_WRITE = wgpu.BufferUsage.MAP_WRITE | wgpu.BufferUsage.COPY_SRC


class Staging:
    """The staging buffers of a device.  The queue's lock must be held.

    Args:
        device: of the driver.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._to_read: dict[int, list[Any]] = {}
        self._to_write: deque[tuple[Any, int | None]] = deque()

    def take_to_read(self, size: int) -> Any:
        """A buffer of at least this many bytes, which is not in use.

        Raises:
            GPUError: if the driver has no memory for it.
        """
        buffer_size = class_of(size)
        buffers = self._to_read.get(buffer_size)
        return buffers.pop() if buffers else self._device.create_buffer(size=buffer_size, usage=_READ)

    def return_read(self, buffer: Any) -> None:
        """Take back a buffer that was read and is unmapped."""
        buffers = self._to_read.setdefault(buffer.size, [])
        if buffer.size <= MAX_SHARED or (len(buffers) < IN_FLIGHT and buffer.size <= PART):
            buffers.append(buffer)

    def take_to_write(self) -> tuple[Any, int | None]:
        """A buffer of `PART` bytes, and the number of the submission that copies from it, if there is one.

        Raises:
            GPUError: if the driver has no memory for it.
        """
        if len(self._to_write) >= IN_FLIGHT:
            return self._to_write.popleft()
        return self._device.create_buffer(size=PART, usage=_WRITE), None

    def return_written(self, buffer: Any, submission: int | None) -> None:
        """Take back a buffer that a submission copies from."""
        self._to_write.append((buffer, submission))

    def release(self) -> None:
        """Release all buffers but the smallest, with which the host waits for the device."""
        self._to_read = {SMALLEST: self._to_read.get(SMALLEST, [])}
        self._to_write.clear()
