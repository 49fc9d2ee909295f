"""Device: one GPU: its memory, its kernels, and the work that waits to be handed to it."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any

import wgpu

from tensorken.errors import BackendError
from tensorken_wgpu.adapters import name_of
from tensorken_wgpu.wgsl import OPAQUE

WORKGROUP = 256
"""Invocations of a workgroup."""

PENDING = 256
"""How many kernels may wait before they are handed over."""

SMALLEST = 256
"""Bytes of the smallest memory; each class is twice as large as the one before."""

_WISHED = (
    "max-storage-buffers-per-shader-stage",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
)


class Memory:
    """Some bytes on a device, which go back to it when nobody refers to them any more."""

    __slots__ = ("__weakref__", "buffer", "device", "size")

    def __init__(self, device: Device, buffer: Any, size: int) -> None:
        self.device = device
        self.buffer = buffer
        self.size = size

    def __del__(self) -> None:
        self.device._take_back(self.buffer, self.size)


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
        self.limits = {name: adapter.limits[name] for name in _WISHED}
        try:
            self._device = adapter.request_device_sync(required_limits=self.limits)
        except RuntimeError as error:
            raise BackendError(f"wgpu: {self.name} cannot be opened: {error}") from error
        self._queue = self._device.queue
        self._lock = threading.RLock()
        self._pending: list[tuple[Any, Any, tuple[int, int]]] = []
        self._buffers: list[
            Any
        ] = []  # all there are, so that none is collected with a cycle that its memory is part of
        self._free: dict[int, list[Any]] = {}
        self._pipelines: dict[str, Any] = {}
        self._layouts: dict[int, tuple[Any, Any]] = {}
        self.statistics = {"kernels": 0, "submissions": 0, "pipelines": 0, "bytes": 0}
        self._opaque = self._device.create_buffer_with_data(
            data=struct.pack("<4I", *OPAQUE), usage=wgpu.BufferUsage.UNIFORM
        )

    @property
    def inputs(self) -> int:
        """How many operands a kernel may have."""
        return min(int(self.limits["max-storage-buffers-per-shader-stage"]), 16) - 1

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

    def run(self, text: str, count: int, memories: Sequence[Memory]) -> None:
        """Have a kernel wait to be run.

        Args:
            text: in WGSL; `main` is its entry point, binding 0 the numbers that it must not know, the last one what it
                writes.
            count: of invocations.
            memories: the other bindings.
        """
        with self._lock:
            pipeline, layout = self._pipeline(text, len(memories))
            entries = [{"binding": 0, "resource": {"buffer": self._opaque}}]
            entries += [{"binding": i, "resource": {"buffer": m.buffer}} for i, m in enumerate(memories, 1)]
            group = self._device.create_bind_group(layout=layout, entries=entries)
            self._pending.append((pipeline, group, groups_of(count)))
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
            for pipeline, group, (x, y) in pending:
                compute.set_pipeline(pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(x, y)
            compute.end()
            self._queue.submit([encoder.finish()])
            self.statistics["kernels"] += len(pending)
            self.statistics["submissions"] += 1

    def _pipeline(self, text: str, bindings: int) -> tuple[Any, Any]:
        group_layout, layout = self._layout(bindings)
        pipeline = self._pipelines.get(text)
        if pipeline is None:
            try:
                module = self._device.create_shader_module(code=text)
                pipeline = self._device.create_compute_pipeline(
                    layout=layout, compute={"module": module, "entry_point": "main"}
                )
            except wgpu.GPUError as error:
                raise BackendError(f"wgpu: {self.name} refuses a kernel: {error}\n{text}") from error
            self._pipelines[text] = pipeline
            self.statistics["pipelines"] += 1
        return pipeline, group_layout

    def _layout(self, bindings: int) -> tuple[Any, Any]:
        if bindings not in self._layouts:
            kinds = ["uniform", *["read-only-storage"] * (bindings - 1), "storage"]
            group = self._device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                    for i, kind in enumerate(kinds)
                ]
            )
            self._layouts[bindings] = group, self._device.create_pipeline_layout(bind_group_layouts=[group])
        return self._layouts[bindings]


def groups_of(count: int) -> tuple[int, int]:
    """The workgroups along two axes that make at least so many invocations; there may be 65 535 along each."""
    groups = -(-count // WORKGROUP)
    rows = -(-groups // 65535)
    return -(-groups // rows), rows
