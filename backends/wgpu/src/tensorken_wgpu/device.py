"""Device: one GPU: its memory, its kernels, and the work that waits to be handed to it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import wgpu

from tensorken.errors import BackendError
from tensorken_wgpu.adapters import again, name_of
from tensorken_wgpu.encoding import Waiting, encode
from tensorken_wgpu.failures import (
    ExhaustedError,
    KernelError,
    LostDeviceError,
    is_exhausted,
    is_lost,
    reason,
)
from tensorken_wgpu.groups import Groups, Uniform
from tensorken_wgpu.limits import MOST_BINDINGS, capacity_of, excess, features_of, limits_of
from tensorken_wgpu.memories import SMALLEST, Memory, Pool, Window, class_of
from tensorken_wgpu.pipelines import Pipeline, Pipelines

__all__ = ["Device", "Memory", "Pipeline", "Uniform", "Window"]

WAITING = 256
"""How many kernels may wait before they are handed over."""

NEW = 2**28
"""How many bytes of new memory may be made, or written, before what waits is handed over."""

UNDER_WAY = 32
"""How many submissions may be under way before the host waits for the device: a driver keeps what each of them uses."""

PART = 2**25
"""Bytes that are read at once."""

KEPT = 2**22
"""Buffers for reading that are as large at most are kept."""

_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


class Device:
    """A GPU that has been opened.

    Kernels wait, in order, until something is read or many wait; then they go to the GPU in one submission.  Memory
    that is given back serves again for kernels that come later, in that order.  Several threads may use a device.

    Args:
        adapter: of wgpu's.
        before: why the device was lost that this one replaces, if it does.

    Attributes:
        name: of the device, with its driver.
        limits: those that matter, by wgpu's names.
        features: what it was opened with.
        is_software: whether it is the processor that computes.
        capacity: how many bytes it has, where that is known.
        lost: why it can be used no more, or None.

    Raises:
        BackendError: if it cannot be opened.
    """

    def __init__(self, adapter: Any, before: str | None = None) -> None:
        self._adapter = adapter
        self.name = name_of(adapter)
        self.limits = limits_of(adapter)
        self.features = features_of(adapter)
        self.is_software = adapter.info["adapter_type"] == "CPU"
        self.capacity = capacity_of(adapter)
        self.lost: str | None = None
        self._before = before
        self._next: Device | None = None
        try:
            self._device = adapter.request_device_sync(
                required_features=sorted(self.features), required_limits=self.limits
            )
        except RuntimeError as error:
            raise BackendError(f"wgpu: {self.name} cannot be opened: {reason(error)}") from error
        self._queue = self._device.queue
        self._lock = threading.RLock()
        self._pool = Pool(self.limits["max-buffer-size"] & ~3)
        self._pipelines = Pipelines(self._device)
        self._groups = Groups(self._device, self.limits, self._pool.blocks)
        self._uniforms: weakref.WeakValueDictionary[bytes, Uniform] = weakref.WeakValueDictionary()
        self._staging: dict[int, list[Any]] = {}
        self._waiting: list[Waiting] = []
        self._new = 0  # bytes that were made or written since the last submission
        self._written = 0  # bytes that were written and are perhaps still under way
        self._under_way = 0  # submissions
        self._most_groups = self.limits["max-compute-workgroups-per-dimension"]
        self._counts = {"kernels": 0, "submissions": 0, "pipelines": 0, "reads": 0, "writes": 0, "waits": 0}
        self._fence = self.allocate(4)

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    @property
    def bindings(self) -> int:
        """How many memories a kernel may have, those that it reads and those that it writes."""
        return min(self.limits["max-storage-buffers-per-shader-stage"], MOST_BINDINGS)

    @property
    def statistics(self) -> dict[str, int]:
        """What has been done, and what there is.

        `kernels`, `submissions`, `pipelines` (made), `reads`, `writes` and `waits` (for the device, as too much was
        under way) count; `bind_groups` are kept; `bytes` of memory there are, of them `used` by somebody, at most
        `peak` at once.
        """
        with self._lock:
            pool = self._pool
            pool.collect(bool(self._waiting))
            held = {
                "bytes": pool.total,
                "used": pool.used,
                "peak": pool.peak,
                "bind_groups": len(self._groups),
            }
            return self._counts | held

    # ---- memory --------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> Memory:
        """Memory of so many bytes; what is in it is not known.

        Raises:
            BackendError: if it is more than the device takes, or none is left.
        """
        return self._memory(size, clean=False)

    def allocate_all(self, sizes: tuple[int, ...]) -> list[Memory]:
        """The same for each of these sizes.

        Raises:
            BackendError: as for `allocate`.
        """
        with self._lock:
            self._check_alive()
            self._pool.collect(bool(self._waiting))
            found: list[Any] = self._pool.take_all(sizes, clean=False)
        if None in found:
            for i, memory in enumerate(found):
                if memory is None:
                    found[i] = self._memory(sizes[i], clean=False)
        return found

    def written(self, data: Any) -> Memory:
        """Memory that begins with these bytes; nothing is handed over for that, nor waited for.

        Raises:
            BackendError: as for `allocate`.
        """
        flat = memoryview(data).cast("B")
        if len(flat) % 4:
            flat = memoryview(bytes(flat) + bytes(-len(flat) % 4))
        memory = self._memory(len(flat), clean=True)
        with self._lock:
            if flat:
                try:
                    self._queue.write_buffer(self._buffer(memory), 0, flat)
                except wgpu.GPUError as error:
                    raise self._failure(error, f"{len(flat)} bytes cannot be written") from error
            self._counts["writes"] += 1
            self._new += len(flat)
            self._written += len(flat)
            if self._new > NEW:
                self._submit()
                self._bound()
        return memory

    def read(self, memory: Memory, size: int) -> memoryview:
        """The first bytes of a memory, once all that waits is done.

        Raises:
            BackendError: if the device is lost.
        """
        buffer = self._buffer(memory)
        if not size:
            return memoryview(b"")
        if size <= PART:
            return self._fetched(buffer, 0, size)
        result = memoryview(bytearray(size))
        for start in range(0, size, PART):
            end = min(start + PART, size)
            result[start:end] = self._fetched(buffer, start, end - start)
        return result

    def _memory(self, size: int, clean: bool) -> Memory:
        self._check_alive()
        most = self._pool.most
        if size > most:
            raise BackendError(
                f"wgpu: a tensor of {size} bytes, but {self.name} takes at most {most} (max-buffer-size); split it"
            )
        with self._lock:
            found = self._found(size, clean)
        if found is None:
            self._make_room()
            with self._lock:
                found = self._found(size, clean)
        if found is None:
            raise self._exhausted(size)
        return found

    def _found(self, size: int, clean: bool) -> Memory | None:
        """Idle memory, or new; None if there is none left."""
        pool = self._pool
        pool.collect(bool(self._waiting))
        found = pool.take(size, clean)
        if found is not None:
            return found
        place = pool.class_of(size)
        self._groups.forget(pool.trim(place))
        if self.capacity is not None and pool.total + place > self.capacity:
            return None
        try:
            buffer = self._device.create_buffer(size=place, usage=_STORAGE)
        except wgpu.GPUError as error:
            if is_exhausted(error):
                return None
            raise self._failure(error, f"{place} bytes cannot be had") from error
        self._new += place
        return pool.add(buffer, size)

    def _make_room(self) -> None:
        """Hand over what waits, have all of it done, and let go of all that lies idle."""
        gc.collect()  # not under the lock: what is finalised may wait for others
        with self._lock:
            self._submit()
            self._let_go()
            self._wait()  # so that the driver notices

    def _let_go(self) -> None:
        self._pool.collect(bool(self._waiting))
        self._groups.forget(self._pool.release())
        self._staging = {SMALLEST: self._staging.get(SMALLEST, [])}  # to wait must remain possible

    def _exhausted(self, size: int) -> ExhaustedError:
        there = f" of {self.capacity}" if self.capacity is not None else ""
        return ExhaustedError(
            f"wgpu: {self.name} has no {size} bytes left, {self._pool.used}{there} are in use; let go of tensors that "
            "are not needed any more, or compute in smaller parts"
        )

    def _buffer(self, memory: Memory) -> Any:
        try:
            return self._pool.blocks[memory.place].buffer
        except KeyError:
            raise self._foreign() from None

    # ---- kernels -------------------------------------------------------------------------------------------

    def uniform(self, data: bytes) -> Uniform:
        """A constant of these bytes, for as long as somebody holds it.  Equal ones are one.

        Raises:
            BackendError: if their number is no multiple of 16, or too large.
        """
        most = self.limits["max-uniform-buffer-binding-size"]
        if not data or len(data) % 16 or len(data) > most:
            raise BackendError(
                f"wgpu: a uniform of {len(data)} bytes; they must be a multiple of 16, and at most {most} "
                "(max-uniform-buffer-binding-size)"
            )
        with self._lock:
            found = self._uniforms.get(data)
            if found is None:
                self._check_alive()
                try:
                    buffer = self._device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
                except wgpu.GPUError as error:
                    raise self._failure(error, f"a uniform of {len(data)} bytes cannot be had") from error
                found = self._uniforms[data] = Uniform(buffer, len(data))
            return found

    def pipeline(self, text: str, reads: int, writes: int) -> Pipeline:
        """A kernel, made ready at the first call.

        Args:
            text: in WGSL; `main` is its entry point, binding 0 a uniform.
            reads: how many memories it only reads: bindings 1 and on.
            writes: how many it writes, or reads and writes: the last bindings.

        Raises:
            KernelError: if it is refused.
        """
        with self._lock:
            found = self._pipelines.known(text, reads, writes)
            if found is not None:
                return found
            self._check_alive()
            too_much = excess(text, self.limits)
            if reads + writes > self.bindings:
                limit = "max-storage-buffers-per-shader-stage"
                too_much = f"{reads + writes} memories, of at most {self.bindings} ({limit})"
            if too_much is not None:
                raise KernelError(self.name, too_much, text)
            try:
                made = self._pipelines.made(text, reads, writes)
            except wgpu.GPUError as error:
                if is_lost(error) or is_exhausted(error):
                    raise self._failure(error, "a kernel cannot be made") from error
                raise KernelError(self.name, reason(error), text) from error
            self._counts["pipelines"] += 1
            return made

    def run(
        self,
        pipeline: Pipeline,
        uniform: Uniform,
        memories: Sequence[Memory | Window],
        groups: tuple[int, int, int],
    ) -> None:
        """Have a kernel wait to be run.

        Args:
            pipeline: the kernel.
            uniform: its binding 0.
            memories: its other bindings, in order: what it reads, then what it writes.
            groups: how many workgroups, along three axes.

        Raises:
            BackendError: if the memories cannot be bound so, or there are too many groups; or if the device is lost.
        """
        with self._lock:
            self._wait_with([self.bound(pipeline, uniform, memories, groups)])

    def bound(
        self,
        pipeline: Pipeline,
        uniform: Uniform,
        memories: Sequence[Memory | Window],
        groups: tuple[int, int, int],
    ) -> Waiting:
        """A kernel that could wait to be run; see `run`."""
        most = self._most_groups
        x, y, z = groups
        if x > most or y > most or z > most:
            raise BackendError(
                f"wgpu: a kernel of {groups} workgroups; along each axis there may be {most} "
                "(max-compute-workgroups-per-dimension)"
            )
        with self._lock:
            self._check_alive()
            try:
                group = self._groups.group(pipeline.layout, uniform, memories)
            except KeyError:
                raise self._foreign() from None
            except wgpu.GPUError as error:
                raise self._failure(error, "memories cannot be bound to a kernel") from error
        return pipeline.compiled, group, groups

    def repeat(self, key: Hashable, bound: Callable[[], list[Waiting]]) -> None:
        """Have kernels wait to be run, one after the other, that are run again and again.

        Args:
            key: tells them from all others: which kernels they are, and the places of their memories.
            bound: what they are; asked for where they have not been run lately.

        Raises:
            BackendError: as for `run`.
        """
        with self._lock:
            if self.lost is not None:
                raise self._gone()
            schedule = self._groups.schedules.get(key)
            if schedule is None:
                schedule = bound()
                self._groups.keep(key, schedule)
            self._wait_with(schedule)

    def _wait_with(self, kernels: Sequence[Waiting]) -> None:
        """Have kernels wait, and hand over what waits where that is much."""
        for start in range(0, len(kernels), WAITING):
            self._waiting += kernels[start : start + WAITING]
            if len(self._waiting) >= WAITING or self._new > NEW:
                self.submit()

    def submit(self) -> None:
        """Hand over what waits.

        Raises:
            BackendError: if the device is lost.
        """
        with self._lock:
            self._check_alive()
            if self._waiting:
                self._submit()
                self._bound()

    def _submit(self, copy: tuple[Any, ...] | None = None) -> None:
        """Hand over what waits, and then a copy between buffers; also what was written, even if nothing waits."""
        pool = self._pool
        pool.collect(bool(self._waiting))
        try:
            commands = self._commands(copy)
        except wgpu.GPUError as error:
            if not is_exhausted(error):
                raise self._lose(f"it refused what waited: {reason(error)}") from error
            self._let_go()
            try:
                commands = self._commands(copy)
            except wgpu.GPUError as again:  # what waits goes on waiting
                raise self._failure(again, "what waits cannot be handed over") from again
        try:
            self._queue.submit([commands])
            self._counts["kernels"] += len(self._waiting)
            self._counts["submissions"] += 1
            self._under_way += 1
            self._new = 0
            self._waiting = []
        except (
            BaseException
        ) as error:  # an interruption too: run twice or not at all, kernels give wrong numbers
            self._lose(f"{type(error).__name__} while work was handed over")
            raise
        self._groups.forget(pool.submitted())

    def _commands(self, copy: tuple[Any, ...] | None) -> Any:
        encoder = self._device.create_command_encoder()
        if self._waiting:
            encode(encoder, self._waiting)
        if copy is not None:
            encoder.copy_buffer_to_buffer(*copy)
        return encoder.finish()  # on a lost device this raises; to submit would end the process

    # ---- waiting -------------------------------------------------------------------------------------------

    def _bound(self) -> None:
        """Wait for the device if much is under way."""
        if self._under_way >= UNDER_WAY or self._written > NEW:
            self._counts["waits"] += 1
            self._wait()

    def _wait(self) -> None:
        self._fetched(self._buffer(self._fence), 0, 4)

    def _fetched(self, buffer: Any, start: int, size: int) -> memoryview:
        """Bytes of a buffer once all that waits is done; other threads may go on meanwhile."""
        whole = size + -size % 4
        place = class_of(whole)
        try:
            with self._lock:
                self._check_alive()
                kept = self._staging.get(place)
                staging = kept.pop() if kept else self._device.create_buffer(size=place, usage=_STAGING)
                self._submit((buffer, start, staging, 0, whole))
                self._counts["reads"] += 1
                self._under_way = self._written = 0
            staging.map_async("READ_NOSYNC", 0, whole).sync_wait()  # wgpu would submit again to be sure
            found: memoryview = staging.read_mapped(0, whole)
            staging.unmap()
        except (wgpu.GPUError, RuntimeError) as error:
            if isinstance(error, BackendError):
                raise
            raise self._failure(error, f"{size} bytes cannot be read") from error
        if place <= KEPT:
            self._staging.setdefault(place, []).append(staging)
        return found[:size]

    # ---- failures ------------------------------------------------------------------------------------------

    def reopened(self) -> Device:
        """The same device, opened anew after it was lost: one and the same at each call.

        Raises:
            BackendError: if it is not there any more.
        """
        with self._lock:
            if self._next is None:
                self._next = Device(again(self._adapter), before=self.lost)
            return self._next

    def _check_alive(self) -> None:
        if self.lost is not None:
            raise self._gone()

    def _gone(self) -> LostDeviceError:
        return LostDeviceError(
            f"wgpu: {self.name} was lost ({self.lost}), and all tensors on it; make them anew from data of your own"
        )

    def _lose(self, why: str) -> LostDeviceError:
        """Note that nothing can be done with this device any more."""
        self.lost = why
        self._waiting = []
        return self._gone()

    def _foreign(self) -> BackendError:
        if self._before is not None:
            return LostDeviceError(
                f"wgpu: a tensor that was on {self.name} before that was lost ({self._before}); make it anew from data "
                "of your own"
            )
        return BackendError(f"wgpu: a tensor that is not on {self.name}; move it there with .to(...)")

    def _failure(self, error: Exception, what: str) -> BackendError:
        """What to raise for an error of the driver's."""
        if is_lost(error):
            return self._lose(reason(error))
        kind = ExhaustedError if is_exhausted(error) else BackendError
        return kind(f"wgpu: {self.name}: {what}: {reason(error)}")
