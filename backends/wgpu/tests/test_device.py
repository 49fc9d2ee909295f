"""The device: memory, pending kernels, limits, failures and threads."""

from __future__ import annotations

import gc
import os
import signal
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import wgpu

import tensorken as tk
from tensorken_core.errors import BackendError
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.device import (
    bind_groups,
    device as device_module,
    encoding,
    limits,
    memory,
    pipelines,
    queue,
    reading,
    staging,
)
from tensorken_wgpu.device.adapters import adapter_of
from tensorken_wgpu.device.device import Device, Memory, Source, Window
from tensorken_wgpu.device.failures import (
    ExhaustedError,
    KernelError,
    LostDeviceError,
    is_exhausted,
    is_lost,
    reason,
)

HEAD = """
@group(0) @binding(0) var<uniform> u: vec4<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
"""
MAIN = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>) "
ADD = HEAD + MAIN + "{ if (g.x < arrayLength(&y)) { y[g.x] = x[g.x] + u.x; } }"
LONG = f"""{HEAD}{MAIN} {{
  var s = x[g.x];
  for (var i = 0u; i < 5000u; i++) {{ s = s * 1664525u + 1013904223u; }}
  y[g.x] = s * u.y + u.x;
}}"""
SLOW = 2**14
TWO = f"""{HEAD}
@group(0) @binding(3) var<storage, read_write> z: array<u32>;
{MAIN} {{ y[g.x] = x[g.x] + u.x; z[g.x] = x[g.x] * u.x; }}"""

NO_MEMORY = "Out of Memory\n\nCaused by:\n  In wgpuDeviceCreateBuffer\n    Not enough memory left."
"""The driver's message."""

Patch = pytest.MonkeyPatch


