"""Losses and metrics, against their definitions in plain Python."""

from __future__ import annotations

import math
import random

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.losses import least_cross_entropy


def plain_cross_entropy(logits: list[list[float]], labels: list[int], smoothing: float = 0.0) -> float:
    """The definition: the cross-entropy between the smoothed label and the softmax, averaged over rows."""
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        log_sum = math.log(math.fsum([math.exp(z) for z in row]))
        for i, z in enumerate(row):
            chance = smoothing / len(row) + (1 - smoothing if i == label else 0.0)
            total -= chance * (z - log_sum)
    return total / len(labels)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_cross_entropy_is_its_definition(backend: str, smoothing: float) -> None:
    rng = random.Random(0)
    logits = [[rng.uniform(-5, 5) for _ in range(4)] for _ in range(6)]
    labels = [rng.randrange(4) for _ in range(6)]
    loss = nn.cross_entropy(tk.tensor(logits, tk.float64), tk.tensor(labels), smoothing)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(plain_cross_entropy(logits, labels, smoothing), rel=1e-13)


def test_its_gradient_is_softmax_minus_label(backend: str) -> None:
    logits, labels = tk.tensor([[1.0, 2.0, -1.0], [0.0, 0.5, 3.0]], tk.float64), tk.tensor([1, 0])
    gradient = tk.grad(nn.cross_entropy)(logits, labels)
    one_hot = tk.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], tk.float64)
    expected = (tk.softmax(logits) - one_hot) / 2
    assert float((gradient - expected).abs().max()) < 1e-15


def test_rows_may_lie_along_several_axes(backend: str) -> None:
    rng = random.Random(1)
    logits, labels = tk.randn((2, 3, 4), rng, tk.float64), tk.tensor([[0, 1, 2], [3, 2, 1]])
    flat = nn.cross_entropy(logits.reshape(6, 4), labels.reshape(6))
    assert nn.cross_entropy(logits, labels).item() == pytest.approx(flat.item(), rel=1e-14)


def test_huge_logits_neither_overflow_nor_lose_the_loss(backend: str) -> None:
    loss, gradient = tk.value_and_grad(nn.cross_entropy)(
        tk.tensor([[1e4, 0.0], [0.0, -3e38]]), tk.tensor([1, 0])
    )
    assert loss.item() == 5e3
    assert gradient.tolist() == [[0.5, -0.5], [0.0, 0.0]]


def test_no_logits_beat_the_least_cross_entropy() -> None:
    classes, smoothing = 10, 0.1
    best = [math.log(1 - smoothing + smoothing / classes), *[math.log(smoothing / classes)] * (classes - 1)]
    least = least_cross_entropy(classes, smoothing)
    at_best = nn.cross_entropy(tk.tensor([best], tk.float64), tk.tensor([0]), smoothing).item()
    assert at_best == pytest.approx(least, rel=1e-13)
    rng = random.Random(0)
    for _ in range(20):
        near = tk.tensor([[z + rng.uniform(-1e-2, 1e-2) for z in best]], tk.float64)
        assert nn.cross_entropy(near, tk.tensor([0]), smoothing).item() >= least - 1e-15
    assert least_cross_entropy(3, 0.0) == 0.0


def test_bad_arguments_are_refused() -> None:
    logits = tk.zeros((3, 2))
    with pytest.raises(ShapeError, match=r"labels of shape \(2,\) for logits of shape \(3, 2\)"):
        nn.cross_entropy(logits, tk.tensor([0, 1]))
    with pytest.raises(ShapeError, match=r"logits of shape \(\)"):
        nn.cross_entropy(tk.zeros(()), tk.tensor([0]))
    with pytest.raises(DTypeError, match="labels must be ints, got float32"):
        nn.cross_entropy(logits, tk.zeros(3))
    with pytest.raises(ArgumentError, match=r"label_smoothing must be from 0 to 1, got 1\.5"):
        nn.cross_entropy(logits, tk.tensor([0, 1, 1]), 1.5)
    assert nn.cross_entropy(logits, tk.tensor([0, 1, 1])).item() == pytest.approx(math.log(2))


def test_accuracy_is_the_share_of_rows_that_are_right(backend: str) -> None:
    logits = tk.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 2.0, 1.0], [5.0, 0.0, 1.0]])
    labels = tk.tensor([0, 2, 0, 0])
    assert nn.correct(logits, labels).item() == 3
    assert nn.accuracy(logits, labels).item() == 0.75


def test_a_confusion_table_adds_up() -> None:
    rng = random.Random(0)
    labels = [rng.randrange(5) for _ in range(200)]
    predictions = [label if rng.random() < 0.7 else rng.randrange(5) for label in labels]
    table = nn.confusion(labels, predictions, 5)
    assert [sum(row) for row in table] == [labels.count(i) for i in range(5)]
    assert [sum(column) for column in zip(*table, strict=True)] == [predictions.count(i) for i in range(5)]
    right = sum(a == b for a, b in zip(labels, predictions, strict=True))
    assert sum(table[i][i] for i in range(5)) == right
    with pytest.raises(ValueError, match="shorter"):
        nn.confusion([0, 1], [0], 2)
