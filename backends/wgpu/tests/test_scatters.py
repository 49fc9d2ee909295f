"""Scatters: for a large result each index is visited once per column, and sums have the bits of sums in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.lazy.interpreter import Lazy
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import scatters
from tensorken_wgpu.kernels.kernel import WORKGROUP
from tensorken_wgpu.kernels.scatters import has_scatter_kernels
from tensorken_wgpu.wgsl.single_op import Value, single
from tensorken_wgpu.wgsl.target import Target

SCATTER = OPS["scatter_add"]


def scattered(x: Any, indices: Any, axis: int, size: int) -> Any:
    """The same in numpy, one slice after the other; float16 is summed in float32."""
    accumulator_dtype = np.float32 if x.dtype == np.float16 else x.dtype
    result = np.zeros((size, *np.delete(x.shape, axis)), accumulator_dtype)
    for i, slice_ in zip(indices, np.moveaxis(x, axis, 0), strict=True):
        if 0 <= i < size:
            result[i] += slice_
    return np.moveaxis(result, 0, axis).astype(x.dtype)


def planned(target: Target, *shape: int, count: int, axis: int = 0, size: int) -> Any:
    """The kernels of an op on float32 of this shape."""
    x = Value((*shape[:axis], count, *shape[axis:]), DTYPES["float32"])
    program: Any = single(SCATTER, [x, Value((count,), DTYPES["int32"])], (axis, size))
    return [step.kernel for step in plan(program, target).steps]


@pytest.fixture(params=["software", "hardware"])
def scattering(request: Any, device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A backend that uses these kernels for all scatters, with a few indices per kernel, divided as for a GPU or a
    processor.
    """
    monkeypatch.setattr(scatters, "MIN_COMPARISONS", 0)
    monkeypatch.setattr(scatters, "MIN_SAVING", 0)
    monkeypatch.setattr(scatters, "MAX_ITERATIONS", 8)
    monkeypatch.setattr(Target, "busy_invocations", 12)
    raw = Wgpu(device)
    raw.target = replace(raw.target, is_software=request.param == "software")
    return Lazy(raw)


@pytest.mark.parametrize(
    ("dtype", "shape", "axis"),
    [
        ("float32", (20,), 0),
        ("float32", (2, 17, 3), 1),
        ("float32", (30, 20), 0),
        ("float16", (9, 3), 0),
        ("int32", (2, 1, 3), 1),
        ("int64", (2, 8), 1),
        ("float64", (9, 3), 0),
    ],
)
def test_sums_have_the_bits_of_sums_in_order(scattering: Any, dtype: str, shape: Any, axis: int) -> None:
    if dtype not in scattering.raw.capabilities.dtypes:
        pytest.skip(f"{scattering.raw.device.name} has no {dtype}")
    random = np.random.default_rng(0)
    x = (random.normal(size=shape) * 50).astype(dtype)
    for size in (1, 31):
        indices = random.integers(-2, size + 2, shape[axis]).astype(np.int32)
        if dtype == "int64":
            indices = indices + 2**32 * (np.arange(len(indices)) % 2)  # every second one is out of range
        given = [tk.tensor(a, backend=scattering) for a in (x, indices)]
        found = np.asarray(given[0].scatter_add(given[1], axis, size))
        expected = scattered(x, indices, axis, size)
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()


def test_scatters_within_larger_programs(scattering: Any) -> None:
    random = np.random.default_rng(0)
    x, indices = random.normal(size=(3, 20)).astype(np.float32), random.integers(0, 9, 20).astype(np.int32)

    def f(x: Any, i: Any) -> Any:
        sums = (x.T * 2.0 + 1.0).scatter_add((i + 3) % 9, 0, 9)
        again = tk.exp(-sums * sums).scatter_add(i[:9] // 2, 0, 5)
        return sums.sum(0), again * 3.0, sums.max(1)

    for within in (lambda g: g, tk.jit):
        found = within(f)(*[tk.tensor(a, backend=scattering) for a in (x, indices)])
        expected = f(*[tk.tensor(a, backend="numpy") for a in (x, indices)])
        for y, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(y), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def test_each_index_is_visited_once_per_column() -> None:
    """A reduction would compare it 10 000 times."""
    zeros, scatter = planned(Target(8, 2**28, is_software=True), 64, count=1024, size=10_000)
    assert (zeros.reads, len(scatter.reads), scatter.writes) == ((), 2, zeros.writes)
    assert (scatter.workgroups, scatter.work) == ((1, 1, 1), 64 * 1024)


def test_on_a_gpu_invocations_share_few_columns() -> None:
    target = Target(8, 2**28, is_software=False)
    _, scatter = planned(target, count=1000, size=2**21)
    assert scatter.workgroups == (target.busy_invocations // WORKGROUP, 1, 1)
    _, scatter = planned(target, 64, count=1000, size=2**15)
    assert scatter.workgroups == (target.busy_invocations // WORKGROUP, 1, 1)


@pytest.mark.parametrize(
    ("target", "count", "size"),
    [
        (Target(8, 2**28, is_software=True), 2**14, 4),  # few elements
        (Target(8, 2**28, is_software=True), 10, 100),  # little to do
        (Target(8, 2**28, is_software=False), 2**10, 2**16),  # one invocation per element
        (Target(8, 2**10, is_software=True), 2**10, 2**10),  # bound in windows
    ],
)
def test_small_scatters_are_reductions(target: Target, count: int, size: int) -> None:
    program: Any = single(
        SCATTER, [Value((count,), DTYPES["float32"]), Value((count,), DTYPES["int32"])], (0, size)
    )
    assert not has_scatter_kernels(program.equations[0], target)


def test_many_indices_take_several_kernels_with_one_text(device: Any, lazy: Any) -> None:
    """Mesa's software driver would end one loop over all of them."""
    indices = np.random.default_rng(0).integers(0, 3000, 150_000).astype(np.int32)
    x = tk.tensor(np.ones(150_000, np.int32), backend=lazy)
    before = device.statistics
    found = np.asarray(x.scatter_add(tk.tensor(indices, backend=lazy), 0, 3000))
    assert found.tolist() == np.bincount(indices, minlength=3000).tolist()
    if device.is_software:
        after = device.statistics
        assert after["kernels"] - before["kernels"] == 6
        assert after["pipelines"] - before["pipelines"] <= 3  # zeros, the first kernel, the others
