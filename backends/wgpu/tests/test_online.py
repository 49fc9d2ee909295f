"""Online sums: a softmax reads long rows twice, the logarithm of its sum once, with the numbers of IEEE 754."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.programs.passes.pipeline import optimised
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.planning import plan


def softmax(x: Any) -> Any:
    exponentials = tk.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def log_sum(x: Any) -> Any:
    maximum = x.max(-1, keepdims=True)
    return tk.log(tk.exp(x - maximum).sum(-1)) + maximum[..., 0]


@pytest.fixture(scope="module")
def as_gpu(raw: Any) -> Any:
    """A backend that takes the device for a GPU."""
    backend = Wgpu(raw.device)
    backend.target = replace(raw.target, is_software=False)
    return backend


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_all_kinds(dtype: str, as_gpu: Any) -> None:
    """Infinities, NaN, rising and falling rows; the sums differ from those of two loops in their last digits only."""
    if dtype not in as_gpu.capabilities.dtypes:
        pytest.skip(f"the device has no {dtype}")
    x = np.random.default_rng(0).normal(size=(10, 4096)) * 8
    x[1] = -np.inf
    x[2, 5] = np.inf
    x[3, 7] = np.nan
    x[4] -= 600.0
    x[5].sort()
    x[6] = np.sort(x[6])[::-1]
    x[7, :-1] = -np.inf
    x[8, ::2] = -np.inf
    x[9] = np.linspace(-90.0, 90.0, 4096)
    x = x.astype(dtype)
    given = tk.tensor(x, backend=tk.Lazy(as_gpu))
    exact = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        differences = exact - exact.max(-1, keepdims=True)
    exponentials = np.exp(differences)
    sums = exponentials.sum(-1, keepdims=True)
    rounding = np.finfo(x.dtype).eps
    bound = rounding * (
        20 + np.abs(np.where(np.isfinite(differences), differences, 0.0))
    )  # they are rounded too
    found, expected = np.asarray(tk.jit(softmax)(given)), exponentials / sums
    assert (np.isnan(found) == np.isnan(expected)).all()
    least = np.finfo(x.dtype).tiny
    assert np.nanmax(np.abs(found - expected) - bound * expected - least) <= 0
    logs = np.asarray(tk.jit(log_sum)(given))
    np.testing.assert_allclose(logs, np.log(sums[:, 0]) + exact.max(-1), rtol=20 * rounding)


def test_rows_are_read_twice_or_once(as_gpu: Any) -> None:
    """Short rows, and rows of a software device, are read once more."""
    for f, shape, is_software, reads in (
        (softmax, (512, 4096), False, 2),
        (log_sum, (512, 4096), False, 1),
        (softmax, (512, 256), False, 3),
        (softmax, (128, 4096), True, 3),
    ):
        program = optimised(tk.trace(f)(tk.ones(shape, backend=tk.Lazy(as_gpu))), as_gpu)
        steps = plan(program, replace(as_gpu.target, is_software=is_software)).steps
        texts = [step.kernel.template for step in steps if program.inputs[0] in step.kernel.reads]
        assert sum([text.count("x0[") for text in texts]) == reads
