"""Copies: crops, concatenations and reshapes are not computed, so loops that use them are cheap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_wgpu import backend as backend_module

DTYPES = ("bool", "int32", "float16", "float32", "int64", "float64")


def drawn(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def counters(device: Any, work: Callable[[], Any]) -> dict[str, int]:
    """The change of the device's counters."""
    before = device.statistics
    work()
    return {name: count - before[name] for name, count in device.statistics.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "limits"),
    [
        ((5, 3), ((2, 3), (0, 3))),
        ((5, 3), ((1, 4), (0, 3))),
        ((5, 3), ((1, 4), (1, 2))),
        ((4, 5, 3), ((3, 4), (1, 4), (0, 3))),
        ((4, 5, 3), ((3, 4), (2, 3), (1, 2))),
        ((4, 5, 3), ((0, 4), (2, 3), (0, 3))),
        ((1, 7), ((0, 1), (3, 6))),
        ((4, 3), ((2, 2), (0, 3))),
        ((4, 3), ((0, 4), (0, 3))),
    ],
)
def test_crops_equal_numpys(raw: Any, dtype: str, shape: Any, limits: Any) -> None:
    if dtype not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no {dtype}")
    x = drawn(dtype, *shape)
    found = apply(OPS["crop"], [tk.tensor(x, backend=raw)], (limits,))
    assert np.asarray(found).tolist() == x[tuple([slice(*each) for each in limits])].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 3, 1), (4, 0, 2), (0, 0), (2,)])
def test_concatenations_equal_numpys(raw: Any, dtype: str, axis: int, sizes: Any) -> None:
    if dtype not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no {dtype}")
    for others in (1, 3):
        pieces = [drawn(dtype, *((n, others) if axis == 0 else (others, n))) for n in sizes]
        found = apply(OPS["concatenate"], [tk.tensor(x, backend=raw) for x in pieces], (axis,))
        assert np.asarray(found).tolist() == np.concatenate(pieces, axis).tolist()


def test_contiguous_results_need_no_kernel(raw: Any) -> None:
    x = tk.tensor(drawn("float32", 6, 4), backend=raw)

    def work() -> None:
        parts = [apply(OPS["crop"], [x], (((k, k + 2), (0, 4)),)).reshape((2, 2, 2)) for k in range(5)]
        apply(OPS["concatenate"], parts, (0,)).tolist()

    count = counters(raw.device, work)
    assert (count["kernels"], count["copies"], count["pipelines"]) == (0, 10, 0)


def test_crops_of_float16_at_odd_offsets_share_one_kernel(raw: Any) -> None:
    if "float16" not in raw.capabilities.dtypes:
        pytest.skip(f"{raw.device.name} has no float16")
    x = drawn("float16", 40, 3)
    given = tk.tensor(x, backend=raw)
    parts: list[Any] = []

    def work() -> None:
        parts.extend([apply(OPS["crop"], [given], (((k, k + 1), (0, 3)),)) for k in range(40)])
        assert [np.asarray(part)[0].tolist() for part in parts] == x.tolist()

    count = counters(raw.device, work)
    assert (count["kernels"], count["copies"]) == (20, 40)
    assert count["pipelines"] <= 2


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_step_of_a_scan_is_planned_once(
    lazy: Any, raw: Any, monkeypatch: pytest.MonkeyPatch, axis: int, reverse: bool
) -> None:
    """As many plans, pipelines, uniforms and writes for two hundred steps as for seventy."""
    planned: list[Any] = []
    plan = backend_module.plan
    monkeypatch.setattr(backend_module, "plan", lambda *given: planned.append(1) or plan(*given))

    def scanned(xs: Any) -> Any:
        return tk.scan(lambda c, x: (c * 0.5 + x, c * x), xs.sum() * 0, xs, reverse=reverse)[1]

    costs = []
    for length in (70, 200):
        x = np.random.default_rng(0).normal(size=(2, length) if axis else length).astype(np.float32)
        f = tk.jit(tk.vmap(scanned) if axis else scanned)
        expected = np.asarray(f(tk.tensor(x, backend="numpy")))
        given = tk.tensor(x, backend=lazy)
        planned.clear()
        uniforms = len(raw.device._uniforms)
        found: list[Any] = []
        count = counters(raw.device, lambda: found.append(np.asarray(f(given))))  # noqa: B023
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
        costs.append((len(planned), len(raw.device._uniforms) - uniforms, count["writes"]))
        assert count["copies"] == 0
    assert costs[1][0] <= costs[0][0] < 20
    assert costs[1][1:] <= costs[0][1:]
