"""Transfers and the work of the host: copies, uploads, reads, and the cost of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorken as tk
from tensorken_wgpu.report.bench import Bench, Row, attempt

COUNTERS = ("kernels", "submissions")
CALLS = 64
"""The calls for which the device's counters are compared."""


def largest_memory(bench: Bench) -> int:
    """The bytes of the largest arrays of the report, within the limits of the device and a power of two."""
    wanted = 2**16 if bench.tiny else 2**22 if bench.is_small else 2**26 if bench.quick else 2**28
    limits = bench.device.limits
    most = min(limits["max-buffer-size"] // 2, limits["max-storage-buffer-binding-size"])
    return min(wanted, 1 << most.bit_length() - 1)


def copies(bench: Bench) -> Iterator[Row]:
    """Copies on the device, uploads and reads."""
    size, device = largest_memory(bench), bench.device

    def on_device() -> Row:
        source, target = device.upload(bytes(size)), device.allocate(size)
        seconds = bench.seconds(lambda: device.copy([(source, 0, target, 0, size)]))
        bench.copy_rate = 2 * size / seconds
        torch = bench.torch_seconds(_torch_copy(size))
        return Row("copy on the device", seconds, bench.copy_rate, "B", torch=torch, facts={"bytes": size})

    yield attempt("copy on the device", on_device)
    sizes = (2**14,) if bench.tiny else (2**20, 2**24) if bench.is_small else (2**20, 2**26, 2**29)
    for count in [n for n in sizes if n <= device.limits["max-buffer-size"]]:
        data = memoryview(bytearray(count))

        def upload(data: memoryview = data, count: int = count) -> Row:
            seconds = bench.seconds(lambda: device.upload(data))
            return Row(f"upload {count >> 10} KiB", seconds, count / seconds, "B")

        def read(data: memoryview = data, count: int = count) -> Row:
            memory = device.upload(data)
            seconds = bench.seconds(lambda: device.read(memory, count), lambda: None)
            return Row(f"read {count >> 10} KiB", seconds, count / seconds, "B")

        yield attempt(f"upload {count >> 10} KiB", upload)
        yield attempt(f"read {count >> 10} KiB", read)


def _torch_copy(size: int) -> Callable[[Any], Callable[[], Any]]:
    def make_call(torch: Any) -> Callable[[], Any]:
        x = torch.zeros(size // 4, device="cuda")
        y = torch.empty_like(x)
        return lambda: y.copy_(x)

    return make_call


def host(bench: Bench) -> Iterator[Row]:
    """What the host needs for a kernel, a submission and a read."""
    x = tk.ones((4,), "float32")
    step = tk.jit(lambda x: tk.sin(x))

    def kernel() -> Row:
        counts = dict(bench.counted(lambda: step(x), COUNTERS, CALLS))
        seconds = bench.seconds(lambda: step(x))
        return Row("a small program of one kernel, not submitted each", seconds, facts=counts)

    def submission() -> Row:
        counts = dict(bench.counted(lambda: step(x).realize(), COUNTERS, CALLS))
        seconds = bench.seconds(lambda: step(x).realize())
        return Row("the same, submitted each", seconds, facts=counts)

    def read() -> Row:
        return Row("read 4 bytes of an idle device", bench.seconds(bench.wait, lambda: None))

    def item() -> Row:
        return Row("compute one number and read it", bench.seconds(lambda: step(x)[0].item(), lambda: None))

    def eager() -> Row:
        return Row("ten ops without jit, and read", bench.seconds(lambda: _chain(x).tolist(), lambda: None))

    for name, function in (
        ("kernel", kernel),
        ("submission", submission),
        ("read", read),
        ("item", item),
        ("eager", eager),
    ):
        yield attempt(name, function)


def _chain(x: tk.Tensor) -> tk.Tensor:
    for _ in range(5):
        x = tk.sqrt(x) + 1.0
    return x
