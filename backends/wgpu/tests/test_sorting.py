"""Sorts: stable, with the order of numpy for all numbers, by few kernels that read and write each element few times."""

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
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import radix
from tensorken_wgpu.wgsl.single_op import Value, single
from tensorken_wgpu.wgsl.target import Target

GPU = Target(8, 2**28, is_software=False)


def elements(dtype: str, shape: tuple[int, ...]) -> Any:
    """Elements among which many are equal, the extreme ones and for floats special ones included."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        info = np.iinfo(dtype)
        all_of_them = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        chosen = np.array([info.min, info.max, 0, 1, 255, 256], dtype)
    else:
        all_of_them = (rng.normal(size=shape) * 10).astype(dtype)
        nan = np.array(np.nan, dtype)
        tiny = np.finfo(dtype).tiny
        chosen = np.array([nan, -nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.0], dtype)
    return np.where(rng.random(shape) < 0.4, rng.choice(chosen, shape), all_of_them)


def check(lazy: Any, dtype: str, shape: tuple[int, ...], axis: int, ops: str = "sort argsort") -> None:
    """Compare sorts with numpy's stable ones, the signs of zeros and of most NaNs included."""
    if dtype not in lazy.capabilities.dtypes:
        pytest.skip(f"the device has no {dtype}")
    x = elements(dtype, shape)
    order = np.argsort(x, axis, kind="stable")
    given = tk.tensor(x, backend=lazy)
    if "argsort" in ops:
        found = np.asarray(tk.argsort(given, axis))
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, order)
    if ops.startswith("sort"):
        found, expected = np.asarray(tk.sort(given, axis)), np.take_along_axis(x, order, axis)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected)
        if "float" in dtype:
            signs = [np.signbit(v) for v in (found, expected)]
            if dtype == "float16":  # a driver may drop the sign of a NaN in a conversion to float32
                signs = [np.where(np.isnan(expected), False, s) for s in signs]
            np.testing.assert_array_equal(*signs)


@each_of("dtype", ["bool", "int32", "uint32", "float16", "float32", "float64", "int64"])
def test_short_rows(dtype: str, lazy: Any) -> None:
    check(lazy, dtype, (5, 33, 11), 1)
    for shape in ((50, 33), (1,), (64,)) if dtype == "float32" else ():
        check(lazy, dtype, shape, len(shape) - 1)


@each_of(
    ("dtype", "shape", "axis", "ops"),
    [
        ("float32", (2048,), 0, "sort"),
        ("float32", (301,), 0, "argsort"),
        ("float32", (300, 23), 0, "argsort"),
        ("int64", (4, 700), 1, "argsort"),
        ("float16", (31, 65), 1, "sort"),
    ],
)
def test_rows_within_a_workgroup(dtype: str, shape: tuple[int, ...], axis: int, ops: str, lazy: Any) -> None:
    check(lazy, dtype, shape, axis, ops)


@each_of(
    ("dtype", "shape", "axis", "ops", "added"),
    [
        ("int32", (10_000,), 0, "sort", 32),
        ("float16", (2, 5000, 2), 1, "argsort", 0),
    ],
)
def test_long_rows(dtype: str, shape: tuple[int, ...], axis: int, ops: str, added: int, lazy: Any) -> None:
    """Blocks of several tiles, which a kernel of its own adds, or each block itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(radix, "MAX_BLOCKS", 8)
        patch.setattr(radix, "MAX_ADDED", added)
        check(lazy, dtype, shape, axis, ops)


def test_one_digit_of_all_elements(raw: Any) -> None:
    """Sorted, falling and equal elements, in blocks of several tiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(radix, "MAX_BLOCKS", 2)
        patch.setattr(radix, "MAX_ADDED", 1)
        lazy = tk.Lazy(raw)
        for x in (np.zeros(9000, bool), np.ones(9000, bool), np.arange(9000) < 4000, np.arange(9000) > 4000):
            found = np.asarray(tk.argsort(tk.tensor(x, backend=lazy)))
            np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))