class Kernels:
    """A device with a few simple kernels."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.add_to = device.pipeline(ADD, 1, 1)

    def uniform(self, number: int) -> Any:
        return self.device.uniform(struct.pack("<4I", number, 0, 0, 0))

    def plus(self, x: Memory, number: int, size: int) -> Memory:
        """A memory of so many bytes, each word of which is that of x and a number."""
        y = self.device.allocate(size)
        self.device.run(self.add_to, self.uniform(number), [x, y], (-(-size // 256), 1, 1))
        return y

    def slowly(self, x: Memory, y: Memory) -> None:
        """Have a kernel wait that takes long to write one into each word of a memory of `SLOW` bytes."""
        if not self.device.is_software:
            pytest.skip("there is no telling how long a kernel takes a GPU")
        heavy = self.device.pipeline(LONG.replace("5000u", "60000u"), 1, 1)
        self.device.run(heavy, self.uniform(1), [x, y], (2**6, 1, 1))

    def words(self, *words: int) -> Memory:
        return self.device.upload(struct.pack(f"<{len(words)}I", *words))

    def read(self, x: Memory, count: int) -> list[int]:
        return list(self.device.read(x, 4 * count).cast("I"))


@pytest.fixture
def fresh(device: Device) -> Device:
    """A device for this test only."""
    return Device(adapter_of(None))


@pytest.fixture
def kernels(fresh: Device) -> Kernels:
    return Kernels(fresh)


# ---- memory and kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4, 6, 255, 4096, 1_000_001])
def test_write_and_read(fresh: Device, size: int) -> None:
    data = bytes([i % 251 for i in range(size)])
    assert bytes(fresh.read(fresh.upload(data), size)) == data


def test_write_and_read_no_bytes(fresh: Device) -> None:
    nothing = fresh.upload(b"")
    assert (nothing.size, bytes(fresh.read(nothing, 0))) == (0, b"")


@pytest.fixture
def small_parts(monkeypatch: Patch) -> int:
    """The size of the parts in which large data is read and written, here small."""
    for module in (device_module, queue, staging):
        monkeypatch.setattr(module, "PART", 64)
    return 64


def test_large_data_is_read_and_written_in_parts(kernels: Kernels, small_parts: int) -> None:
    device = kernels.device
    for size in (64, 65, 66, 128, 131, 250, 256, 1001):
        data = bytes([i % 251 for i in range(size)])
        before = device.statistics
        memory = device.upload(data)
        between = device.statistics
        assert bytes(device.read(memory, size)) == data
        assert device.statistics["reads"] - between["reads"] == -(-(size + -size % 4) // small_parts)
        written = [0, -(-(size & ~3) // small_parts)][size & ~3 > small_parts]
        assert between["submissions"] - before["submissions"] == written


def test_parts_are_in_order_with_kernels(kernels: Kernels, small_parts: int) -> None:
    words = [*range(100)]
    for step in range(20):
        x = kernels.words(*words)
        y = kernels.plus(x, 1, 400)  # pending, while x is replaced
        words = [step * w + 1 for w in range(100)]
        x = kernels.words(*words)
        z = kernels.plus(kernels.plus(x, 5, 400), 1, 400)
        assert kernels.read(z, 100) == [w + 6 for w in words]
        if step:
            assert kernels.read(y, 100) == [(step - 1) * w + 2 for w in range(100)]
        if step % 5 == 0:
            kernels.device._queue.release_idle()


def test_parts_are_read_and_written_by_documented_calls(
    kernels: Kernels, small_parts: int, monkeypatch: Patch
) -> None:
    for name in ("write", "read_into"):
        function = getattr(reading, name)
        documented = lambda *args, function=function: function(*args, direct=None)  # noqa: E731
        monkeypatch.setattr(queue, name, documented)
    data = bytes(range(250))
    for _ in range(3):
        assert bytes(kernels.device.read(kernels.device.upload(data), 250)) == data


def test_threads_read_and_write_parts(kernels: Kernels, small_parts: int, frequent_switches: None) -> None:
    def work(number: int) -> None:
        for i in range(20):
            words = [*range(100 * number + i, 100 * number + i + 100)]
            assert kernels.read(kernels.plus(kernels.words(*words), 3, 400), 100) == [w + 3 for w in words]

    in_threads(4, work)


def test_large_buffers_are_reused(kernels: Kernels, small_parts: int, monkeypatch: Patch) -> None:
    device = kernels.device
    created: list[int] = []
    create = device._device.create_buffer

    def create_buffer(size: int, usage: int) -> Any:
        if usage & (wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.MAP_WRITE):
            created.append(size)
        return create(size=size, usage=usage)

    monkeypatch.setattr(device._device, "create_buffer", create_buffer)
    for _ in range(3):
        device.read(device.upload(bytes(1024)), 1024)
    assert len(created) == 4  # two of each direction


def test_kernels_run_in_order(kernels: Kernels) -> None:
    x = kernels.words(1, 2, 3)
    for i in range(1000):
        x = kernels.plus(x, i, 12)
    assert kernels.read(x, 3) == [499501, 499502, 499503]
    assert kernels.device.statistics["kernels"] == 1000
    assert kernels.device.statistics["submissions"] == 4


def test_a_kernel_may_write_several_memories(kernels: Kernels) -> None:
    device = kernels.device
    x, y, z = kernels.words(5, 7), device.allocate(8), device.allocate(8)
    device.run(device.pipeline(TWO, 1, 2), kernels.uniform(3), [x, y, z], (1, 1, 1))
    assert (kernels.read(y, 2), kernels.read(z, 2)) == ([8, 10], [15, 21])


def test_a_kernel_may_bind_a_window_of_a_memory(kernels: Kernels) -> None:
    device = kernels.device
    step = device.limits["min-storage-buffer-offset-alignment"]
    x, y = kernels.words(*range(step)), device.allocate(step)
    device.run(kernels.add_to, kernels.uniform(100), [Window(x, step, 8), Window(y, 0, 8)], (1, 1, 1))
    device.run(kernels.add_to, kernels.uniform(200), [Window(x, 2 * step, 4), Window(y, step, 4)], (1, 1, 1))
    found = kernels.read(y, step // 4 + 1)
    assert found[:2] == [step // 4 + 100, step // 4 + 101]
    assert found[step // 4] == 2 * (step // 4) + 200


@pytest.mark.feature(187)
def test_memories_above_the_binding_limit_are_bound_in_windows(kernels: Kernels) -> None:
    device, most = kernels.device, kernels.device.limits["max-storage-buffer-binding-size"]
    if not device.is_software:
        pytest.skip("the limit of this device is so large that a test would take all of its memory")
    large = device.allocate(most + 4096)
    x = kernels.words(1, 2)
    with pytest.raises(
        BackendError, match=f"a memory of {most + 4096} bytes cannot be bound at once.*{most}"
    ):
        device.run(kernels.add_to, kernels.uniform(1), [x, large], (1, 1, 1))
    end = Window(large, most, 4096)
    device.run(kernels.add_to, kernels.uniform(1), [x, end], (1, 1, 1))
    y = device.allocate(4096)
    device.run(kernels.add_to, kernels.uniform(1), [end, y], (16, 1, 1))
    assert kernels.read(y, 2) == [3, 4]


@pytest.mark.parametrize(("offset", "size"), [(1, 4), (0, 0), (0, 6), (256, 4096)])
def test_windows_that_cannot_be_bound_are_errors(kernels: Kernels, offset: int, size: int) -> None:
    x, y = kernels.words(1), kernels.device.allocate(256)
    with pytest.raises(BackendError, match=f"a window of {size} bytes at {offset} of 256 cannot be bound"):
        kernels.device.run(kernels.add_to, kernels.uniform(1), [x, Window(y, offset, size)], (1, 1, 1))


def test_bindings_that_do_not_fit_the_kernel_are_errors(kernels: Kernels) -> None:
    x, y = kernels.words(1), kernels.device.allocate(4)
    run, one = kernels.device.run, kernels.uniform(1)
    with pytest.raises(BackendError, match="reads 1 memories and writes 1 got 3"):
        run(kernels.add_to, one, [x, y, y], (1, 1, 1))
    with pytest.raises(BackendError, match="both reads and writes a memory"):
        run(kernels.add_to, one, [x, x], (1, 1, 1))
    with pytest.raises(
        BackendError, match=r"of \(70000, 1, 1\) workgroups; along each axis there may be \d+"
    ):
        run(kernels.add_to, one, [x, y], (70000, 1, 1))
    assert kernels.read(kernels.plus(x, 1, 4), 1) == [2]


def test_equal_uniforms_are_shared(fresh: Device) -> None:
    first = fresh.uniform(bytes(16))
    assert fresh.uniform(bytes(16)) is first
    assert fresh.uniform(bytes(32)) is not first
    assert len(fresh._uniforms) == 1
    for size in (0, 8, 2**20 + 16):
        with pytest.raises(BackendError, match=f"a uniform of {size} bytes"):
            fresh.uniform(bytes(size))


def test_documented_calls_do_the_same(kernels: Kernels, monkeypatch: Patch) -> None:
    device = kernels.device
    for direct in (None, encoding.DIRECT):
        x, y = kernels.words(1, 2), device.allocate(8)
        partials = device.allocate(8)
        device.copy([(kernels.plus(x, 1, 8), 4, partials, 0, 4), (x, 0, partials, 4, 4)])
        device.run(kernels.add_to, kernels.uniform(5), [partials, y], (1, 1, 1))
        commands = encoding.encode(device._device, device._queue.pending, direct)
        device._queue.pending = []
        encoding.submit_commands(device._device.queue, commands, [], direct)
        assert kernels.read(y, 2) == [8, 6]
    monkeypatch.setattr(queue, "read", lambda *args: reading.read(*args, direct=None))
    assert kernels.read(y, 2) == [8, 6]


def test_copies_and_kernels_run_in_order(kernels: Kernels) -> None:
    device = kernels.device
    x, y = kernels.words(1, 2, 3), device.allocate(8)
    for number in range(3):
        device.copy([(kernels.plus(x, number, 12), 4, y, 4, 4), (x, 0, y, 0, 4)])
        x = kernels.plus(y, 10, 12)
    assert kernels.read(x, 2) == [31, 35]
    assert (device.statistics["kernels"], device.statistics["copies"]) == (6, 6)


def test_copying_another_devices_memory_is_an_error(kernels: Kernels, device: Device) -> None:
    with pytest.raises(BackendError, match="a tensor that is not on"):
        device.copy([(kernels.words(1), 0, device.allocate(4), 0, 4)])


# ---- caches ------------------------------------------------------------------------------------------------


@pytest.mark.feature(187)
def test_loops_reuse_memories_and_bind_groups(kernels: Kernels) -> None:
    x = kernels.words(*range(100))
    for _ in range(10):
        x = kernels.plus(kernels.plus(kernels.plus(x, 1, 400), 2, 400), 3, 400)
    before = kernels.device.statistics
    for _ in range(1000):
        x = kernels.plus(kernels.plus(kernels.plus(x, 1, 400), 2, 400), 3, 400)
    after = kernels.device.statistics
    assert (after["bytes"], after["bind_groups"]) == (before["bytes"], before["bind_groups"])
    assert kernels.read(x, 3) == [6060, 6061, 6062]


def test_bind_groups_keep_no_memory_alive(kernels: Kernels) -> None:
    """Memories are allocated and freed in changing order; each bind group binds the right blocks."""
    device = kernels.device
    for i in range(300):
        some = [kernels.words(i, 1000 + k) for k in range(1 + i % 5)]
        sums = [kernels.plus(x, k, 8) for k, x in enumerate(some)]
        if i % 3:
            some.reverse()
        del some[i % 2 :]
        assert [kernels.read(y, 2) for y in sums] == [[i + k, 1000 + 2 * k] for k in range(1 + i % 5)]
        del sums, some
    assert device.statistics["used"] == 0
    assert device.statistics["bytes"] < 50 * 256


def test_the_caches_of_bind_groups_and_pipelines_are_limited(kernels: Kernels) -> None:
    device = kernels.device
    device._groups._most = device._pipelines._most = 4
    x, y = kernels.words(1), device.allocate(4)
    for i in range(20):
        pipeline = device.pipeline(ADD.replace("u.x", f"u.x * {i}u"), 1, 1)
        device.run(pipeline, kernels.uniform(i), [x, y], (1, 1, 1))
    assert kernels.read(y, 1) == [1 + 19 * 19]
    assert device.statistics["bind_groups"] == len(device._pipelines._cache) == 4
    assert set(device._groups._keys_of) == {x.key, y.key}
    assert all([keys <= device._groups._cache.keys() for keys in device._groups._keys_of.values()])
    assert device.statistics["pipelines"] == 21
    device.pipeline(ADD.replace("u.x", "u.x * 19u"), 1, 1)
    assert device.statistics["pipelines"] == 21
    assert len(device._uniforms) <= 4


def test_a_cached_kernel_costs_the_host_little(
    kernels: Kernels, calls: Callable[[Callable[[], object]], int], monkeypatch: Patch
) -> None:
    """Fewer calls than wgpu's documented calls take, with the look-up of bind groups and the bookkeeping of memory."""
    device, count = kernels.device, 1000
    monkeypatch.setattr(queue, "MAX_PENDING", 10**6)
    x, y = kernels.words(1), device.allocate(4)
    one, other = device.pipeline(ADD + " ", 1, 1), kernels.uniform(1)

    def ours() -> None:
        for _ in range(count // 2):
            device.run(kernels.add_to, other, [x, y], (1, 1, 1))
            device.run(one, other, [x, y], (1, 1, 1))
        encoding.encode(device._device, device._queue.pending)
        device._queue.pending = []

    device.run(kernels.add_to, other, [x, y], (1, 1, 1))
    ((_, group, _),) = device._queue.pending

    def documented() -> None:
        encoder = device._device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        for pipeline in (kernels.add_to, one) * (count // 2):
            compute.set_pipeline(pipeline.compiled)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(1, 1, 1)
        compute.end()
        encoder.finish()

    ours()
    assert calls(ours) / count < 16 < calls(documented) / count


# ---- writing while kernels are pending ---------------------------------------------------------------------


def test_writing_does_not_submit_or_change_operands_of_pending_kernels(kernels: Kernels) -> None:
    found = []
    before = kernels.device.statistics["submissions"]
    for i in range(100):
        x = kernels.words(i)
        found.append(kernels.plus(x, 1000, 4))
        del x  # a pending kernel reads it; the next pass must not overwrite it
    assert kernels.device.statistics["submissions"] == before
    assert [kernels.read(y, 1) for y in found] == [[1000 + i] for i in range(100)]


def test_dropped_results_do_not_overwrite_written_data(kernels: Kernels) -> None:
    x = kernels.words(1)
    found = []
    for i in range(100):
        kernels.plus(x, 7, 4)  # pending, and will write into memory that was returned
        found.append(kernels.words(i))
    assert [kernels.read(y, 1) for y in found] == [[i] for i in range(100)]


def test_memory_is_reused_for_writes_once_nothing_is_pending(kernels: Kernels) -> None:
    x = kernels.words(1)
    for i in range(2000):
        y = kernels.plus(x, 1, 4)
        kernels.words(i)
        if i % 10 == 9:
            kernels.device.submit()
    assert kernels.device.statistics["bytes"] < 20 * 256
    assert kernels.read(y, 1) == [2]


def test_memory_that_is_only_written_and_dropped_is_bounded(fresh: Device, monkeypatch: Patch) -> None:
    monkeypatch.setattr(queue, "MAX_NEW_BYTES", 2**20)
    before = fresh.statistics
    for _ in range(100):
        fresh.upload(bytes(2**16))
    after = fresh.statistics
    assert after["bytes"] - before["bytes"] == 2**16
    assert after["submissions"] - before["submissions"] >= 5  # each lets the driver free its copies


# ---- pending work is bounded -------------------------------------------------------------------------------


@pytest.mark.feature(189)
def test_much_pending_work_is_submitted(kernels: Kernels, monkeypatch: Patch) -> None:
    device = kernels.device
    x = kernels.words(1)
    for _ in range(queue.MAX_PENDING):
        kernels.plus(x, 1, 4)
    assert device.statistics["submissions"] == 1
    monkeypatch.setattr(queue, "MAX_NEW_BYTES", 2**20)
    held = [kernels.plus(x, 1, 2**18) for _ in range(12)]
    assert 2 <= device.statistics["submissions"] <= 4
    assert kernels.read(held[0], 1) == [2]


def test_the_host_waits_if_much_is_in_flight(kernels: Kernels) -> None:
    x = kernels.words(1)
    for _ in range(10 * queue.MAX_IN_FLIGHT):
        kernels.plus(x, 1, 4)
        kernels.device.submit()
    assert 8 <= kernels.device.statistics["waits"] <= 10


def resident() -> int:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("reads", [False, True])
def test_3000_steps_need_no_more_memory(kernels: Kernels, reads: bool) -> None:
    def steps(x: Memory, count: int) -> Memory:
        for i in range(count):
            data = kernels.device.upload(bytes(2**14))
            x = kernels.plus(kernels.plus(x, 1, 2**14), 1, 2**14)
            kernels.plus(data, i, 2**14)
            if reads:
                kernels.read(x, 1)
        return x

    x = kernels.device.upload(bytes(2**14))
    for _ in range(2):
        x = steps(x, 150)
        kernels.read(x, 1)
    device_bytes, host_bytes = kernels.device.statistics["bytes"], resident()
    x = steps(x, 3000)
    assert kernels.device.statistics["bytes"] <= device_bytes + 4 * 2**14
    assert (
        resident() - host_bytes < 2**25
    )  # the data alone is 47 MiB; memory of other tests may be freed meanwhile
    assert kernels.read(x, 1) == [6600]


# ---- releasing memory --------------------------------------------------------------------------------------


def test_memory_used_by_pending_kernels_may_be_released(kernels: Kernels) -> None:
    """Dropped and released while kernels are pending, and while they run: the driver keeps it until they are done."""
    device = kernels.device
    heavy = device.pipeline(LONG.replace("u.y", "0u"), 1, 1)
    found = []
    for i in range(30):
        x = kernels.words(*[i] * 1000)
        slow = device.allocate(4000)
        device.run(heavy, kernels.uniform(i), [x, slow], (16, 1, 1))
        y = kernels.plus(slow, 1, 4000)
        del x, slow
        device._queue.release_idle()
        if i % 3 == 0:
            device.submit()
            device._queue.release_idle()
        found.append(y)
        gc.collect()
    assert [kernels.read(y, 1000) for y in found] == [[i + 1] * 1000 for i in range(30)]
    before = device.statistics["bytes"]
    assert before < 40 * 4096
    del found, y
    device._release_all()
    assert device.statistics["bytes"] == 0


def test_memory_in_garbage_cycles_is_reused(kernels: Kernels) -> None:
    for i in range(50):
        cycle: list[Any] = [kernels.words(i), kernels.plus(kernels.words(i), 1, 4)]
        cycle.append(cycle)
        y = kernels.plus(cycle[1], 1, 4)
        del cycle
        gc.collect()
        assert kernels.read(kernels.plus(y, i, 4), 1) == [2 * i + 2]
    assert kernels.device.statistics["bytes"] < 20 * 256


def test_memory_needed_once_is_released(fresh: Device) -> None:
    pipeline, one = fresh.pipeline(ADD, 1, 1), fresh.uniform(bytes(16))
    large = [fresh.allocate(2**24) for _ in range(20)]
    assert fresh.statistics["peak"] == 20 * 2**24
    del large
    x, y = fresh.upload(bytes(4)), fresh.allocate(4)
    for _ in range(130):
        fresh.run(pipeline, one, [x, y], (1, 1, 1))
        fresh.submit()
    statistics = fresh.statistics
    assert statistics["used"] == 2 * 256
    assert statistics["bytes"] <= 2**26 + 2**24


# ---- no memory left ----------------------------------------------------------------------------------------


class Full:
    """Replaces a driver's device with one of limited memory, which counts buffers."""

    def __init__(self, device: Any, most: int) -> None:
        self.device, self.most = device, most
        self.buffers: list[tuple[Any, int]] = []
        self.create = device.create_buffer

    def create_buffer(self, *, size: int, **others: Any) -> Any:
        self.buffers = [(ref, n) for ref, n in self.buffers if ref() is not None]
        if size + sum([n for _, n in self.buffers]) > self.most:
            raise wgpu.GPUOutOfMemoryError(NO_MEMORY)
        buffer = self.create(size=size, **others)
        self.buffers.append((weakref.ref(buffer), size))
        return buffer


def test_no_memory_left_is_an_error_and_the_device_still_works(kernels: Kernels, monkeypatch: Patch) -> None:
    device = kernels.device
    full = Full(device._device, 2**20)
    monkeypatch.setattr(device._device, "create_buffer", full.create_buffer)
    x = kernels.words(1)
    held = [kernels.plus(x, 1, 2**18) for _ in range(3)]
    with pytest.raises(
        ExhaustedError, match=r"has no 524288 bytes left, \d+ .*are in use; delete tensors"
    ) as error:
        device.allocate(2**19)
    assert isinstance(error.value, BackendError)
    assert [kernels.read(y, 1) for y in held] == [[2]] * 3
    del held[1:]
    assert kernels.read(kernels.plus(held[0], 1, 2**19), 1) == [3]


def test_idle_memory_and_garbage_are_released_before_an_error(kernels: Kernels, monkeypatch: Patch) -> None:
    device = kernels.device
    full = Full(device._device, 2**20 + 2**12)
    monkeypatch.setattr(device._device, "create_buffer", full.create_buffer)
    gc.disable()
    try:
        cycle: list[Any] = [device.allocate(2**19)]
        cycle.append(cycle)
        del cycle
        x = kernels.words(1)
        kernels.plus(x, 1, 2**18)  # idle once it is submitted
        y = kernels.plus(x, 1, 2**19 + 2**18)
    finally:
        gc.enable()
    assert kernels.read(y, 1) == [2]


def test_a_device_in_software_takes_a_share_of_the_machine(fresh: Device) -> None:
    fresh.capacity = 2**20
    with pytest.raises(ExhaustedError, match=r"has no 2097152 bytes left, 0 of 1048576 are in use"):
        fresh.allocate(2**21)
    held = [fresh.allocate(2**18) for _ in range(3)]
    del held
    assert fresh.allocate(2**19).size == 2**19


def test_pending_work_is_submitted_again_after_memory_ran_out(kernels: Kernels, monkeypatch: Patch) -> None:
    y = kernels.plus(kernels.words(1), 1, 4)
    times: list[int] = []

    def failing(until: int) -> Any:
        def encode(*args: Any) -> Any:
            times.append(1)
            if len(times) <= until:
                raise wgpu.GPUOutOfMemoryError(NO_MEMORY)
            return encoding.encode(*args)

        return encode

    monkeypatch.setattr(queue, "encode", failing(1))
    assert kernels.read(y, 1) == [2]
    z = kernels.plus(y, 1, 4)
    times.clear()
    monkeypatch.setattr(queue, "encode", failing(2))
    with pytest.raises(ExhaustedError, match="cannot submit pending work: Not enough memory left"):
        kernels.read(z, 1)
    assert kernels.read(z, 1) == [3]


def test_tensors_larger_than_any_buffer_are_errors(fresh: Device) -> None:
    most = fresh.limits["max-buffer-size"]
    with pytest.raises(
        BackendError, match=rf"a tensor of {most + 4} bytes, but .* takes at most \d+ \(max-buffer-size\)"
    ):
        fresh.allocate(most + 4)


def test_the_memory_of_the_machine(tmp_path: Path, device: Device) -> None:
    limit = tmp_path / "memory.max"
    assert limits._container_limit(limit) is None
    limit.write_text("max\n")
    assert limits._container_limit(limit) is None
    limit.write_text("1073741824\n")
    assert limits._container_limit(limit) == 2**30
    if device.is_software and sys.platform == "linux":
        assert device.capacity is not None
        assert 2**28 < device.capacity < limits._physical()  # type: ignore[operator]


# ---- refused kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn main() { nonsense }", r"parsing error: expected .* \(line 1, column 22\)"),
        ("@compute @workgroup_size(1) fn other() {}", "Unable to find entry point 'main'"),
        (
            MAIN.replace("64", "4096") + "{}",
            r"4096 invocations along x, of at most \d+ \(max-compute-workgroup-size-x\)",
        ),
        (MAIN.replace("64", "64, 64, 64") + "{}", r"262144 invocations in a workgroup, of at most \d+"),
        (
            "var<workgroup> t: array<vec4<f32>, 1000000>;" + MAIN + "{ t[g.x].x = 1.0; }",
            r"16000000 bytes of workgroup memory, of at most \d+ \(max-compute-workgroup-storage-size\)",
        ),
    ],
)
def test_errors_of_kernels_have_the_reason_and_the_text(fresh: Device, text: str, message: str) -> None:
    with pytest.raises(KernelError, match=message) as error:
        fresh.pipeline(text, 0, 1)
    first, *rest = str(error.value).splitlines()
    assert first.startswith("wgpu: ")
    assert "\n".join(rest) == error.value.text == text
    assert first.endswith(error.value.reason)
    assert Kernels(fresh).add_to is not None


