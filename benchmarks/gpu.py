"""The GPU suites: against numpy and plain kernels, and on a hardware GPU against the vendor's library.

A software GPU is timed by CPU time, as all other suites, and also by wall time, as its driver uses several
processors. A hardware GPU is timed by wall time; each call waits for the last of several results.

`python gpu.py SELECT` prints the rows of wall times as JSON.
"""

from __future__ import annotations

import functools
import json
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from call import Call
from harness import PROCESSORS, Candidate, Row, compare, unpinned
from libraries import OURS, installed
from self_comparison import Computation
from tasks import TASKS
from tasks.case import normal

import tensorken as tk
from tensorken_core.errors import BackendError

Function = Callable[..., Any]

STEPS = ("digits_step", "transformer_step")
ROUNDS = 100
TILE = 16
LANES = 256

NAIVE = f"""
@group(0) @binding(0) var<uniform> size: vec4<u32>;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;
@compute @workgroup_size({TILE}, {TILE})
fn main(@builtin(global_invocation_id) at: vec3<u32>) {{
    let n = size.x;
    var total = 0.0;
    for (var k = 0u; k < n; k++) {{ total += a[at.y * n + k] * b[k * n + at.x]; }}
    c[at.y * n + at.x] = total;
}}
"""
"""A product of square matrices: each invocation computes one element."""

COPY = f"""
@group(0) @binding(0) var<uniform> size: vec4<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size({LANES})
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    let i = at.x + at.y * groups.x * {LANES}u;
    if (i < size.x) {{ y[i] = x[i]; }}
}}
"""
"""A copy: each invocation moves four numbers."""

# ---- candidates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnGpu:
    """Submits work to the GPU a number of times, and waits for it."""

    device: Any
    candidate: Candidate
    times: int = 1

    def __call__(self) -> Any:
        with tk.use_backend("wgpu"):
            for _ in range(self.times):
                self.candidate()
        self.device.read(_fence(self.device), 4)

    def numbers(self) -> list[Any]:
        """The numbers of one submission."""
        with tk.use_backend("wgpu"):
            return self.candidate.numbers()


@dataclass(frozen=True, slots=True)
class Plain:
    """A kernel of ten lines, run directly on the device without our compiler."""

    device: Any
    text: str
    size: int
    groups: tuple[int, int, int]
    operands: Sequence[Any]
    shape: tuple[int, ...]

    def __call__(self) -> Any:
        device, operands = self.device, [_written(self.device, x) for x in self.operands]
        pipeline = device.pipeline(self.text, len(operands), 1)
        memory = device.allocate(4 * int(np.prod(self.shape)))
        uniform = device.uniform(struct.pack("<4I", self.size, 0, 0, 0))
        device.run(pipeline, uniform, [*operands, memory], self.groups)
        return memory

    def numbers(self) -> list[Any]:
        """The result, as a numpy array."""
        found = np.frombuffer(self.device.read(self(), 4 * int(np.prod(self.shape))), np.float32)
        return [found.reshape(self.shape).astype(np.float64)]


@dataclass(frozen=True, slots=True)
class OnHost:
    """numpy's own function."""

    function: Function
    arguments: Sequence[Any]

    def __call__(self) -> Any:
        return self.function(*self.arguments)

    def numbers(self) -> list[Any]:
        """The result."""
        return [np.asarray(self()).astype(np.float64)]


@dataclass(frozen=True, slots=True)
class Vendor:
    """PyTorch's matrix product, which uses the vendor's library, in full float32."""

    torch: Any
    operands: Sequence[Any]
    times: int

    def __call__(self) -> Any:
        a, b = (_on_cuda(self.torch, x) for x in self.operands)
        for _ in range(self.times):
            found = a @ b
        self.torch.cuda.synchronize()
        return found

    def numbers(self) -> list[Any]:
        """The product."""
        return [self().cpu().numpy().astype(np.float64)]


_memories: dict[tuple[int, int], tuple[Any, Any]] = {}


def _written(device: Any, x: Any) -> Any:
    """A numpy array in the device's memory, copied once."""
    key = (id(device), id(x))
    if key not in _memories:
        _memories[key] = (device.upload(x), x)
    return _memories[key][0]


