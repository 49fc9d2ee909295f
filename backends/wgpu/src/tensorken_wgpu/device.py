"""Device: a GPU that has been opened: memory on it, and kernels."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import wgpu

from tensorken_core.errors import BackendError
from tensorken_wgpu import forks
from tensorken_wgpu.adapters import again, choice, name_of
from tensorken_wgpu.encoding import Copy, Waiting
from tensorken_wgpu.failures import ExhaustedError, KernelError, is_exhausted, is_lost, reason
from tensorken_wgpu.groups import Groups, Uniform
from tensorken_wgpu.life import Life
from tensorken_wgpu.limits import MOST_BINDINGS, capacity_of, excess, features_of, limits_of
from tensorken_wgpu.memories import Memory, Pool, Window
from tensorken_wgpu.pipelines import Pipeline, Pipelines
from tensorken_wgpu.queue import Queue

__all__ = ["Device", "Memory", "Pipeline", "Uniform", "Window"]

PART = 2**25
"""Bytes that are read at once."""

_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class Device:
    """A GPU that has been opened.

    Kernels wait, in order, until something is read or many wait; then they go to the GPU in one submission.  Memory
    that is given back serves again for kernels that come later, in that order.  Several threads may use a device.

    Args:
        adapter: of wgpu's.
        before: why the device was lost that this one replaces, if it does.

    Attributes:
        name: of the device, with its driver.
        choice: by what users choose it, which tells it from its twins.
        limits: those that matter, by wgpu's names.
        features: what it was opened with.
        is_software: whether it is the processor that computes.
        capacity: how many bytes it has, where that is known.

    Raises:
        BackendError: if it cannot be opened.
    """

    def __init__(self, adapter: Any, before: str | None = None) -> None:
        self._adapter = adapter
        self.name = name_of(adapter)
        forks.check(self.name)
        self.choice = choice(adapter)
        self.limits = limits_of(adapter)
        self.features = features_of(adapter)
        self.is_software = adapter.info["adapter_type"] == "CPU"
        self.capacity = capacity_of(adapter)
        self._life = Life(self.name, before)
        self._next: Device | None = None
        self._pool = Pool(self.limits["max-buffer-size"] & ~3)
        self._uniforms: weakref.WeakValueDictionary[bytes, Uniform] = weakref.WeakValueDictionary()
        self._most_groups = self.limits["max-compute-workgroups-per-dimension"]
        try:
            self._device = adapter.request_device_sync(
                required_features=sorted(self.features), required_limits=self.limits
            )
            self._pipelines = Pipelines(self._device)
            self._groups = Groups(self._device, self.limits, self._pool.blocks)
            self._queue = Queue(self._device, self._life, self._pool, self._groups)
        except (RuntimeError, wgpu.GPUError) as error:
            raise BackendError(f"wgpu: {self.name} cannot be opened: {reason(error)}") from error
        self._lock = self._queue.lock
        forks.opened(self)

    def __repr__(self) -> str:
        return f"Device({self.choice!r})"

    @property
    def bindings(self) -> int:
        """How many memories a kernel may have, those that it reads and those that it writes."""
        return min(self.limits["max-storage-buffers-per-shader-stage"], MOST_BINDINGS)

    @property
    def statistics(self) -> dict[str, int]:
        """What has been done, and what there is.

        `kernels`, `copies` (between memories), `submissions`, `pipelines` (made), `reads`, `writes` and `waits` (for
        the device, as too much was under way) count; `bind_groups` are kept; `bytes` of memory there are, of them
        `used` by somebody, at most `peak` at once.
        """
        with self._lock:
            pool = self._pool
            pool.collect(bool(self._queue.waiting))
            return self._queue.counts | {
                "pipelines": self._pipelines.count,
                "bytes": pool.total,
                "used": pool.used,
                "peak": pool.peak,
                "bind_groups": len(self._groups),
            }

    # ---- memory --------------------------------------------------------------------------------------------

    def check_size(self, size: int) -> None:
        """Go on only if one memory may have so many bytes.

        Raises:
            BackendError: if not.
        """
        most = self._pool.most
        if size > most:
            raise BackendError(
                f"wgpu: a tensor of {size} bytes, but {self.name} takes at most {most} (max-buffer-size); split it"
            )

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
            self._life.check()
            self._pool.collect(bool(self._queue.waiting))
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
        if flat:
            with self._lock:
                self._queue.write(self._buffer(memory), flat)
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
            return self._queue.fetched(buffer, 0, size)
        result = memoryview(bytearray(size))
        for start in range(0, size, PART):
            end = min(start + PART, size)
            result[start:end] = self._queue.fetched(buffer, start, end - start)
        return result

    def copy(self, copies: Sequence[tuple[Memory, int, Memory, int, int]]) -> None:
        """Have bytes of memories copied to others, in order with the kernels that wait.

        Args:
            copies: for each a memory and where in it, another and where in that, and how many bytes.  All three numbers
                are multiples of 4.

        Raises:
            BackendError: if the device is lost, or a memory is not its.
        """
        with self._lock:
            self._life.check()
            found = [
                Copy(self._buffer(source), start, self._buffer(target), place, size)
                for source, start, target, place, size in copies
            ]
            self._queue.add(found)

    def _memory(self, size: int, clean: bool) -> Memory:
        self._life.check()
        self.check_size(size)
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
        pool.collect(bool(self._queue.waiting))
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
            raise self._life.failure(error, f"{place} bytes cannot be had") from error
        self._queue.made(place)
        return pool.add(buffer, size)

    def _make_room(self) -> None:
        """Have all that waits done, and let go of all that is garbage or lies idle."""
        gc.collect()  # not under the lock: what is finalised may wait for others
        self._queue.finish()

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
            raise self._life.foreign() from None

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
                self._life.check()
                try:
                    buffer = self._device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
                except wgpu.GPUError as error:
                    raise self._life.failure(
                        error, f"a uniform of {len(data)} bytes cannot be had"
                    ) from error
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
            self._life.check()
            too_much = excess(text, self.limits)
            if reads + writes > self.bindings:
                limit = "max-storage-buffers-per-shader-stage"
                too_much = f"{reads + writes} memories, of at most {self.bindings} ({limit})"
            if too_much is not None:
                raise KernelError(self.name, too_much, text)
            try:
                return self._pipelines.made(text, reads, writes)
            except wgpu.GPUError as error:
                if is_lost(error) or is_exhausted(error):
                    raise self._life.failure(error, "a kernel cannot be made") from error
                raise KernelError(self.name, reason(error), text) from error

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
            self._queue.add([self.bound(pipeline, uniform, memories, groups)])

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
            self._life.check()
            try:
                group = self._groups.group(pipeline.layout, uniform, memories)
            except KeyError:
                raise self._life.foreign() from None
            except wgpu.GPUError as error:
                raise self._life.failure(error, "memories cannot be bound to a kernel") from error
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
            self._life.check()
            schedule = self._groups.schedules.get(key)
            if schedule is None:
                schedule = bound()
                self._groups.keep(key, schedule)
            self._queue.add(schedule)

    def submit(self) -> None:
        """Hand over what waits.

        Raises:
            BackendError: if the device is lost.
        """
        self._queue.submit()

    # ---- when it is lost -----------------------------------------------------------------------------------

    def part(self) -> None:
        """Give up the device, as it is that of the process from which this one was forked."""
        self._life.part()
        self._lock = self._queue.lock = threading.RLock()  # a thread may have held it that is not here
        self._held = [*self._uniforms.values()]

    @property
    def lost(self) -> str | None:
        """Why it can be used no more, or None."""
        return self._life.lost

    def reopened(self) -> Device:
        """The same device, opened anew after it was lost: one and the same at each call.

        Raises:
            BackendError: if it is not there any more.
        """
        with self._lock:
            if self._next is None:
                self._next = Device(again(self._adapter), before=self.lost)
            return self._next