def test_more_memories_than_a_kernel_may_have(fresh: Device) -> None:
    with pytest.raises(KernelError, match=f"{fresh.bindings + 1} memories, of at most {fresh.bindings}"):
        fresh.pipeline(ADD, fresh.bindings, 1)


# ---- lost devices ------------------------------------------------------------------------------------------


def closed(device: Device) -> Device:
    """A device that its driver has closed, as after a reset."""
    device._device.destroy()
    return device


ASKED: dict[str, Callable[[Kernels, Memory], object]] = {
    "allocate": lambda k, x: k.device.allocate(2**20),
    "written": lambda k, x: k.words(1),
    "read": lambda k, x: k.read(x, 1),
    "run": lambda k, x: k.plus(x, 1, 4),
    "submit": lambda k, x: k.device.submit(),
    "pipeline": lambda k, x: k.device.pipeline(TWO, 1, 2),
    "uniform": lambda k, x: k.uniform(77),
}


@pytest.mark.parametrize("first", [name for name in ASKED if name not in ("run", "submit")])
def test_each_call_of_a_lost_device_is_an_error(kernels: Kernels, first: str) -> None:
    x = kernels.words(1)
    kernels.plus(x, 1, 4)
    closed(kernels.device)
    for name in (first, *ASKED):
        with pytest.raises(
            LostDeviceError, match=r"was lost \(Parent device is lost\), and all tensors on it; make them"
        ):
            ASKED[name](kernels, x)
    assert kernels.device.lost == "Parent device is lost"


