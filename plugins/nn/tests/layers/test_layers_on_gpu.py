"""Layers on a GPU agree with numpy; without an adapter the tests are skipped with a message."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import BackendError


@pytest.fixture(scope="module")
def gpu() -> Any:
    try:
        with tk.use_backend("wgpu"):
            tk.ones(()).realize()
    except BackendError as error:
        if os.environ.get("REQUIRE_WGPU"):
            raise
        pytest.skip(str(error))


def convolutional() -> tuple[Any, Callable[[Any], Tensor]]:
    """Convolution, pooling and normalisation."""
    keys = tk.random.split(tk.random.key(0))
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, stride=2, padding=1, key=keys[0]),
        nn.BatchNorm(2, key=keys[0]),
        nn.gelu,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 2, key=keys[1]),
    )
    x = tk.random.normal(tk.random.key(1), (2, 1, 8, 8))
    return model, lambda model: (model.train(x, model.initial_state())[0] ** 2).sum()


def resizing() -> tuple[Any, Callable[[Any], Tensor]]:
    """Transposed convolution, interpolation, adaptive pooling, normalisation of groups and a loss."""
    keys = tk.random.split(tk.random.key(0))
    model = nn.Sequential(
        nn.ConvTranspose1d(2, 4, 3, 2, ((1, 0),), key=keys[0]),
        nn.GroupNorm(2, 4, key=keys[0]),
        nn.Upsample(size=7, mode="linear"),
        nn.AdaptiveAvgPool1d(3),
        nn.Flatten(),
        nn.Linear(12, 3, key=keys[1]),
    )
    x = tk.random.normal(tk.random.key(1), (2, 2, 4))
    weight = tk.tensor([0.5, 1.0, 2.0])
    return model, lambda model: nn.cross_entropy(model(x), tk.tensor([2, 0]), weight=weight)


def recurrent() -> tuple[Any, Callable[[Any], Tensor]]:
    """An embedding and a recurrent layer."""
    keys = tk.random.split(tk.random.key(0))
    model = {"table": nn.Embedding(5, 3, key=keys[0]), "layer": nn.GRU(3, 4, bidirectional=True, key=keys[1])}
    labels = tk.tensor([[0, 4, 2], [3, 3, 1]])
    return model, lambda model: (model["layer"](model["table"](labels))[0] ** 2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("case", [convolutional, resizing, recurrent])
def test_values_and_gradients_are_those_of_numpy(gpu: Any, case: Callable[[], Any]) -> None:
    results = []
    for name in ("numpy", "wgpu"):
        with tk.use_backend(name):
            model, loss = case()
            value, gradient = tk.jit(tk.value_and_grad(loss))(model)
            assert value.backend == name
            results.append(
                [value.item(), *[x for leaf in tree.leaves(gradient) for x in leaf.ravel().tolist()]]
            )
    assert results[1] == pytest.approx(results[0], rel=1e-3, abs=1e-4)
