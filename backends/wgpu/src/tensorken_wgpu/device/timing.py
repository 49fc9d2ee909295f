"""Timing: the seconds that kernels take on a device.

A device with timestamps measures by its own clock, from the start of the first kernel to the end of the last one, so
the time of the host and of the submission does not count.  On other devices the host measures from the submission
until the device reports that it is done.  Timestamps that the host's clock contradicts are not used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import wgpu

from tensorken_wgpu.device.device_state import DeviceState
from tensorken_wgpu.device.encoding import Dispatch, Step, encode_pass_documented
from tensorken_wgpu.device.limits import IMMEDIATES
from tensorken_wgpu.device.queue import Queue

TIMESTAMPS = "timestamp-query"
"""The feature of devices with timestamps."""


class Timer:
    """Measures kernels on a device.

    Args:
        device: of the driver.
        state: of the device.
        queue: its queue.
        features: enabled on the device.

    Attributes:
        has_timestamps: whether the device measures by its own clock.
    """

    def __init__(self, device: Any, state: DeviceState, queue: Queue, features: Collection[str]) -> None:
        self._device = device
        self._state = state
        self._queue = queue
        self._tick = _seconds_per_tick(device) if TIMESTAMPS in features else None
        self._step = 0 if IMMEDIATES in features else None  # for kernels of a loop's step
        self._queries: Any = None
        self._resolved: Any = None

    @property
    def has_timestamps(self) -> bool:
        """Whether the device measures by its own clock."""
        return self._tick is not None

    def seconds(self, dispatches: Sequence[Dispatch]) -> float:
        """The seconds that kernels take, which run in order once all pending work is done.

        Kernels of a loop's step run step 0.

        Raises:
            BackendError: if the device is lost, or has no memory left.
        """
        with self._queue.lock:
            self._queue.wait()
            start = time.perf_counter()
            if self._tick is None:
                self._queue.add(dispatches, self._step)
                self._queue.wait()
                return time.perf_counter() - start
            ticks = self._ticks(dispatches)
            host, seconds = time.perf_counter() - start, ticks * self._tick
            if not 0 < seconds <= host:
                self._tick = None
                return host
            return seconds

    def _ticks(self, dispatches: Sequence[Dispatch]) -> int:
        """The ticks between the start and the end of a pass with these kernels."""
        try:
            if self._queries is None:
                usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
                self._resolved = self._device.create_buffer(size=256, usage=usage)
                self._queries = self._device.create_query_set(type="timestamp", count=2)
            encoder = self._device.create_command_encoder()
            compute = encoder.begin_compute_pass(
                timestamp_writes={
                    "query_set": self._queries,
                    "beginning_of_pass_write_index": 0,
                    "end_of_pass_write_index": 1,
                }
            )
            steps = [] if self._step is None else [Step(self._step)]
            encode_pass_documented(compute, [*steps, *dispatches])
            encoder.resolve_query_set(self._queries, 0, 2, self._resolved, 0)
            self._device.queue.submit([encoder.finish()])
        except wgpu.GPUError as error:
            raise self._state.driver_error(error, "cannot measure kernels") from error
        begin, end = self._queue.fetch(self._resolved, 0, 16).cast("Q")
        return int(end - begin)


def _seconds_per_tick(device: Any) -> float | None:
    """The seconds of one tick of a device's clock; None if wgpu does not tell them."""
    try:
        from wgpu.backends.wgpu_native import lib

        period: Callable[[Any], float] = lib.wgpuQueueGetTimestampPeriod
        nanoseconds = float(period(device.queue._internal))
    except (ImportError, AttributeError):
        return None
    return nanoseconds * 1e-9 if nanoseconds > 0 else None
