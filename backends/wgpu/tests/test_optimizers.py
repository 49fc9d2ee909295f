"""Optimizers on the device: counting steps and decaying the rate cost one kernel per step, and no new program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core import tree

FALLING = nn.warmup(nn.cosine(0.1, 0.01, 6), 2)
OPTIMIZERS: dict[str, Callable[[Any], nn.Optimizer]] = {
    "SGD": nn.SGD,
    "MomentumSGD": lambda rate: nn.MomentumSGD(rate, nesterov=True),
    "Adam": nn.Adam,
    "AdamW": lambda rate: nn.AdamW(rate, weight_decay=0.3, mask=nn.only_matrices),
    "RMSProp": lambda rate: nn.RMSProp(rate, momentum=0.5, centered=True),
    "Adagrad": nn.Adagrad,
    "Lion": nn.Lion,
}


def slopes(model: Any) -> Any:
    """Gradients that need no kernels: each parameter's gradient is its own values, moved."""
    return tree.map(lambda x: x * 0.5 - 0.25, model)


def trained(optimizer: nn.Optimizer, where: Any, steps: int = 10) -> Any:
    """The model after each compiled step, and how many programs were traced."""
    traced = 0

    def step(model: Any, state: Any) -> Any:
        nonlocal traced
        traced += 1
        return optimizer.update(model, slopes(model), state)

    compiled = tk.jit(step)
    model = nn.mlp((3, 4, 2), key=tk.random.key(0, backend="numpy"))
    model = tree.map(lambda x: x.to(where), model)
    state = optimizer.init(model)
    for _ in range(steps):
        model, state = compiled(model, state)
        yield model, traced


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_equal_numpys(lazy: Any, name: str) -> None:
    optimizer = OPTIMIZERS[name](FALLING)
    *_, (found, traced) = trained(optimizer, lazy)
    *_, (expected, _) = trained(optimizer, "numpy")
    assert traced == 1
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert a.ravel().tolist() == pytest.approx(b.ravel().tolist(), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_kernel_per_parameter_and_one_for_all_scalars(lazy: Any, device: Any, name: str) -> None:
    seen = []
    before = device.statistics["kernels"]
    for model, _ in trained(OPTIMIZERS[name](FALLING), lazy):
        tree.leaves(model)[0].tolist()
        seen.append(device.statistics["kernels"] - before)
        before = device.statistics["kernels"]
    assert set(seen[3:]) == {seen[-1]}
    assert seen[-1] <= 4 + 1
