"""The queue of a device: pending kernels and copies, submissions in flight, and reads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import wgpu

from tensorken_core.errors import BackendError
from tensorken_wgpu.device.bind_groups import BindGroups
from tensorken_wgpu.device.device_state import DeviceState
from tensorken_wgpu.device.encoding import Command, Copy, Step, encode, is_direct, submit_commands
from tensorken_wgpu.device.failures import is_exhausted, reason
from tensorken_wgpu.device.memory import SMALLEST, Pool
from tensorken_wgpu.device.reading import read, read_into, uncleared, write
from tensorken_wgpu.device.staging import IN_FLIGHT, PART, Staging

MAX_PENDING = 256
"""The most kernels and copies that are pending before they are submitted."""

MAX_NEW_BYTES = 2**28
"""The most bytes of memory that are allocated or written before pending work is submitted."""

MAX_IN_FLIGHT = 32
"""The most submissions in flight before the host waits: a driver keeps the memory of each."""


class Queue:
    """The work of a device, in order.

    Kernels, and copies between memories, are pending until something is read or many are pending; then they go to
    the device in one submission.

    Args:
        device: of the driver.
        state: of the device.
        pool: its memory.
        groups: its bind groups.

    Attributes:
        lock: held by callers of methods that require it, and during any other change of the device.
        pending: kernels and copies that are not submitted yet, and the numbers of steps before their kernels.
        counts: of operations, by name.

    Raises:
        GPUError: if the driver has no memory for it.
    """

    def __init__(self, device: Any, state: DeviceState, pool: Pool, groups: BindGroups) -> None:
        self._device = device
        self._driver = device.queue
        self._state = state
        self._pool = pool
        self._groups = groups
        self._fence = device.create_buffer(size=SMALLEST, usage=wgpu.BufferUsage.COPY_SRC)
        self._staging = Staging(device)
        self._new_bytes = 0  # bytes allocated or written since the last submission
        self._written_bytes = 0  # bytes written that may still be in flight
        self._in_flight = 0  # submissions
        self.lock = threading.RLock()
        self.pending: list[Command] = []
        self.counts = {"kernels": 0, "copies": 0, "submissions": 0, "reads": 0, "writes": 0, "waits": 0}

    # ---- submitting ----------------------------------------------------------------------------------------

    def add(self, commands_to_encode: Sequence[Command], step: int | None = None) -> None:
        """Add kernels and copies to the pending work; submit it if there is much.  The lock must be held.

        Args:
            commands_to_encode: the kernels and copies.
            step: the number of the loop's step that they are a part of.

        Raises:
            BackendError: as for `submit`.
        """
        for start in range(0, len(commands_to_encode), MAX_PENDING):
            if step is not None:
                self.pending.append(Step(step))
            self.pending += commands_to_encode[start : start + MAX_PENDING]
            if len(self.pending) >= MAX_PENDING or self._new_bytes > MAX_NEW_BYTES:
                self.submit()

    def note_allocation(self, size: int) -> None:
        """Record an allocation.  The lock must be held."""
        self._new_bytes += size

    def write(self, buffer: Any, data: memoryview) -> None:
        """Write bytes into a buffer that no pending kernel uses.  The lock must be held.

        Args:
            buffer: of the driver.
            data: of any size; up to three bytes after them are written, too.

        Raises:
            BackendError: if the device is lost, or has no memory left for the data.
        """
        aligned = len(data) & ~3
        try:
            if aligned > PART:
                self._write_parts(buffer, data[:aligned])
            elif aligned:
                self._driver.write_buffer(buffer, 0, data[:aligned])
            if aligned < len(data):
                self._driver.write_buffer(buffer, aligned, bytes(data[aligned:]).ljust(4, b"\0"))
        except (wgpu.GPUError, RuntimeError) as error:
            if isinstance(error, BackendError):
                raise
            raise self._state.driver_error(error, f"cannot write {len(data)} bytes") from error
        self.counts["writes"] += 1
        self._new_bytes += len(data)
        self._written_bytes += len(data)
        if self._new_bytes > MAX_NEW_BYTES:
            self._submit()
            self._limit_in_flight()

    def _write_parts(self, buffer: Any, data: memoryview) -> None:
        """Write large data in parts: the device copies one while the host copies the next."""
        for start in range(0, len(data), PART):
            part = data[start : start + PART]
            staging, submission = self._staging.take_to_write()
            write(part, self._device, staging, submission)
            submission = self._submit(Copy(staging, 0, buffer, start, len(part)))
            self._staging.return_written(staging, submission)

    def submit(self) -> None:
        """Submit pending work.

        Raises:
            BackendError: if the device is lost.
        """
        with self.lock:
            self._state.check()
            if self.pending:
                self._submit()
                self._limit_in_flight()

    def _submit(self, copy: Copy | None = None) -> int | None:
        """Submit pending work and written data, even if there is none, followed by a copy between buffers.

        Returns the number of the submission, if the driver has one.
        """
        self._state.check()
        pool = self._pool
        pool.collect(bool(self.pending))
        commands_to_encode = [*self.pending, copy] if copy is not None else self.pending
        try:
            commands = encode(self._device, commands_to_encode)
        except wgpu.GPUError as error:
            if not is_exhausted(error):
                raise self._state.mark_lost(f"it refused pending work: {reason(error)}") from error
            self.release_idle()
            try:
                commands = encode(self._device, commands_to_encode)
            except wgpu.GPUError as again:  # the work stays pending
                raise self._state.driver_error(again, "cannot submit pending work") from again
        numbers: list[int | None] = []
        try:
            submit_commands(self._driver, commands, numbers)
            self._note_submission()
        except BaseException as error:
            # A signal, such as Ctrl-C, may come at any time: kernels that run twice or not at all give wrong numbers.
            if isinstance(error, wgpu.GPUError) or not (numbers or is_direct(self._driver)):
                self._state.mark_lost(f"{type(error).__name__} during a submission")
            elif numbers:
                self._note_submission()
            raise
        return numbers[0]

    def _note_submission(self) -> None:
        """Record that pending work was submitted; a second call in turn changes nothing."""
        done, self.pending = self.pending, []
        types = [type(one) for one in done]
        copies = types.count(Copy)
        self.counts["kernels"] += len(types) - copies - types.count(Step)
        self.counts["copies"] += copies
        self.counts["submissions"] += 1
        self._in_flight += 1
        self._new_bytes = 0
        self._groups.forget(self._pool.submitted())

    # ---- waiting -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Submit pending work, wait for it, and release all idle memory.

        Raises:
            BackendError: as for `submit`.
        """
        with self.lock:
            self._submit()
            self.release_idle()
            self.wait()  # lets the driver free the memory

    def release_idle(self) -> None:
        """Release all idle memory.  The lock must be held."""
        self._pool.collect(bool(self.pending))
        self._groups.forget(self._pool.release())
        self._staging.release()

    def _limit_in_flight(self) -> None:
        """Wait for the device if much is in flight."""
        if self._in_flight >= MAX_IN_FLIGHT or self._written_bytes > MAX_NEW_BYTES:
            self.counts["waits"] += 1
            self.wait()

    def wait(self) -> None:
        """Submit pending work, and wait for it.

        Raises:
            BackendError: as for `fetch`.
        """
        self.fetch(self._fence, 0, 4)

    def fetch(self, buffer: Any, start: int, size: int) -> memoryview:
        """Bytes of a buffer once all pending work is done; other threads may continue meanwhile.

        Raises:
            BackendError: if the device is lost, or has no memory left for the read.
        """
        padded = size + -size % 4
        try:
            staging, number = self._request(buffer, start, padded)
            data = read(self._device, staging, padded, number)
        except (wgpu.GPUError, RuntimeError) as error:
            raise self._read_error(error, size) from error
        with self.lock:
            self._staging.return_read(staging)
        return data[:size]

    def fetch_parts(self, buffer: Any, size: int) -> memoryview:
        """The first bytes of a buffer, as `fetch`, in parts: the device copies one while the host copies another.

        Raises:
            BackendError: as for `fetch`.
        """
        padded = size + -size % 4
        result = uncleared(padded)
        requested: deque[tuple[int, Any, int | None]] = deque()
        starts = deque(range(0, padded, PART))
        try:
            while starts or requested:
                if starts and len(requested) < IN_FLIGHT:
                    start = starts.popleft()
                    requested.append((start, *self._request(buffer, start, min(PART, padded - start))))
                    continue
                start, staging, number = requested.popleft()
                read_into(result[start : min(start + PART, padded)], self._device, staging, number)
                with self.lock:
                    self._staging.return_read(staging)
        except (wgpu.GPUError, RuntimeError) as error:
            raise self._read_error(error, size) from error
        return result[:size]

    def _request(self, buffer: Any, start: int, size: int) -> tuple[Any, int | None]:
        """Submit pending work and a copy to a staging buffer; returns the latter and the submission's number."""
        with self.lock:
            self._state.check()
            staging = self._staging.take_to_read(size)
            number = self._submit(Copy(buffer, start, staging, 0, size))
            self.counts["reads"] += 1
            self._in_flight = self._written_bytes = 0
        return staging, number

    def _read_error(self, error: Exception, size: int) -> Exception:
        if isinstance(error, BackendError):
            return error
        return self._state.driver_error(error, f"cannot read {size} bytes")
