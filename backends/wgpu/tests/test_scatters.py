"""Scatters: where the result is large each index is looked at once for each column, and sums are what they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.lazy.interpreter import Lazy
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu import scatters
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.kernels import WORKGROUP
from tensorken_wgpu.planning import plan
from tensorken_wgpu.scatters import is_walked
from tensorken_wgpu.single import Value, single
from tensorken_wgpu.target import Target

SCATTER = OPS["scatter_add"]


def scattered(x: Any, indices: Any, axis: int, size: int) -> Any:
    """The same in NumPy, one slice after the other; those of float16 are added up in float32."""
    kept = np.float32 if x.dtype == np.float16 else x.dtype
    result = np.zeros((size, *np.delete(x.shape, axis)), kept)
    for i, slice_ in zip(indices, np.moveaxis(x, axis, 0), strict=True):
        if 0 <= i < size:
            result[i] += slice_
    return np.moveaxis(result, 0, axis).astype(x.dtype)


def planned(target: Target, *shape: int, count: int, axis: int = 0, size: int) -> Any:
    """The kernels of an op on float32 of a shape."""
    x = Value((*shape[:axis], count, *shape[axis:]), DTYPES["float32"])
    program: Any = single(SCATTER, [x, Value((count,), DTYPES["int32"])], (axis, size))
    return [step.kernel for step in plan(program, target).steps]


@pytest.fixture(params=["software", "hardware"])
def walking(request: Any, device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A backend that walks whatever is scattered, a few indices in each kernel; the way GPUs do, or processors."""
    monkeypatch.setattr(scatters, "MUCH", 0)
    monkeypatch.setattr(scatters, "LESS", 0)
    monkeypatch.setattr(scatters, "TURNS", 8)
    monkeypatch.setattr(Target, "enough", 12)
    raw = Wgpu(device)
    raw.target = replace(raw.target, in_software=request.param == "software")
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
def test_sums_have_the_bits_of_sums_in_order(walking: Any, dtype: str, shape: Any, axis: int) -> None:
    if dtype not in walking.raw.capabilities.dtypes:
        pytest.skip(f"{walking.raw.device.name} has no {dtype}")
    random = np.random.default_rng(0)
    x = (random.normal(size=shape) * 50).astype(dtype)
    for size in (1, 31):
        indices = random.integers(-2, size + 2, shape[axis]).astype(np.int32)
        if dtype == "int64":
            indices = indices + 2**32 * (np.arange(len(indices)) % 2)  # each second one is outside
        given = [tk.tensor(a, backend=walking) for a in (x, indices)]
        found = np.asarray(given[0].scatter_add(given[1], axis, size))
        right = scattered(x, indices, axis, size)
        assert found.dtype == right.dtype
        assert found.tolist() == right.tolist()


def test_what_is_scattered_and_where_may_be_computed_and_the_sums_used(walking: Any) -> None:
    random = np.random.default_rng(0)
    x, indices = random.normal(size=(3, 20)).astype(np.float32), random.integers(0, 9, 20).astype(np.int32)

    def f(x: Any, i: Any) -> Any:
        sums = (x.T * 2.0 + 1.0).scatter_add((i + 3) % 9, 0, 9)
        again = tk.exp(-sums * sums).scatter_add(i[:9] // 2, 0, 5)
        return sums.sum(0), again * 3.0, sums.max(1)

    for within in (lambda g: g, tk.jit):
        found = within(f)(*[tk.tensor(a, backend=walking) for a in (x, indices)])
        right = f(*[tk.tensor(a, backend="numpy") for a in (x, indices)])
        for y, wanted in zip(found, right, strict=True):
            np.testing.assert_allclose(np.asarray(y), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def test_an_index_of_a_large_table_is_looked_at_once_for_each_column() -> None:
    """By a fold it would be 10 000 times."""
    zeros, walk = planned(Target(8, 2**28, in_software=True), 64, count=1024, size=10_000)
    assert (zeros.reads, len(walk.reads), walk.writes) == ((), 2, zeros.writes)
    assert (walk.groups, walk.work) == ((1, 1, 1), 64 * 1024)


def test_few_columns_are_shared_on_a_gpu() -> None:
    target = Target(8, 2**28, in_software=False)
    _, walk = planned(target, count=1000, size=2**21)
    assert walk.groups == (target.enough // WORKGROUP, 1, 1)
    _, walk = planned(target, 64, count=1000, size=2**15)
    assert walk.groups == (target.enough // WORKGROUP, 1, 1)


@pytest.mark.parametrize(
    ("target", "count", "size"),
    [
        (Target(8, 2**28, in_software=True), 2**14, 4),  # few elements
        (Target(8, 2**28, in_software=True), 10, 100),  # little to do
        (Target(8, 2**28, in_software=False), 2**10, 2**16),  # each has an invocation
        (Target(8, 2**10, in_software=True), 2**10, 2**10),  # bound in parts
    ],
)
def test_else_it_is_a_fold(target: Target, count: int, size: int) -> None:
    program: Any = single(
        SCATTER, [Value((count,), DTYPES["float32"]), Value((count,), DTYPES["int32"])], (0, size)
    )
    assert not is_walked(program.equations[0], target)


def test_many_indices_are_walked_by_several_kernels_of_one_text(device: Any, lazy: Any) -> None:
    """Mesa's driver in software would end one loop over all of them."""
    indices = np.random.default_rng(0).integers(0, 3000, 150_000).astype(np.int32)
    x = tk.tensor(np.ones(150_000, np.int32), backend=lazy)
    before = device.statistics
    found = np.asarray(x.scatter_add(tk.tensor(indices, backend=lazy), 0, 3000))
    assert found.tolist() == np.bincount(indices, minlength=3000).tolist()
    if device.is_software:
        after = device.statistics
        assert after["kernels"] - before["kernels"] == 6
        assert after["pipelines"] - before["pipelines"] <= 3  # zeros, the first of them, the others
