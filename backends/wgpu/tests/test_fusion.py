"""Fusion: random programs compute what numpy computes, for any division into kernels."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken.kernels.rows import Rows
from tensorken.programs.passes.pipeline import optimised
from tensorken_wgpu.execution import planning
from tensorken_wgpu.execution.planning import plan
from tensorken_wgpu.kernels import kernel
from tensorken_wgpu.kernels.kernel import Division

SHAPE = (4, 6, 5)


def drawn_program(seed: int) -> Any:
    """A function of two arrays of shape (4, 6, 5) with some results; all numbers stay near 1."""
    rng = random.Random(seed)
    steps = [(rng.choice(STEPS), rng.random(), rng.random(), rng.random()) for _ in range(rng.randint(4, 16))]
    results = [rng.random() for _ in range(rng.randint(1, 4))]

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for step, *choices in steps:
            a, b = [values[int(c * len(values))] for c in choices[:2]]
            values.append(step(a, b, choices[2]))
        return [values[2 + int(r * (len(values) - 2))] for r in results]

    return function


def _squashed(a: Any, b: Any, choice: float) -> Any:
    return tk.tanh(a) + 0.1


def _added(a: Any, b: Any, choice: float) -> Any:
    return (a + b) * 0.5 if a.shape == b.shape else a * 0.5 + b.mean()


def _compared(a: Any, b: Any, choice: float) -> Any:
    return tk.where(a > 0.2, a, -a) if a.shape != b.shape else tk.where(a > b, b, a * choice)


def _reduced(a: Any, b: Any, choice: float) -> Any:
    axis = int(choice * a.ndim)
    reduce = (tk.max, tk.mean, tk.min)[int(choice * 17) % 3]
    return reduce(a, axis=axis, keepdims=True) + a * 0.1


def _normed(a: Any, b: Any, choice: float) -> Any:
    axis = int(choice * a.ndim)
    centred = a - a.mean(axis, keepdims=True)
    return centred / tk.sqrt((centred * centred).mean(axis, keepdims=True) + 0.1)


def _softened(a: Any, b: Any, choice: float) -> Any:
    return tk.softmax(a, int(choice * a.ndim)) * 2.0


def _moved(a: Any, b: Any, choice: float) -> Any:
    order = (tk.permute_dims(a, (2, 0, 1)), tk.flip(a, 1), a.reshape((a.shape[0], -1, 1)), a.mT)
    return order[int(choice * 4)]


def _padded(a: Any, b: Any, choice: float) -> Any:
    return tk.pad(a, ((1, 0), (0, 1), (0, 0)))[1:, :-1] + (choice if choice > 0.5 else 0.0)


def _multiplied(a: Any, b: Any, choice: float) -> Any:
    return tk.tanh(a @ a.mT * 0.2)


def _gathered(a: Any, b: Any, choice: float) -> Any:
    axis = int(choice * a.ndim)
    indices = a.constant([i % a.shape[axis] for i in (1, 0, 1, 2)], tk.int32, (4,))
    return a.gather(indices, axis)


STEPS = [
    *[_squashed, _added, _added, _compared, _reduced, _reduced, _normed, _softened],
    *[_moved, _moved, _padded, _multiplied, _gathered],
]


def check_against_numpy(function: Any, lazy: Any, shape: Any, seed: int, rtol: float, atol: float) -> None:
    """Compare the compiled function of two arrays with numpy."""
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=shape).astype(np.float32) for _ in range(2)]
    expected = function(*[tk.tensor(x, backend="numpy") for x in arrays])
    found = tk.jit(function)(*[tk.tensor(x, backend=lazy) for x in arrays])
    for ours, numpys in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(numpys), rtol=rtol, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_equal_numpys(lazy: Any, seed: int) -> None:
    check_against_numpy(drawn_program(seed), lazy, SHAPE, seed, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(80, 110))
def test_random_programs_with_random_divisions_of_rows(
    lazy: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors, workgroups that share rows, and parts are for large arrays; here small ones use them."""
    rng = random.Random(seed)
    shape = rng.choice([(4, 8, 8), (2, 4, 12), (8, 4, 16), (1, 8, 4), (4, 6, 5)])
    divisions: dict[Any, Division] = {}

    def divided(rows: Rows, target: Any) -> Division:
        if not rows.axes:
            return Division(1, 1)
        invocations = rng.choice([1, 64]) if rows.along_the_last else 1
        return divisions.setdefault(
            rows, Division(invocations, rng.choice([1, 2, 3]) if rows.length > 3 else 1)
        )

    monkeypatch.setattr(kernel, "MIN_VECTORISED", 1)
    monkeypatch.setattr(kernel, "MAX_VECTORISED_LINES", 10**6)
    monkeypatch.setattr(kernel, "divide_rows", divided)
    monkeypatch.setattr(planning, "divide_rows", divided)
    check_against_numpy(drawn_program(seed), lazy, shape, seed, rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 80))
def test_gradients_equal_numpys(lazy: Any, seed: int) -> None:
    function = drawn_program(seed)
    gradient = tk.grad(lambda x, y: sum([(v * v).mean() for v in function(x, y)]), argnums=(0, 1))
    check_against_numpy(gradient, lazy, SHAPE, seed, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("bindings", [4, 8])
def test_kernels_have_at_most_the_devices_bindings(lazy: Any, raw: Any, bindings: int) -> None:
    """No kernel has more bindings, and nothing is computed twice or before its operands."""
    program = tk.trace(drawn_program(7))(*[tk.zeros(SHAPE, backend=lazy)] * 2)
    narrow = plan(optimised(program, raw), replace(raw.target, bindings=bindings))
    computed = {*optimised(program, raw).inputs, *optimised(program, raw).constants}
    for step in narrow.steps:
        kernel = step.kernel
        assert len(kernel.reads) + len(kernel.writes) <= bindings
        assert computed.issuperset(kernel.reads)
        assert computed.isdisjoint(kernel.writes)
        computed.update(kernel.writes)


def test_a_softmax_and_a_layer_norm_are_one_kernel_each(lazy: Any, device: Any) -> None:
    x = tk.tensor(np.random.default_rng(0).normal(size=(50, 70)).astype(np.float32), backend=lazy)
    gain = tk.tensor(np.ones(70, np.float32), backend=lazy)

    def norm(x: Any, gain: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / tk.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gain

    for function, operands in ((lambda x: tk.softmax(x, -1), [x]), (norm, [x, gain])):
        jitted = tk.jit(function)
        jitted(*operands).tolist()
        before = dict(device.statistics)
        jitted(*operands).tolist()
        assert device.statistics["kernels"] - before["kernels"] == 1
