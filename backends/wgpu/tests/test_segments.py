"""Segments: scatters by sorted indices are those of numpy for all distributions of indices, with the same bits each
time, and read each slice once.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.op import OPS
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import segments
from tensorken_wgpu.kernels.scatters import has_scatter_kernels
from tensorken_wgpu.wgsl.single_op import Value, single
from tensorken_wgpu.wgsl.target import Target

SCATTER = OPS["scatter_add"]
GPU = Target(8, 2**28, is_software=False)


@pytest.fixture
def always(raw: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A backend that takes the device for a GPU, sorts the indices of all scatters, and has many levels of chunks."""
    for name, number in {"MIN_COMPARISONS": 0, "MIN_SAVING": 0, "CHUNK": 4, "MAX_CHUNKS": 5}.items():
        monkeypatch.setattr(segments, name, number)
    backend = Wgpu(raw.device)
    backend.target = replace(raw.target, is_software=False)
    return tk.Lazy(backend)


def distributions(count: int, size: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        rng.integers(-3, size + 3, count),
        np.full(count, size - 1),
        np.full(count, -1),
        np.minimum(rng.geometric(0.4, count) - 1, size - 1),
        np.arange(count) * size // count,
        np.sort(rng.integers(0, size, count))[::-1].copy(),
    ]


def scattered(x: Any, indices: Any, axis: int, size: int) -> Any:
    """The exact sums, of numbers with few digits."""
    result = np.zeros((size, *np.delete(x.shape, axis)))
    inside = (indices >= 0) & (indices < size)
    np.add.at(result, indices[inside], np.moveaxis(x, axis, 0)[inside].astype(np.float64))
    return np.moveaxis(result, 0, axis)


@each_of(
    ("dtype", "shape", "axis", "size", "index_dtype"),
    [
        ("float32", (1000, 3), 0, 37, "int32"),
        ("float16", (2, 30, 3), 1, 256, "int32"),
        ("int32", (3, 700), 1, 1, "int32"),
        ("float64", (90,), 0, 5, "int64"),
    ],
)
def test_sums_are_those_of_numpy(
    dtype: str, shape: tuple[int, ...], axis: int, size: int, index_dtype: str, always: Any
) -> None:
    if not {dtype, index_dtype} <= {*always.capabilities.dtypes}:
        pytest.skip(f"the device has no {dtype} or no {index_dtype}")
    x = np.random.default_rng(1).integers(-30, 30, shape).astype(dtype)
    x.reshape(-1)[:2] = -0.0
    for indices in distributions(shape[axis], size):
        given = indices.astype(index_dtype)
        if index_dtype == "int64":
            given[::7] += 2**32  # out of range
        operands = [tk.tensor(a, backend=always) for a in (x, given)]
        found = np.asarray(operands[0].scatter_add(operands[1], axis, size))
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, scattered(x, given, axis, size))
        assert not np.signbit(found[found == 0]).any()


def test_special_numbers_out_of_range_are_not_added(always: Any) -> None:
    x = np.ones((1000, 3), np.float32)
    x[::5] = np.nan
    x[1::5] = np.inf
    indices = np.where(np.arange(1000) % 5 < 2, 37, np.arange(1000) % 37).astype(np.int32)
    found = np.asarray(tk.tensor(x, backend=always).scatter_add(tk.tensor(indices, backend=always), 0, 37))
    np.testing.assert_array_equal(found, scattered(x, indices, 0, 37))


def test_sums_have_the_same_bits_each_time_and_small_errors(always: Any) -> None:
    x = (np.random.default_rng(2).normal(size=(1000, 3)) * 100).astype(np.float32)
    for indices in distributions(1000, 37):
        given = indices.astype(np.int32)
        found = [
            np.asarray(tk.tensor(x, backend=always).scatter_add(tk.tensor(given, backend=always), 0, 37))
            for _ in range(2)
        ]
        assert found[0].tobytes() == found[1].tobytes()
        bound = 12 * np.finfo(np.float32).eps * scattered(np.abs(x), given, 0, 37)
        assert (np.abs(found[0] - scattered(x, given, 0, 37)) <= bound).all()