def test_pending_work_of_a_lost_device_does_not_end_the_process(kernels: Kernels) -> None:
    y = kernels.plus(kernels.words(1), 1, 4)
    closed(kernels.device)
    with pytest.raises(LostDeviceError, match="was lost"):
        kernels.device.submit()
    del y


def test_a_lost_device_is_reopened(kernels: Kernels) -> None:
    x = kernels.words(1)
    closed(kernels.device)
    with pytest.raises(LostDeviceError):
        kernels.device.allocate(2**20)
    again = Kernels(kernels.device.reopened())
    assert again.device.name == kernels.device.name
    assert again.read(again.plus(again.words(1), 1, 4), 1) == [2]
    for call in (lambda: again.read(x, 1), lambda: again.plus(x, 1, 4)):
        with pytest.raises(LostDeviceError, match=r"a tensor that was on .* before it was lost"):
            call()


def test_new_tensors_of_a_backend_are_on_a_new_device(fresh: Device) -> None:
    """Tensors on the lost device are gone, with an error; functions compiled for it run on the new one."""
    backend = tk.Lazy(Wgpu(fresh))
    double, five = tk.jit(lambda x: x + x), tk.jit(lambda x: (x, tk.full((2,), 5.0, backend=backend)))

    spectrum = tk.jit(lambda x: tk.fft.fft(x, 4).real)

    def used() -> list[Any]:
        x = tk.tensor([1.0, 2.0], backend=backend)
        return [
            double(x).tolist(),
            (x * 3.0).tolist(),
            five(x)[1].tolist(),
            tk.arange(3, backend=backend).tolist(),
            spectrum(x).tolist(),  # reads a table of roots of unity
        ]

    expected = [[2.0, 4.0], [3.0, 6.0], [5.0, 5.0], [0, 1, 2], [3.0, 1.0, -1.0, 1.0]]
    assert used() == expected
    x, waits = tk.tensor([1.0, 2.0], backend=backend), tk.tensor([3.0], backend=backend) + 1.0
    shift = tk.jit(lambda y: y + x)
    assert shift(x).tolist() == [2.0, 4.0]
    closed(fresh)
    with pytest.raises(LostDeviceError, match="was lost"):
        x.tolist()
    assert used() == expected
    for request in (x.tolist, waits.tolist, lambda: shift(tk.tensor([1.0, 2.0], backend=backend)).tolist()):
        with pytest.raises(
            LostDeviceError, match=r"was on .* before it was lost \(.*\); make it again from your own data"
        ):
            request()
    assert used() == expected
    x = tk.tensor([1.0, 2.0], backend=backend)
    closed(backend.raw.device)
    with pytest.raises(LostDeviceError, match="was lost"):
        double(x).tolist()
    assert used() == expected


