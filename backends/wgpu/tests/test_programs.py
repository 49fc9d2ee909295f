"""Programs: values share memory only if they are not alive at the same time; schedules are cached and dropped."""

from __future__ import annotations

import gc
import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_core.language.dtypes import float32
from tensorken_wgpu.device import bind_groups
from tensorken_wgpu.device.memory import class_of
from tensorken_wgpu.execution.slots import slots
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.single_op import Value


@dataclass(frozen=True)
class Kernel:
    """The attributes of a kernel that slots depend on."""

    reads: list[Value]
    writes: list[Value]


@dataclass(frozen=True)
class Step:
    """A kernel, and the values that no later kernel needs."""

    kernel: Kernel
    dead: list[Value]


def drawn(rng: random.Random) -> tuple[list[Step], list[Value]]:
    """Random kernels that read results of earlier ones, and the outputs."""
    values: list[Value] = []
    kernels = []
    for _ in range(rng.randint(1, 30)):
        reads = rng.sample(values, min(len(values), rng.randint(0, 3)))
        sizes = [rng.choice((1, 7, 10**3, 10**5, 10**6, 3 * 10**6)) for _ in range(rng.randint(1, 3))]
        kernels.append(Kernel(reads, [Value((n,), float32) for n in sizes]))
        values += kernels[-1].writes
    outputs = rng.sample(values, rng.randint(1, len(values)))
    last = {v: i for i, kernel in enumerate(kernels) for v in (*kernel.writes, *kernel.reads)}
    last |= dict.fromkeys(outputs, len(kernels))
    dead: list[list[Value]] = [[v for v in values if last[v] == i] for i in range(len(kernels))]
    return [Step(*each) for each in zip(kernels, dead, strict=True)], outputs


@pytest.mark.parametrize("seed", range(50))
def test_values_keep_their_slots_while_they_are_needed(seed: int) -> None:
    steps, outputs = drawn(random.Random(seed))
    binding_size = 10**6
    found, sizes = slots(steps, outputs, binding_size)  # type: ignore[arg-type]
    alive: dict[int, Value] = {}
    for step in steps:
        kernel = step.kernel
        assert all(alive[found[v]] is v for v in kernel.reads)
        assert {found[v] for v in kernel.writes}.isdisjoint([found[v] for v in kernel.reads])
        alive |= {found[v]: v for v in kernel.writes}
        assert all(alive[found[v]] is v for v in kernel.writes)
    assert all(alive[found[v]] is v for v in outputs)
    for v, slot in found.items():
        assert size_of(v) <= sizes[slot]
        assert (size_of(v) > binding_size) == (sizes[slot] > binding_size)
    assert all(class_of(sizes[found[v]]) == class_of(size_of(v)) for v in outputs)


def test_a_chain_needs_two_slots() -> None:
    values = [Value((n,), float32) for n in (10**5, 2 * 10**5, 10**5, 2 * 10**5, 10**5)]
    steps = [Step(Kernel([], values[:1]), [])]
    steps += [Step(Kernel([x], [y]), [x]) for x, y in itertools.pairwise(values)]
    found, sizes = slots(steps, [], 10**9)  # type: ignore[arg-type]
    assert [found[v] for v in values] == [0, 1, 0, 1, 0]
    assert sizes == [4 * 10**5, 8 * 10**5]


def descended(x: Any) -> Any:
    """Several kernels, each of which needs the result of the one before."""
    for _ in range(4):
        x = x - 0.1 * tk.softmax(x @ x.T) @ x
    return x, x.sum(0)


def right(x: Any) -> Any:
    return [np.asarray(y) for y in descended(tk.tensor(x, backend="numpy"))]


def test_later_runs_do_not_change_results(lazy: Any, device: Any) -> None:
    f = tk.jit(descended)
    xs = [np.random.default_rng(i).normal(size=(12, 12)).astype(np.float32) for i in range(20)]
    found = [f(tk.tensor(x, backend=lazy)) for x in xs]
    for ys, x in zip(found, xs, strict=True):
        for y, z in zip(ys, right(x), strict=True):
            np.testing.assert_allclose(np.asarray(y), z, rtol=1e-4, atol=1e-5)


def test_threads_run_one_program_at_once(lazy: Any) -> None:
    f = tk.jit(descended)

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(12, 12)).astype(np.float32)
        want, x_on_device = right(x)[0], tk.tensor(x, backend=lazy)
        for _ in range(20):
            np.testing.assert_allclose(np.asarray(f(x_on_device)[0]), want, rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [None] * 4  # raises if one has failed


def test_a_loop_uses_its_bind_groups_again(lazy: Any, device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], bind_groups.BindGroups.bind_group

    def counted(*args: Any) -> Any:
        made.append(args)
        return make(*args)

    f, x = tk.jit(descended), tk.tensor(np.eye(12, dtype=np.float32), backend=lazy)
    gc.collect()
    gc.disable()  # collecting what other tests left would free memory, and the loop would take that
    device._release_all()  # so that it takes no blocks that other tests left idle
    try:
        for _ in range(20):
            x, total = f(x)
            total.tolist()
        monkeypatch.setattr(bind_groups.BindGroups, "bind_group", counted)
        for _ in range(60):
            x, total = f(x)
            total.tolist()
        assert len(made) < 20  # some if a busy machine frees memory late, else none
    finally:
        gc.enable()


def test_schedules_are_dropped_with_their_memory(lazy: Any, device: Any) -> None:
    f, x = tk.jit(descended), np.eye(12, dtype=np.float32)
    for count in (12, 7, 12):
        x_on_device = tk.tensor(x[:count, :count], backend=lazy)
        for y, z in zip(f(x_on_device), right(x[:count, :count]), strict=True):
            np.testing.assert_allclose(np.asarray(y), z, rtol=1e-4, atol=1e-5)
        assert device._groups.schedules
        device._release_all()
        assert not device._groups.schedules


def test_the_number_of_cached_schedules_is_limited(lazy: Any, device: Any) -> None:
    f, x = tk.jit(lambda x: tk.tanh(x) + 1.0), tk.tensor(np.zeros(300, np.float32), backend=lazy)
    kept = [f(x) for _ in range(3 * bind_groups.MAX_SCHEDULES)]
    assert len(device._groups.schedules) == bind_groups.MAX_SCHEDULES
    assert [y[299].item() for y in kept] == [1.0] * len(kept)
