"""Device: one GPU: its memory, its kernels, and the work that waits to be handed to it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import wgpu

from tensorken.errors import BackendError
from tensorken_wgpu.adapters import name_of

WORKGROUP = 256
"""Invocations of a workgroup."""

PENDING = 256
"""How many kernels may wait before they are handed over."""

SMALLEST = 256
"""Bytes of the smallest memory; each class is twice as large as the one before."""

_WISHED = (
    "max-storage-buffers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-uniform-buffer-binding-size",
    "max-buffer-size",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroups-per-dimension",
    "min-storage-buffer-offset-alignment",
)

_FEATURES = frozenset({"shader-f16", "shader-f64", "shader-int64", "subgroup"})


class Memory:
    """Some bytes on a device, which go back to it when nobody refers to them any more."""

    __slots__ = ("__weakref__", "buffer", "device", "size")

    def __init__(self, device: Device, buffer: Any, size: int) -> None:
        self.device = device
        self.buffer = buffer
        self.size = size

    def __del__(self) -> None:
        self.device._take_back(self.buffer, self.size)


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


@dataclass(frozen=True, slots=True, eq=False)
class Uniform:
    """A few bytes that kernels read and nobody changes."""

    buffer: Any


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A kernel that the driver has taken, and how memory is bound to it."""

    compiled: Any
    layout: Any


class Device:
    """A GPU that has been opened.

    Kernels wait, in order, until something is read or many wait; then they go to the GPU in one submission.  Memory
    that is given back serves again for kernels that come later, in that order, so none is ever destroyed: the driver
    would end the process if a kernel that waits still named it.

    Args:
        adapter: of wgpu's.

    Raises:
        BackendError: if it cannot be opened.
    """

    def __init__(self, adapter: Any) -> None:
        self.name = name_of(adapter)
        self.limits = {name: int(adapter.limits[name]) for name in _WISHED}
        self.features = frozenset(_FEATURES & set(adapter.features))
        self.is_software = adapter.info["adapter_type"] == "CPU"
        try:
            self._device = adapter.request_device_sync(
                required_features=sorted(self.features), required_limits=self.limits
            )
        except RuntimeError as error:
            raise BackendError(f"wgpu: {self.name} cannot be opened: {error}") from error
        self._queue = self._device.queue
        self._lock = threading.RLock()
        self._pending: list[tuple[Any, Any, tuple[int, int, int]]] = []
        self._buffers: list[
            Any
        ] = []  # all there are, so that none is collected with a cycle that its memory is part of
        self._free: dict[int, list[Any]] = {}
        self._uniforms: dict[bytes, Uniform] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._layouts: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.statistics = {"kernels": 0, "submissions": 0, "pipelines": 0, "bytes": 0}

    @property
    def bindings(self) -> int:
        """How many memories a kernel may have, those that it reads and those that it writes."""
        return min(self.limits["max-storage-buffers-per-shader-stage"], 32)

    # ---- memory --------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> Memory:
        """Memory of at least this many bytes, what is in it is not known.

        Raises:
            BackendError: if it is more than the device takes.
        """
        most = min(self.limits["max-storage-buffer-binding-size"], self.limits["max-buffer-size"])
        if size > most:
            raise BackendError(
                f"wgpu: a tensor of {size} bytes, but {self.name} takes at most {most}; split it"
            )
        place = SMALLEST
        while place < size:
            place *= 2
        place = min(place, int(most))
        with self._lock:
            free = self._free.get(place)
            if free:
                return Memory(self, free.pop(), place)
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        try:
            buffer = self._device.create_buffer(size=place, usage=usage)
        except wgpu.GPUError as error:
            raise BackendError(f"wgpu: {self.name} has no {size} bytes left: {error}") from error
        self._buffers.append(buffer)
        self.statistics["bytes"] += place
        return Memory(self, buffer, place)

    def _take_back(self, buffer: Any, size: int) -> None:
        self._free.setdefault(size, []).append(buffer)

    def written(self, data: Any) -> Memory:
        """Memory that begins with these bytes; their number is a multiple of 4."""
        memory = self.allocate(len(data))
        with self._lock:
            self.submit()  # what waits may still read what was in this memory before
            self._queue.write_buffer(memory.buffer, 0, data)
        return memory

    def read(self, memory: Memory, size: int) -> memoryview:
        """The first bytes of a memory, once all that waits is done."""
        with self._lock:
            self.submit()
            found: memoryview = self._queue.read_buffer(memory.buffer, 0, size)
        return found

    # ---- kernels -------------------------------------------------------------------------------------------

    def uniform(self, data: bytes) -> Uniform:
        """A constant of these bytes; their number is a multiple of 16.  Equal ones are one."""
        with self._lock:
            found = self._uniforms.get(data)
            if found is None:
                buffer = self._device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
                found = self._uniforms[data] = Uniform(buffer)
            return found

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
        """
        with self._lock:
            entries = [{"binding": 0, "resource": {"buffer": uniform.buffer}}]
            for i, memory in enumerate(memories, 1):
                if isinstance(memory, Window):
                    place = {"buffer": memory.memory.buffer, "offset": memory.offset, "size": memory.size}
                else:
                    place = {"buffer": memory.buffer}
                entries.append({"binding": i, "resource": place})
            group = self._device.create_bind_group(layout=pipeline.layout, entries=entries)
            self._pending.append((pipeline.compiled, group, groups))
            if len(self._pending) >= PENDING:
                self.submit()

    def submit(self) -> None:
        """Hand over what waits."""
        with self._lock:
            if not self._pending:
                return
            pending, self._pending = self._pending, []
            encoder = self._device.create_command_encoder()
            compute = encoder.begin_compute_pass()
            for pipeline, group, groups in pending:
                compute.set_pipeline(pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*groups)
            compute.end()
            self._queue.submit([encoder.finish()])
            self.statistics["kernels"] += len(pending)
            self.statistics["submissions"] += 1

    def pipeline(self, text: str, reads: int, writes: int) -> Pipeline:
        """A kernel, made ready at the first call.

        Args:
            text: in WGSL; `main` is its entry point, binding 0 a uniform.
            reads: how many memories it reads: bindings 1 and on.
            writes: how many it writes, or reads and writes: the last bindings.

        Raises:
            BackendError: if the driver refuses it.
        """
        with self._lock:
            found = self._pipelines.get(text)
            if found is None:
                group_layout, layout = self._layout(reads, writes)
                try:
                    module = self._device.create_shader_module(code=text)
                    compiled = self._device.create_compute_pipeline(
                        layout=layout, compute={"module": module, "entry_point": "main"}
                    )
                except wgpu.GPUError as error:
                    raise BackendError(f"wgpu: {self.name} refuses a kernel: {error}\n{text}") from error
                found = self._pipelines[text] = Pipeline(compiled, group_layout)
                self.statistics["pipelines"] += 1
            return found

    def _layout(self, reads: int, writes: int) -> tuple[Any, Any]:
        if (reads, writes) not in self._layouts:
            kinds = ["uniform", *["read-only-storage"] * reads, *["storage"] * writes]
            group = self._device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                    for i, kind in enumerate(kinds)
                ]
            )
            layout = self._device.create_pipeline_layout(bind_group_layouts=[group])
            self._layouts[reads, writes] = group, layout
        return self._layouts[reads, writes]


def groups_of(count: int) -> tuple[int, int, int]:
    """The workgroups along three axes that make at least so many invocations; there may be 65 535 along each."""
    groups = -(-count // WORKGROUP)
    rows = -(-groups // 65535)
    return -(-groups // rows), rows, 1