def test_slices_and_indices_are_computed_by_the_kernels(always: Any) -> None:
    x = np.arange(400, dtype=np.float32).reshape(2, 200)
    indices = np.arange(200, dtype=np.int32) % 11

    def f(x: Any, i: Any) -> Any:
        return (x.T * 2.0 + 1.0).scatter_add((i + 3) % 9, 0, 9) * 0.5

    found = tk.jit(f)(*[tk.tensor(a, backend=always) for a in (x, indices)])
    np.testing.assert_array_equal(np.asarray(found), scattered(x.T * 2 + 1, (indices + 3) % 9, 0, 9) * 0.5)


@each_of(
    ("shape", "size", "kernels", "reads", "writes"),
    [
        ((2**16, 64), 50_000, 8, 2.3, 0.9),  # the gradient of an embedding
        ((2**20,), 256, 8, 10.4, 2.3),  # a histogram
        ((2**20,), 2**20, 14, 18.0, 8.9),
    ],
)
def test_kernels_and_accesses(
    shape: tuple[int, ...], size: int, kernels: int, reads: float, writes: float
) -> None:
    """For each element of the slices; a slice is read by one of two kernels.  No kernel needs the driver's checks."""
    program: Any = single(SCATTER, [Value(shape, tk.float32), Value(shape[:1], tk.int32)], (0, size))
    steps = [step.kernel for step in plan(program, GPU).steps]
    assert len(steps) == kernels
    assert sum([prod(v.shape) for kernel in steps for v in kernel.reads]) <= reads * prod(shape)
    assert sum([prod(v.shape) for kernel in steps for v in kernel.writes]) <= writes * prod(shape)
    assert sum([program.inputs[0] in kernel.reads for kernel in steps]) == 2
    assert all([kernel.is_proved for kernel in steps])


def test_kernels_that_cannot_be_bound_are_not_used() -> None:
    for bindings, shape, count in ((6, (2**16, 64), 8), (5, (2**16, 64), 3), (5, (2**20,), 1)):
        values = [Value(shape, tk.float32), Value(shape[:1], tk.int32)]
        program: Any = single(SCATTER, values, (0, 50_000 if count > 1 else 256))
        steps = plan(program, replace(GPU, bindings=bindings)).steps
        assert len(steps) == count
        assert max([len(step.kernel.reads) + len(step.kernel.writes) for step in steps]) <= bindings


@each_of(
    ("target", "shape", "size"),
    [
        (replace(GPU, is_software=True), (2**16, 64), 50_000),
        (GPU, (2**9, 64), 50_000),  # few indices
        (GPU, (2**16, 1024), 10),  # fewer comparisons than elements would be moved
        (GPU, (2**16, 64), 0),
    ],
)
def test_other_scatters_compare_indices(target: Target, shape: tuple[int, ...], size: int) -> None:
    program: Any = single(SCATTER, [Value(shape, tk.float32), Value(shape[:1], tk.int32)], (0, size))
    (equation,) = program.equations
    assert has_scatter_kernels(equation, target) == (size > 100)
    assert len(plan(program, target).steps) <= 1 + (size > 100) * (1 + 2**16 // 2**15)


def test_the_gradient_of_an_embedding_is_added_by_segments(raw: Any) -> None:
    backend = Wgpu(raw.device)
    backend.target = replace(raw.target, is_software=False)
    lazy = tk.Lazy(backend)
    table, tokens = tk.ones((50_000, 8), backend=lazy), tk.zeros(2**14, dtype=tk.int32, backend=lazy)

    def loss(table: Any, tokens: Any) -> Any:
        return (table[tokens] ** 2).sum()

    program = optimised(tk.trace(tk.grad(loss))(table, tokens), backend)
    names = [[e.op.name for e in step.kernel.equations] for step in plan(program, backend.target).steps]
    assert names.count(["scatter_add"]) == 8
