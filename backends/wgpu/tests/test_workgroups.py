"""Reductions and scans over a workgroup: the same bits in workgroup memory, and by subgroups of every size."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from tensorken.programs.passes.pipeline import optimised
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.backend import Wgpu
from tensorken_wgpu.declarations import declare
from tensorken_wgpu.device.limits import SUBGROUPS
from tensorken_wgpu.device.measurements import Measurements
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import subgroups
from tensorken_wgpu.wgsl.templates import specialised_text
from tools.wgsl_counts import counts_of

EMULATED = """
var<private> own: u32;
var<workgroup> exchanged: array<f32, SIZE>;
fn from_lane(x: f32, lane: u32) -> f32 {
  exchanged[own] = x;
  workgroupBarrier();
  let y = exchanged[own / SUBGROUPu * SUBGROUPu + lane % SUBGROUPu];
  workgroupBarrier();
  return y;
}
"""
"""Subgroups of a fixed size, in workgroup memory."""

HEAD = "let subgroup_size = {0}u; let subgroup = l / {0}u; let lane = l % {0}u; own = l;"


def emulated(text: str, size: int, subgroup: int) -> str:
    """A kernel whose subgroups have this size, whatever the device has."""
    text = re.sub(r", @builtin\(subgroup\w*\) \w+: u32", "", text)
    text = re.sub(r"(fn main\(.*\) \{)", rf"\1\n{HEAD.format(subgroup)}", text)
    text = re.sub(r"subgroupShuffleXor\((\w+), (\w+)\)", r"from_lane(\1, lane ^ \2)", text)
    functions = EMULATED.replace("SIZE", str(size)).replace("SUBGROUP", str(subgroup))
    return functions + text.replace("subgroupShuffle(", "from_lane(")


def results(raw: Any, text: str, uniform: bytes, size: int) -> Any:
    device = raw.device
    x = device.upload(np.asarray(subgroups._numbers(size), np.float32))
    y = device.allocate(16 * size)
    device.run(device.pipeline(text, 1, 1), device.uniform(uniform), [x, y], (1, 1, 1))
    return np.frombuffer(device.read(y, 16 * size), np.float32).reshape(4, size)


def combined(x: Any, sharing: int) -> Any:
    """For each part of the numbers first / 2 + second, as a tree."""
    parts = x.astype(np.float64).reshape(-1, sharing)
    while parts.shape[1] > 1:
        parts = parts[:, ::2] / 2 + parts[:, 1::2]
    return np.repeat(parts[:, 0], sharing)


@each_of("size", subgroups.SIZES)
def test_the_bits_are_the_same_for_subgroups_of_every_size(size: int, raw: Any) -> None:
    target = replace(raw.target, has_subgroups=False)
    in_memory = specialised_text(subgroups.check_template(target, size))
    expected = results(raw, in_memory.code, in_memory.uniform, size)
    x = np.asarray(subgroups._numbers(size), np.float32)
    np.testing.assert_allclose(expected[0], size * x.astype(np.float64).sum(), rtol=1e-5)
    assert (expected[1] == x.max()).all()
    np.testing.assert_allclose(expected[2], combined(x, subgroups.SHARING), rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(expected[3], np.cumsum(x, dtype=np.float64) - x, rtol=1e-5, atol=1e-3)
    by_subgroups = specialised_text(subgroups.check_template(replace(target, has_subgroups=True), size))
    for subgroup in {64: (4, 128), 256: (4, 16, 128)}[size]:
        text = emulated(by_subgroups.code, size, subgroup)
        assert "subgroupS" not in text
        found = results(raw, text, by_subgroups.uniform, size)
        assert found.tobytes() == expected.tobytes(), subgroup


def test_devices_use_subgroups_that_are_right(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    has_feature = SUBGROUPS in raw.device.features
    assert raw.target.has_subgroups <= has_feature
    found: Any = Wgpu(raw.device)
    for value, expected in (("off", False), ("", raw.target.has_subgroups)):
        monkeypatch.setenv(subgroups.VARIABLE, value)
        declare(found, Measurements(None))
        assert found.target.has_subgroups == expected
    broken = subgroups._results
    monkeypatch.setattr(subgroups, "_results", lambda *given: broken(*given) + bytes([given[-1]]))
    assert not subgroups.are_right(raw.device, raw.target)


def _softmax(x: Any) -> Any:
    exponentials = tk.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


FUNCTIONS = {
    "sum and maximum": lambda x: x.sum(-1) + x.max(-1),
    "any": lambda x: (x > 3.0).max(-1),
    "softmax": _softmax,
    "sum of int32": lambda x: (x * 100).astype("int32").sum(-1),
    "sum of float64": lambda x: x.astype("float64").sum(-1),
    "largest of int64": lambda x: (x * 1e6).astype("int32").astype("int64").max(-1) * 3,
    "cumulative sum": lambda x: tk.cumsum(x, -1),
}
LENGTHS = {"softmax": 4096, "cumulative sum": 4096}
"""Of rows, where it is not 320."""


@each_of("name", FUNCTIONS)
def test_rows_are_right_with_and_without_subgroups(name: str, raw: Any) -> None:
    """With infinities and NaN; in kernels for a GPU."""
    dtype = name.split()[-1]
    if dtype in DTYPES and dtype not in raw.capabilities.dtypes:
        pytest.skip(f"the device has no {dtype}")
    f = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    length = LENGTHS.get(name, 320)
    x = rng.normal(size=(5, length)).astype(np.float32)
    if "int" not in name:
        x[3, 7], x[4, 9] = np.inf, np.nan
    with np.errstate(all="ignore"):
        expected = np.asarray(f(tk.tensor(x, backend="numpy")))
    for has_subgroups in {False, raw.target.has_subgroups}:
        backend = Wgpu(raw.device)
        backend.target = replace(raw.target, is_software=False, has_subgroups=has_subgroups)
        found = np.asarray(tk.jit(f)(tk.tensor(x, backend=tk.Lazy(backend))))
        assert found.dtype == expected.dtype
        if found.dtype.kind == "f":
            rounding = np.finfo(found.dtype).eps
            np.testing.assert_allclose(found, expected, rtol=100 * rounding, atol=length * rounding)
        else:
            np.testing.assert_array_equal(found, expected)


@each_of(
    ("name", "most"),
    [("sum and maximum", 1), ("softmax", 2), ("sum of float64", 1), ("cumulative sum", 4)],
)
def test_subgroups_need_fewer_barriers(name: str, most: int, raw: Any) -> None:
    """As many as stages, or for a scan as levels of a tree over the subgroups; without subgroups there are more."""
    found = []
    for has_subgroups in (True, False):
        target = replace(raw.target, is_software=False, has_subgroups=has_subgroups)
        program = optimised(tk.trace(FUNCTIONS[name])(tk.ones((512, 4096), backend=tk.Lazy(raw))), raw)
        (step,) = plan(program, target).steps
        text = specialised_text(step.kernel.template).code
        found.append(counts_of(text, step.kernel.workgroups, 32))
    by_subgroups, in_memory = found
    assert by_subgroups.barriers <= most < in_memory.barriers
    assert by_subgroups.exchanges > 0 == in_memory.exchanges