def _on_cuda(torch: Any, x: Any) -> Any:
    key = (id(torch), id(x))
    if key not in _memories:
        _memories[key] = (torch.tensor(x, device="cuda"), x)
    return _memories[key][0]


@functools.cache
def _fence(device: Any) -> Any:
    return device.allocate(4)


def _vendor(*operands: Any, times: int) -> Candidate | None:
    """The vendor's matrix product, if PyTorch supports the GPU."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    return Vendor(torch, operands, times)


def _matmul(device: Any, a: Any, b: Any) -> Plain:
    n = len(a)
    return Plain(device, NAIVE, n, (n // TILE, n // TILE, 1), (a, b), (n, n))


def _copied(device: Any, x: Any) -> Plain:
    groups = x.size // 4 // LANES
    return Plain(device, COPY, x.size // 4, (min(groups, 2**15), -(-groups // 2**15), 1), (x,), x.shape)


# ---- functions with numpy's names ------------------------------------------------------------------------------


def _chain(xp: Any) -> Function:
    """Eight ops on each element."""
    return lambda x: xp.sqrt(xp.log(xp.exp(x * 0.5) + 1.0) / (x * x + 2.0))


def _softmax(xp: Any) -> Function:
    def softmax(x: Any) -> Any:
        y = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return y / xp.sum(y, axis=-1, keepdims=True)

    return softmax


def _layer_norm(xp: Any) -> Function:
    def layer_norm(x: Any) -> Any:
        x = x - xp.mean(x, axis=-1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5)

    return layer_norm


def _matmuls(xp: Any) -> Function:
    return lambda a, b: a @ b


def _sums(axis: int | None) -> Function:
    return lambda xp: lambda x: xp.sum(x, axis=axis)


WORK: Mapping[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "chain_of_8_on_4Mi": (_chain, ((2**22,),)),
    "sum_1e7": (_sums(None), ((10**7,),)),
    "sum_of_columns": (_sums(0), ((4096, 2048),)),
    "sum_of_rows": (_sums(1), ((4096, 2048),)),
    "softmax_4096x1000": (_softmax, ((4096, 1000),)),
    "layer_norm_4096x1000": (_layer_norm, ((4096, 1000),)),
    "matmul_512": (_matmuls, ((512, 512), (512, 512))),
}
"""By name: a function of the library to use, and the shapes of its arguments."""

# ---- the suites ------------------------------------------------------------------------------------------------


def in_software(_: Sequence[str], select: str) -> Iterator[Row]:
    """CPU times on a software GPU."""
    device = _device(is_software=True)
    if device is not None:
        yield from _against_numpy(device, select, time.process_time)
        yield from _host_overhead(device, select)


def by_the_clock(_: Sequence[str], select: str) -> Iterator[Row]:
    """Wall times on a software GPU and of numpy, with all processors.

    Runs in a new process, as a driver fixes its number of threads when it starts.
    """
    with unpinned():
        process = [sys.executable, "-W", "ignore", __file__, select]
        done = subprocess.run(process, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or "?").splitlines()[-1])
    *messages, rows = done.stdout.splitlines()
    print(*messages, sep="\n")
    yield from [Row(**row) for row in json.loads(rows)]


def in_hardware(_: Sequence[str], select: str) -> Iterator[Row]:
    """Wall times on a hardware GPU; short work is submitted several times before waiting."""
    device = _device(is_software=False)
    if device is not None:
        yield from _against_numpy(device, select, time.perf_counter)
        yield from _against_the_device(device, select)
        yield from _host_overhead(device, select)


def adapter() -> str:
    """The name and driver of the adapter."""
    from tensorken_wgpu.device.adapters import adapter_of, name_of

    return f"Adapter: {name_of(adapter_of(None))}."


def processors() -> str:
    """The adapter, and the number of processors that it uses."""
    return f"{adapter()[:-1]}, {len(PROCESSORS) or 'all'} processors."


@functools.cache
def _device(is_software: bool) -> Any:
    """The device of the wgpu backend if it is of this kind; otherwise prints why there is none."""
    kind = "in software" if is_software else "in hardware"
    try:
        device = tk.tensor(0.0, backend="wgpu").interpreter.raw.device
    except BackendError as error:
        print(f"there is no GPU {kind}: {str(error).splitlines()[0]}")
        return None
    if device.is_software != is_software:
        print(f"there is no GPU {kind}, but {device.name}")
        return None
    print(device.name)
    return device


def _against_numpy(device: Any, select: str, clock: Callable[[], float]) -> Iterator[Row]:
    """Functions of large arrays, and training steps, against our numpy backend."""
    yield from _large_arrays(device, select, clock)
    for name in STEPS:
        if select in name:
            with tk.use_backend("numpy"):
                theirs = Call(TASKS[name], installed([OURS])[OURS], compiled=True)
            yield compare(name, OnGpu(device, _step(name)), {"numpy": theirs}, 1e-3, clock)


def _large_arrays(device: Any, select: str, clock: Callable[[], float]) -> Iterator[Row]:
    """Functions of large arrays."""
    for name, (function, shapes) in WORK.items():
        if select in name:
            arguments = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
            given = [tk.tensor(x, backend="wgpu") for x in arguments]
            ours = OnGpu(device, Computation(tk.jit(function(tk)), given))
            peers: dict[str, Candidate] = {"numpy": OnHost(function(np), arguments)}
            if name.startswith("matmul"):
                peers["naive"] = OnGpu(device, _matmul(device, *arguments))
            yield compare(name, ours, peers, 1e-4, clock)


def _against_the_device(device: Any, select: str) -> Iterator[Row]:
    """Memory-bound work against a copy, which reads and writes each number; and large matrix products."""
    repeats, x = 20, normal(2**26)
    given = tk.tensor(x, backend="wgpu")
    for name, function in (("chain_of_8_on_64Mi", _chain(tk)), ("sum_of_64Mi", lambda x: x.sum())):
        if select in name:
            ours = OnGpu(device, Computation(tk.jit(function), [given]), repeats)
            row = compare(name, ours, {}, 1e-4, time.perf_counter)
            copy = compare(name, OnGpu(device, _copied(device, x), repeats), {}, 0.0, time.perf_counter)
            yield Row(name, row.ours / repeats, "s", {"copy": row.ours / copy.ours})
    if select in "matmul_4096":
        a, b = normal(4096, 4096), normal(4096, 4096, seed=1)
        ours = OnGpu(
            device, Computation(_matmuls(tk), [tk.tensor(y, backend="wgpu") for y in (a, b)]), repeats
        )
        peers = {
            "vendor": _vendor(a, b, times=repeats),
            "naive": OnGpu(device, _matmul(device, a, b), repeats),
        }
        row = compare("matmul_4096", ours, peers, 1e-4, time.perf_counter)
        yield Row(row.name, row.ours / repeats, "s", row.ratios)


def _host_overhead(device: Any, select: str) -> Iterator[Row]:
    """The smallest host time for submitting a kernel of a training step."""
    for name in STEPS:
        if select in name:
            with tk.use_backend("wgpu"):
                lib = installed([OURS])[OURS]
                function, arguments = TASKS[name].make(lib)
                step, arguments = tk.jit(function), lib.array(arguments)
                found = []
                for _ in range(ROUNDS):
                    before, start = device.statistics["kernels"], time.thread_time()
                    *state, _loss = step(*arguments)
                    device.submit()
                    seconds = time.thread_time() - start
                    found.append(seconds / (device.statistics["kernels"] - before))
                    arguments = (*state, *arguments[len(state) :])
                    device.read(_fence(device), 4)
            yield Row(f"{name}_host_a_kernel", min(found), "s", {})


def _step(name: str) -> Call:
    with tk.use_backend("wgpu"):
        return Call(TASKS[name], installed([OURS])[OURS], compiled=True)


if __name__ == "__main__":
    opened = _device(is_software=True)
    found = [] if opened is None else _large_arrays(opened, sys.argv[1], time.perf_counter)
    print(json.dumps([asdict(row) for row in found]))