def test_memories_of_another_device_are_errors(kernels: Kernels, device: Device) -> None:
    x = device.upload(bytes(4))
    for call in (lambda: kernels.read(x, 1), lambda: kernels.plus(x, 1, 4)):
        with pytest.raises(BackendError, match="a tensor that is not on "):
            call()


def test_kernels_refused_late_lose_the_device(kernels: Kernels) -> None:
    device = kernels.device
    other = device.pipeline(ADD.replace("vec4<u32>;", "array<vec4<u32>, 4>;").replace("u.x", "u[3].x"), 1, 1)
    x, y = kernels.words(1), device.allocate(4)
    device.run(
        other, kernels.uniform(1), [x, y], (1, 1, 1)
    )  # the uniform is shorter than the kernel declares
    with pytest.raises(LostDeviceError, match=r"was lost \(it refused pending work: "):
        device.submit()
    with pytest.raises(LostDeviceError):
        kernels.read(y, 1)


def test_an_interrupted_submission_by_documented_calls_loses_the_device(
    kernels: Kernels, monkeypatch: Patch
) -> None:
    y = kernels.plus(kernels.words(1), 1, 4)

    def interrupted(driver: Any, commands: Any, numbers: list[int | None]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(queue, "submit_commands", interrupted)
    monkeypatch.setattr(queue, "is_direct", lambda driver: False)
    with pytest.raises(KeyboardInterrupt):
        kernels.read(y, 1)
    with pytest.raises(LostDeviceError, match=r"was lost \(KeyboardInterrupt during a submission\)"):
        kernels.read(y, 1)


@pytest.mark.skipif(encoding.DIRECT is None, reason="wgpu does not have the driver's functions")
def test_an_interruption_at_any_line_of_a_submission_changes_no_number(kernels: Kernels) -> None:
    """Ctrl-C raises between two instructions; here, at each line that a submission runs, in turn."""
    files = {module.__file__ for module in (queue, encoding, memory, bind_groups)}
    line, interruptions = 0, 0
    x = kernels.words(1, 2, 3)
    while True:
        line, left = line + 1, [line + 1]

        def trace(frame: Any, event: str, argument: Any, left: list[int] = left) -> Any:
            if frame.f_code.co_filename not in files:
                return None
            left[0] -= event == "line"
            if left[0] == 0:
                raise KeyboardInterrupt
            return trace

        x = kernels.plus(x, 1, 4)
        before = sys.gettrace()
        try:
            sys.settrace(trace)
            kernels.device.submit()
        except KeyboardInterrupt:
            interruptions += 1
        finally:
            sys.settrace(before)
        assert kernels.read(x, 3) == [1 + line, 2 + line, 3 + line]
        assert kernels.device.lost is None
        if left[0] > 0:
            break
    assert interruptions > 30


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends the process on Windows")
def test_an_interrupted_read_leaves_the_device_usable(kernels: Kernels, monkeypatch: Patch) -> None:
    device = kernels.device
    x, slow = device.upload(bytes(SLOW)), device.allocate(SLOW)
    kernels.slowly(x, slow)
    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))

    def pending(*args: Any) -> memoryview:
        timer.start()
        return reading.read(*args)

    monkeypatch.setattr(queue, "read", pending)
    with pytest.raises(KeyboardInterrupt):
        kernels.read(slow, 1)
    monkeypatch.undo()
    timer.join()
    assert kernels.read(slow, 2) == [1, 1]
    assert not reading._statuses