@each_of(
    ("op", "shape", "kernels", "reads", "writes"),
    [
        ("sort", (1000,), 1, 1.0, 1.0),
        ("sort", (1000, 64), 1, 1.0, 1.0),
        ("sort", (2**16,), 8, 8.5, 4.5),
        ("sort", (2**20,), 12, 9.1, 5.1),
        ("argsort", (1000,), 1, 1.0, 1.0),
        ("argsort", (2**20,), 12, 12.1, 8.1),
        ("argsort", (2**25,), 12, 11.1, 7.1),
    ],
)
def test_kernels_and_accesses(
    op: str, shape: tuple[int, ...], kernels: int, reads: float, writes: float
) -> None:
    """Of float32, for each element; no kernel needs the driver's checks."""
    program: Any = single(OPS[op], [Value(shape, tk.float32)], (len(shape) - 1,))
    steps = [step.kernel for step in plan(program, GPU).steps]
    assert len(steps) == kernels
    assert sum([prod(v.shape) for kernel in steps for v in kernel.reads]) <= reads * prod(shape)
    assert sum([prod(v.shape) for kernel in steps for v in kernel.writes]) <= writes * prod(shape)
    assert all([kernel.is_proved for kernel in steps])


def test_elements_and_their_order_come_from_one_sort(raw: Any, lazy: Any) -> None:
    """Whether rows are short, fit in a workgroup or are longer."""

    def f(x: Any) -> Any:
        return tk.sort(x), tk.argsort(x)

    for dtype, shape, kernels in (("float32", (5, 40), 1), ("float32", (3, 300), 1), ("bool", (2100,), 2)):
        x = elements(dtype, shape)
        given = tk.tensor(x, backend=lazy)
        found, order = [np.asarray(y) for y in tk.jit(f)(given)]
        expected = np.argsort(x, -1, kind="stable")
        np.testing.assert_array_equal(order, expected)
        np.testing.assert_array_equal(found, np.take_along_axis(x, expected, -1))
        assert len(plan(optimised(tk.trace(f)(given), raw), raw.target).steps) == kernels


def test_the_values_from_which_elements_are_computed_can_be_bound(raw: Any, lazy: Any) -> None:
    def f(*xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return tk.argsort(total)

    for n, kernels in ((4, 12), (6, 13)):
        xs = [tk.ones(2**17, backend=lazy) for _ in range(n)]
        program = optimised(tk.trace(f)(*xs), raw)
        steps = [step.kernel for step in plan(program, GPU).steps]
        bound = [len(kernel.reads) + len(kernel.writes) for kernel in steps]
        assert max(bound) <= GPU.bindings
        assert len(steps) == kernels


@each_of(
    ("f", "size", "kernels"),
    [
        (lambda x: tk.sort(x * 2.0 + 1.0), 1000, 2),  # small sorts share kernels
        (lambda x: tk.sort(x.reshape(16, -1) * 2.0 + 1.0), 2**14, 1),
        (lambda x: tk.sort(tk.flip(x * 2.0 + 1.0, 0)), 2**14, 8),
        (lambda x: tk.sort(tk.flip(x.reshape(50, 20).T * 2.0, 1), 1), 1000, 1),
        (lambda x: tk.sort(x) + tk.argsort(-x), 1000, 4),
        (tk.median, 1000, 2),
        (lambda x: tk.quantile(x, 0.3), 1000, 2),
        (lambda x: tk.topk(x, 5), 1000, 3),
        (lambda x: tk.sort(x, descending=True), 1000, 3),
        (lambda x: tk.jvp(tk.sort, (x,), (x * 2.0,)), 1000, 2),
        (tk.grad(lambda x: (tk.sort(x) * x).sum()), 1000, 2),
        (lambda x: tk.vmap(tk.sort)(x.reshape(10, 100)), 1000, 1),
    ],
)
def test_functions_of_sorted_elements_take_few_kernels(f: Any, size: int, kernels: int, raw: Any) -> None:
    program = optimised(tk.trace(f)(tk.ones(size, backend=tk.Lazy(raw))), raw)
    assert len(plan(program, replace(raw.target, is_software=False)).steps) == kernels
