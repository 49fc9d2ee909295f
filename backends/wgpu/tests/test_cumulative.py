"""Cumulative sums: as many kernels as levels of blocks, each element read twice, and errors no larger than numpy's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import tensorken as tk
from core.tests.each import each_of
from tensorken_core.language.op import OPS
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.wgsl.single_op import Value, single

SHAPES = [
    ((9,), 0),
    ((100,), 0),
    ((4097,), 0),
    ((3, 1000), 1),
    ((5, 300, 7), 1),
    ((2, 20000), 1),
    ((300000,), 0),
    ((70000, 2), 0),
]
OF_ALL_DTYPES = ((100,), (5, 300, 7))
DTYPES = ("float32", "int32", "float16", "float64", "int64")


def backends(raw: Any) -> list[Any]:
    """The backend, and one that takes the device for a GPU."""
    as_gpu = Wgpu(raw.device)
    as_gpu.target = replace(raw.target, is_software=False)
    return [tk.Lazy(raw), tk.Lazy(as_gpu)]


@each_of(("shape", "axis"), SHAPES)
def test_sums_are_those_of_numpy(shape: tuple[int, ...], axis: int, raw: Any) -> None:
    """Integers wrap; the error of floats is that of few roundings, and the bits are the same each time."""
    rng = np.random.default_rng(0)
    for lazy in backends(raw):
        for name in [n for n in DTYPES if n in lazy.capabilities.dtypes]:
            if name != "float32" and shape not in OF_ALL_DTYPES:
                continue
            x = rng.normal(size=shape) if "float" in name else rng.integers(-(2**30), 2**30, shape)
            x = x.astype(name)
            given = tk.tensor(x, backend=lazy)
            found = np.asarray(tk.cumsum(given, axis))
            assert found.dtype == x.dtype
            assert found.tobytes() == np.asarray(tk.cumsum(given + 0, axis)).tobytes()
            if "int" in name:
                np.testing.assert_array_equal(found, np.cumsum(x, axis, dtype=x.dtype))
                continue
            exact = np.cumsum(x.astype(np.float64), axis)
            most = np.cumsum(np.abs(x).astype(np.float64), axis)
            digits = np.finfo(np.float32 if name == "float16" else x.dtype).eps
            bound = 20 * digits * most + np.finfo(x.dtype).eps * np.abs(exact)
            assert (np.abs(found - exact) <= bound).all()


def test_sums_of_computed_elements(raw: Any) -> None:
    """Elementwise and movement ops before a sum are part of its kernels."""
    x = np.random.default_rng(1).normal(size=(70, 40)).astype(np.float32)

    def f(x: Any) -> Any:
        return tk.cumsum(tk.exp(tk.flip(x.T, 1)[:, 3:]) * 0.5, 1)

    for lazy in backends(raw):
        expected = np.cumsum(np.exp(x.T[:, ::-1][:, 3:]) * 0.5, 1)
        given = tk.tensor(x, backend=lazy)
        run = tk.jit(f)
        np.testing.assert_allclose(np.asarray(run(given)), expected, rtol=1e-5)
        before = raw.device.statistics["kernels"]
        np.asarray(run(given))
        assert raw.device.statistics["kernels"] - before <= 3


@each_of(
    ("shape", "axis", "software", "gpu"),
    [((100,), 0, 1, 1), ((2**14,), 0, 1, 1), ((64, 4096), 1, 3, 1), ((2**20,), 0, 3, 3), ((2**25,), 0, 3, 5)],
)
def test_each_element_is_read_twice(
    shape: tuple[int, ...], axis: int, software: int, gpu: int, raw: Any
) -> None:
    """By one kernel, or by the first and the last one; the kernels between them read a sum for each block."""
    program: Any = single(OPS["cumsum"], [Value(shape, tk.float32)], (axis,))
    for is_software, count in ((True, software), (False, gpu)):
        steps = plan(program, replace(raw.target, is_software=is_software)).steps
        assert len(steps) == count
        texts = [step.kernel.template for step in steps if program.inputs[0] in step.kernel.reads]
        assert sum([text.count("x0[") for text in texts]) == 2