def test_exceptions_in_callbacks_are_raised_by_the_reader(kernels: Kernels, monkeypatch: Patch) -> None:
    if reading.DIRECT is None:
        pytest.skip("wgpu waits for the driver itself")

    class Interrupted(dict[int, Any]):
        """Raises when the first status is stored."""

        def __setitem__(self, number: int, status: Any) -> None:
            super().__setitem__(number, status)
            if not seen:
                seen.append(number)
                raise KeyboardInterrupt

    seen: list[int] = []
    monkeypatch.setattr(reading, "_statuses", Interrupted())
    x = kernels.words(7)
    with pytest.raises(KeyboardInterrupt):
        kernels.read(x, 1)
    assert kernels.read(x, 1) == [7]
    assert len(seen) == 1
    assert not reading._statuses
    assert not reading._raised


def test_buffers_that_cannot_be_mapped_are_errors(fresh: Device) -> None:
    usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
    buffer, other = [fresh._device.create_buffer(size=256, usage=usage) for _ in range(2)]
    buffer.map_async("READ").sync_wait()
    for direct in (reading.DIRECT, None):
        with pytest.raises((wgpu.GPUError, RuntimeError), match="map"):
            reading.read(fresh._device, buffer, 4, direct=direct)
    assert bytes(reading.read(fresh._device, other, 4)) == bytes(4)


