"""Gradient accumulation: parts of a batch give the gradient of the batch."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core import tree
from tensorken_core.errors import ArgumentError


def model_and_batch() -> tuple[Any, tk.Tensor, tk.Tensor]:
    """A model and a batch of 12 examples, in float64."""
    model = nn.mlp((3, 5, 4), tk.tanh, key=tk.random.key(0))
    rng = random.Random(0)
    labels = tk.tensor([rng.randrange(4) for _ in range(12)])
    return tree.map(lambda x: x.astype(tk.float64), model), tk.randn((12, 3), rng, tk.float64), labels


def loss(model: Any, x: tk.Tensor, y: tk.Tensor) -> tk.Tensor:
    return nn.cross_entropy(model(x), y)


@pytest.mark.parametrize("parts", [1, 2, 3, 12])
@pytest.mark.parametrize("compiled", [False, True])
def test_equal_parts_give_the_loss_and_gradient_of_the_large_batch(
    backend: str, parts: int, compiled: bool
) -> None:
    model, x, y = model_and_batch()
    value_and_gradient = tk.value_and_grad(loss)

    def accumulated(model: Any, x: tk.Tensor, y: tk.Tensor) -> Any:
        batches = zip(tk.split(x, parts), tk.split(y, parts), strict=True)
        return nn.accumulate(value_and_gradient, model, batches)

    value, gradient = (tk.jit(accumulated) if compiled else accumulated)(model, x, y)
    expected, expected_gradient = value_and_gradient(model, x, y)
    assert value.item() == pytest.approx(expected.item(), rel=1e-14)
    for a, b in zip(tree.leaves(gradient), tree.leaves(expected_gradient), strict=True):
        assert float(tk.abs(a - b).max()) < 1e-15


def test_auxiliary_outputs_are_averaged_too() -> None:
    model, x, y = model_and_batch()

    def with_aux(model: Any, x: tk.Tensor, y: tk.Tensor) -> Any:
        logits = model(x)
        return nn.cross_entropy(logits, y), {"accuracy": nn.accuracy(logits, y), "size": len(x)}

    value_and_gradient = tk.value_and_grad(with_aux, has_aux=True)
    (_, aux), _ = nn.accumulate(value_and_gradient, model, zip(tk.split(x, 3), tk.split(y, 3), strict=True))
    assert aux["accuracy"].item() == pytest.approx(nn.accuracy(model(x), y).item())
    assert aux["size"] == 4


def test_batches_are_requested_one_by_one() -> None:
    model, x, y = model_and_batch()
    events = []

    def batches() -> Any:
        for _ in range(3):
            events.append("batch")
            yield x, y

    def value_and_gradient(*arguments: Any) -> Any:
        events.append("gradient")
        return tk.value_and_grad(loss)(*arguments)

    nn.accumulate(value_and_gradient, model, batches())
    assert events == ["batch", "gradient"] * 3


def test_no_batch_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="accumulate: there is no batch"):
        nn.accumulate(tk.value_and_grad(loss), model_and_batch()[0], [])
