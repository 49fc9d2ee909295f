"""Device: an opened GPU, its memory and its kernels."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import wgpu

from tensorken_core.errors import BackendError
from tensorken_wgpu.device import forks
from tensorken_wgpu.device.adapters import choice, find_again, name_of
from tensorken_wgpu.device.bind_groups import BindGroups, Uniform
from tensorken_wgpu.device.device_state import DeviceState
from tensorken_wgpu.device.encoding import Copy, Dispatch
from tensorken_wgpu.device.failures import ExhaustedError, KernelError, is_exhausted, is_lost, reason
from tensorken_wgpu.device.limits import (
    IMMEDIATES,
    MAX_BINDINGS,
    capacity_of,
    exceeded_limit,
    features_of,
    limits_of,
)
from tensorken_wgpu.device.memory import Memory, Pool, Window
from tensorken_wgpu.device.pipelines import Pipeline, Pipelines, Source
from tensorken_wgpu.device.queue import Queue
from tensorken_wgpu.device.staging import PART
from tensorken_wgpu.device.timing import Timer

__all__ = ["Device", "Memory", "Pipeline", "Source", "Uniform", "Window"]

_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class Device:
    """An opened GPU.

    Kernels are pending, in order, until something is read or many are pending; then one submission sends them to
    the GPU.  Freed memory is reused by later kernels, in that order.  Several threads may use a device.

    Args:
        adapter: of wgpu.
        lost_reason: why the previous device was lost, if this one replaces it.

    Attributes:
        name: of the device, with its driver.
        hardware: the name of the device and the graphics API, without the driver.
        driver: the driver and its version, as it describes itself.
        choice: the name by which users select it, unique among identical devices.
        limits: the relevant ones, by wgpu's names.
        features: enabled on the device.
        is_software: whether the processor emulates a GPU.
        capacity: bytes of its memory, where known.

    Raises:
        BackendError: if it cannot be opened.
    """

    def __init__(self, adapter: Any, lost_reason: str | None = None) -> None:
        self._adapter = adapter
        self.name = name_of(adapter)
        forks.check_not_forked(self.name)
        self.hardware = f"{adapter.info['device']} ({adapter.info['backend_type']})"
        self.driver = str(adapter.info["description"])
        self.choice = choice(adapter)
        self.limits = limits_of(adapter)
        self.features = features_of(adapter)
        self.is_software = adapter.info["adapter_type"] == "CPU"
        self.capacity = capacity_of(adapter)
        self._state = DeviceState(self.name, lost_reason)
        self._next: Device | None = None
        self._pool = Pool(self.limits["max-buffer-size"] & ~3)
        self._uniforms: weakref.WeakValueDictionary[bytes, Uniform] = weakref.WeakValueDictionary()
        self._most_groups = self.limits["max-compute-workgroups-per-dimension"]
        try:
            self._device = adapter.request_device_sync(
                required_features=sorted(self.features), required_limits=self.limits
            )
            self._pipelines = Pipelines(self._device, 4 if self.has_steps else 0)
            self._groups = BindGroups(self._device, self.limits, self._pool.blocks)
            self._queue = Queue(self._device, self._state, self._pool, self._groups)
            self._timer = Timer(self._device, self._state, self._queue, self.features)
        except (RuntimeError, wgpu.GPUError) as error:
            raise BackendError(f"wgpu: {self.name} cannot be opened: {reason(error)}") from error
        self._lock = self._queue.lock
        forks.register_device(self)

    def __repr__(self) -> str:
        return f"Device({self.choice!r})"

    @property
    def has_steps(self) -> bool:
        """Whether kernels can get the number of a loop's step when they run."""
        return IMMEDIATES in self.features

    @property
    def bindings(self) -> int:
        """The most memories of a kernel, read and written."""
        return min(self.limits["max-storage-buffers-per-shader-stage"], MAX_BINDINGS)

    @property
    def statistics(self) -> dict[str, int]:
        """Counters, and the current state.

        `kernels`, `copies` (between memories), `submissions`, `pipelines` (created), `reads`, `writes` and `waits`
        (for the device, as too much was in flight) are counters; `bind_groups` are cached; `bytes` of memory exist,
        of which `used` are in use, and at most `peak` have been in use at once.
        """
        with self._lock:
            pool = self._pool
            pool.collect(bool(self._queue.pending))
            return self._queue.counts | {
                "pipelines": self._pipelines.count,
                "bytes": pool.total,
                "used": pool.used,
                "peak": pool.peak,
                "bind_groups": len(self._groups),
            }

    # ---- memory --------------------------------------------------------------------------------------------

    def check_size(self, size: int) -> None:
        """Check that one memory may have this many bytes.

        Raises:
            BackendError: if not.
        """
        most = self._pool.most
        if size > most:
            raise BackendError(
                f"wgpu: a tensor of {size} bytes, but {self.name} takes at most {most} (max-buffer-size); split it"
            )

    def allocate(self, size: int) -> Memory:
        """Memory of this many bytes, with undefined contents.

        Raises:
            BackendError: if it exceeds the device's limit, or no memory is left.
        """
        return self._memory(size, clean=False)

    def allocate_all(self, sizes: tuple[int, ...]) -> list[Memory]:
        """Memory of each of these sizes.

        Raises:
            BackendError: as for `allocate`.
        """
        with self._lock:
            self._state.check()
            self._pool.collect(bool(self._queue.pending))
            memories: list[Any] = self._pool.take_all(sizes, clean=False)
        if None in memories:
            for i, memory in enumerate(memories):
                if memory is None:
                    memories[i] = self._memory(sizes[i], clean=False)
        return memories

    def upload(self, data: Any) -> Memory:
        """Memory that begins with these bytes; up to `PART` bytes neither submit pending work nor wait.

        Raises:
            BackendError: as for `allocate`.
        """
        flat = memoryview(data).cast("B")
        memory = self._memory(len(flat) + -len(flat) % 4, clean=True)
        if flat:
            with self._lock:
                self._queue.write(self._buffer(memory), flat)
        return memory

    def read(self, memory: Memory, size: int) -> memoryview:
        """The first bytes of a memory, once all pending work is done.

        Raises:
            BackendError: if the device is lost.
        """
        buffer = self._buffer(memory)
        if not size:
            return memoryview(b"")
        return self._queue.fetch(buffer, 0, size) if size <= PART else self._queue.fetch_parts(buffer, size)

    def copy(self, copies: Sequence[tuple[Memory, int, Memory, int, int]]) -> None:
        """Copy bytes between memories, in order with pending kernels.

        Args:
            copies: for each a source and an offset in it, a target and an offset in it, and the number of bytes.
                All three numbers are multiples of 4.

        Raises:
            BackendError: if the device is lost, or a memory is on another device.
        """
        with self._lock:
            self._state.check()
            commands = [
                Copy(self._buffer(source), start, self._buffer(target), offset, size)
                for source, start, target, offset, size in copies
            ]
            self._queue.add(commands)

    def _memory(self, size: int, clean: bool) -> Memory:
        self._state.check()
        self.check_size(size)
        with self._lock:
            memory = self._take_or_create(size, clean)
        if memory is None:
            self._release_all()
            with self._lock:
                memory = self._take_or_create(size, clean)
        if memory is None:
            raise self._exhausted(size)
        return memory

    def _take_or_create(self, size: int, clean: bool) -> Memory | None:
        """Idle or new memory; None if no memory is left."""
        pool = self._pool
        pool.collect(bool(self._queue.pending))
        memory = pool.take(size, clean)
        if memory is not None:
            return memory
        block_size = pool.class_of(size)
        self._groups.forget(pool.trim(block_size))
        if self.capacity is not None and pool.total + block_size > self.capacity:
            return None
        try:
            buffer = self._device.create_buffer(size=block_size, usage=_STORAGE)
        except wgpu.GPUError as error:
            if is_exhausted(error):
                return None
            raise self._state.driver_error(error, f"cannot allocate {block_size} bytes") from error
        self._queue.note_allocation(block_size)
        return pool.add(buffer, size)

    def _release_all(self) -> None:
        """Finish all pending work, and release all memory that is garbage or idle."""
        gc.collect()  # not under the lock: finalizers may wait for other threads
        self._queue.finish()

    def _exhausted(self, size: int) -> ExhaustedError:
        total = f" of {self.capacity}" if self.capacity is not None else ""
        return ExhaustedError(
            f"wgpu: {self.name} has no {size} bytes left, {self._pool.used}{total} are in use; delete tensors that "
            "are not needed any more, or compute in smaller parts"
        )

    def _buffer(self, memory: Memory) -> Any:
        try:
            return self._pool.blocks[memory.key].buffer
        except KeyError:
            raise self._state.foreign_error() from None

    # ---- kernels -------------------------------------------------------------------------------------------

    def uniform(self, data: bytes) -> Uniform:
        """A constant with these bytes; equal constants are shared while any of them is referenced.

        Raises:
            BackendError: if their number is not a multiple of 16, or too large.
        """
        most = self.limits["max-uniform-buffer-binding-size"]
        if not data or len(data) % 16 or len(data) > most:
            raise BackendError(
                f"wgpu: a uniform of {len(data)} bytes; they must be a multiple of 16, and at most {most} "
                "(max-uniform-buffer-binding-size)"
            )
        with self._lock:
            uniform = self._uniforms.get(data)
            if uniform is None:
                self._state.check()
                try:
                    buffer = self._device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
                except wgpu.GPUError as error:
                    raise self._state.driver_error(
                        error, f"cannot allocate a uniform of {len(data)} bytes"
                    ) from error
                uniform = self._uniforms[data] = Uniform(buffer, len(data))
            return uniform

    def pipeline(self, text: str, reads: int, writes: int, is_proved: bool = False) -> Pipeline:
        """A kernel, compiled at the first call; see `Source`.

        Args:
            text: in WGSL; `main` is its entry point, binding 0 a uniform.
            reads: the number of memories that it only reads: the bindings from 1 on.
            writes: the number of memories that it writes, or reads and writes: the last bindings.
            is_proved: whether it needs no run-time checks, see `modules`.

        Raises:
            KernelError: if it is refused.
        """
        source = Source(text, reads, writes, is_proved)
        with self._lock:
            pipeline = self._pipelines.cached(source)
            if pipeline is not None:
                return pipeline
            self._state.check()
            too_much = self._exceeded(source)
            if too_much is not None:
                raise KernelError(self.name, too_much, text)
            try:
                return self._pipelines.make(source)
            except wgpu.GPUError as error:
                if is_lost(error) or is_exhausted(error):
                    raise self._state.driver_error(error, "cannot make a kernel") from error
                raise KernelError(self.name, reason(error), text) from error

    def compile(self, sources: Collection[Source]) -> None:
        """Compile kernels that are not cached, several at once; `pipeline` raises the errors of those that are refused.

        Raises:
            BackendError: if the device is lost.
        """
        with self._lock:
            self._state.check()
            missing = self._pipelines.missing(sources)
            if len(missing) > 1:
                self._pipelines.make_all([source for source in missing if self._exceeded(source) is None])

    def _exceeded(self, source: Source) -> str | None:
        """The first limit that a kernel exceeds; None if none is found."""
        bindings = source.reads + source.writes
        if bindings > self.bindings:
            return f"{bindings} memories, of at most {self.bindings} (max-storage-buffers-per-shader-stage)"
        return exceeded_limit(source.text, self.limits)

    def run(
        self,
        pipeline: Pipeline,
        uniform: Uniform,
        memories: Sequence[Memory | Window],
        workgroups: tuple[int, int, int],
    ) -> None:
        """Add a kernel to the pending work.

        Args:
            pipeline: the kernel.
            uniform: its binding 0.
            memories: its other bindings, in order: the memories that it reads, then the memories that it writes.
            workgroups: their number along three axes.

        Raises:
            BackendError: if the memories cannot be bound, there are too many workgroups, or the device is lost.
        """
        with self._lock:
            self._queue.add([self.make_dispatch(pipeline, uniform, memories, workgroups)])

    def make_dispatch(
        self,
        pipeline: Pipeline,
        uniform: Uniform,
        memories: Sequence[Memory | Window],
        workgroups: tuple[int, int, int],
    ) -> Dispatch:
        """The dispatch of a kernel; see `run`."""
        most = self._most_groups
        x, y, z = workgroups
        if x > most or y > most or z > most:
            raise BackendError(
                f"wgpu: a kernel of {workgroups} workgroups; along each axis there may be {most} "
                "(max-compute-workgroups-per-dimension)"
            )
        with self._lock:
            self._state.check()
            try:
                group = self._groups.bind_group(pipeline.layout, uniform, memories)
            except KeyError:
                raise self._state.foreign_error() from None
            except wgpu.GPUError as error:
                raise self._state.driver_error(error, "cannot bind memories to a kernel") from error
        return pipeline.compiled, group, workgroups

    def repeat(
        self, key: Hashable, make_dispatches: Callable[[], list[Dispatch]], step: int | None = None
    ) -> list[Dispatch]:
        """Add kernels that are run repeatedly, in order, to the pending work, and return them.

        Args:
            key: identifies the kernels and their memories.
            make_dispatches: called if they are not cached.
            step: the number of the loop's step that they are a part of.

        Raises:
            BackendError: as for `run`.
        """
        with self._lock:
            self._state.check()
            schedule = self._groups.schedules.get(key)
            if schedule is None:
                schedule = make_dispatches()
                self._groups.keep_schedule(key, schedule)
            self._queue.add(schedule, step)
            return schedule

    def repeat_steps(self, schedules: Sequence[list[Dispatch]], steps: Sequence[int | None]) -> None:
        """Add the kernels of several steps of a loop to the pending work.

        Args:
            schedules: returned by `repeat`, whose memories are still in use; the steps run them in turn.
            steps: the numbers of the steps, in order.

        Raises:
            BackendError: as for `run`.
        """
        with self._lock:
            self._state.check()
            for schedule, step in zip(itertools.cycle(schedules), steps, strict=False):
                self._queue.add(schedule, step)

    def seconds(self, dispatches: Sequence[Dispatch]) -> float:
        """The seconds that kernels take, see `timing`; they run once all pending work is done.

        Raises:
            BackendError: if the device is lost, or has no memory left.
        """
        return self._timer.seconds(dispatches)

    @property
    def has_timestamps(self) -> bool:
        """Whether the device measures kernels by its own clock."""
        return self._timer.has_timestamps

    def submit(self) -> None:
        """Submit pending work.

        Raises:
            BackendError: if the device is lost.
        """
        self._queue.submit()

    # ---- lost devices --------------------------------------------------------------------------------------

    def detach(self) -> None:
        """Detach from the driver in a forked process, where it is the parent's."""
        self._state.detach()
        self._lock = self._queue.lock = threading.RLock()  # a thread of the parent may have held it
        self._keep_alive = [*self._uniforms.values()]

    @property
    def lost(self) -> str | None:
        """Why the device cannot be used any more, or None."""
        return self._state.lost

    def reopened(self) -> Device:
        """The device, opened again after it was lost; each call returns the same device.

        Raises:
            BackendError: if it is not there any more.
        """
        with self._lock:
            if self._next is None:
                self._next = Device(find_again(self._adapter), lost_reason=self.lost)
            return self._next