def test_a_read_waits_only_for_its_own_submission(kernels: Kernels) -> None:
    """The long kernel may end before the reader continues, but not every time."""
    device = kernels.device
    x, slow = device.upload(bytes(SLOW)), device.allocate(SLOW)
    usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
    target = device._device.create_buffer(size=256, usage=usage)
    copy = encoding.Copy(device._buffer(x), 0, target, 0, 4)
    driver, queue = device._device, device._device.queue

    def was_early() -> bool:
        numbers: list[int | None] = []
        encoding.submit_commands(queue, encoding.encode(driver, [copy]), numbers)
        (number,) = numbers
        kernels.slowly(x, slow)
        device.submit()
        assert bytes(reading.read(driver, target, 4, number)) == bytes(4)
        idle = direct.poll(driver._internal, False, direct.ffi.NULL) & 1  # the driver sets no other bits
        assert kernels.read(slow, 1) == [1]
        return number is not None and not idle

    if (direct := reading.DIRECT) is not None:
        assert any(was_early() for _ in range(10))


def test_reasons_of_driver_errors() -> None:
    message = "Validation Error\n\nCaused by:\n  In wgpuQueueSubmit\n    Parent device is lost\n"
    assert (reason(Exception(message)), is_lost(Exception(message)), is_exhausted(Exception(message))) == (
        "Parent device is lost",
        True,
        False,
    )
    out = wgpu.GPUOutOfMemoryError(NO_MEMORY)
    assert (reason(out), is_lost(out), is_exhausted(out)) == ("Not enough memory left.", False, True)
    assert reason(RuntimeError("")) == "RuntimeError"


# ---- threads -----------------------------------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run work in threads at once; raises the first exception of a thread."""
    failures: list[BaseException] = []

    def kept(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001, raised by the waiting thread
            failures.append(error)

    threads = [threading.Thread(target=kept, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any([thread.is_alive() for thread in threads]), "a thread hangs"
    if failures:
        raise failures[0]


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("count", [4, 8])
def test_threads_use_one_device_at_once(kernels: Kernels, count: int, frequent_switches: None) -> None:
    kernels.device._groups._most = 16

    def work(number: int) -> None:
        for i in range(40):
            start = 1000 * number + i
            x = kernels.words(*range(start, start + 300))
            y = kernels.plus(kernels.plus(x, number, 1200), i, 1200)
            if i % 4 == 0:
                kernels.device.submit()
            if i % 13 == 0:
                gc.collect()
            if i % 17 == 0:
                kernels.device._release_all()
            assert kernels.read(y, 300) == list(range(start + number + i, start + number + i + 300))

    in_threads(count, work)
    assert kernels.device.statistics["used"] == 0


@pytest.mark.parametrize("is_proved", [False, True])
def test_kernels_are_compiled_at_once_with_their_own_errors(
    kernels: Kernels, is_proved: bool, frequent_switches: None, monkeypatch: Patch
) -> None:
    """In threads of which some get errors: each error is that of its kernel, as without threads."""
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    device, count = kernels.device, 80
    bad = {
        3: (ADD.replace("+ u.x", "+ 1.5"), "Entry point main"),
        4: (ADD.replace("@binding(2)", "@binding(7)"), "(?i)binding"),
        6: ("@compute fn", "expected"),
        7: (
            HEAD + "var<workgroup> z: array<u32, 99999999>;" + MAIN + "{ y[g.x] = z[u.x]; }",
            "workgroup memory",
        ),
    }
    sources = [
        Source(bad[i % 8][0] + f"// {i}", 1, 1, is_proved)
        if i % 8 in bad
        else Source(ADD.replace("+ u.x", f"+ u.x + {i}u"), 1, 1, is_proved)
        for i in range(count)
    ]
    threads: set[int] = set()
    create = pipelines.create_module

    def create_module(*args: Any) -> Any:
        threads.add(threading.get_ident())
        return create(*args)

    monkeypatch.setattr(pipelines, "create_module", create_module)
    before = device.statistics["pipelines"]
    device.compile(sources + sources)
    assert device.statistics["pipelines"] - before == count // 2
    assert len(threads) > 1
    assert threading.get_ident() not in threads
    x = kernels.words(5)
    for i, source in enumerate(sources):
        if i % 8 in bad:
            with pytest.raises(KernelError, match=bad[i % 8][1]):
                device.pipeline(*source)
        else:
            y = device.allocate(4)
            device.run(device.pipeline(*source), kernels.uniform(100), [x, y], (1, 1, 1))
            assert kernels.read(y, 1) == [105 + i]
    assert device.statistics["pipelines"] - before == count // 2


def test_compiling_on_a_lost_device_is_an_error(kernels: Kernels) -> None:
    kernels.device._state.mark_lost("it was unplugged")
    with pytest.raises(LostDeviceError, match="it was unplugged"):
        kernels.device.compile([Source(ADD, 1, 1)])


def test_reading_threads_do_not_block_others(kernels: Kernels) -> None:
    """While one thread waits for a long kernel, another can submit and wait; on a busy machine not every time."""
    device = kernels.device
    x, slow = device.upload(bytes(SLOW)), device.allocate(SLOW)

    def went_on() -> bool:
        # Submitted by the reader: a driver may delay the next submission until the one before is done.
        kernels.slowly(x, slow)
        thread = threading.Thread(target=kernels.read, args=(slow, 1))
        thread.start()
        time.sleep(0.01)
        y = kernels.plus(x, 1, 4)
        before = thread.is_alive()
        thread.join(60)
        assert not thread.is_alive()
        assert kernels.read(y, 1) == [1]
        return before

    assert any(went_on() for _ in range(10))
