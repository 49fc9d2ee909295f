"""Embeddings: lookups, gradients and errors."""

from __future__ import annotations

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError, DTypeError, IndexingError

KEY = tk.random.key(0)


def test_an_embedding_looks_up_rows_for_labels_of_any_shape(backend: str) -> None:
    table = nn.Embedding(3, 2, key=tk.random.key(0)).replace(
        weight=tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    )
    assert table(tk.tensor(1)).tolist() == [3.0, 4.0]
    assert table(tk.tensor([[2], [0]])).tolist() == [[[5.0, 6.0]], [[1.0, 2.0]]]
    assert table(tk.zeros((0,), tk.int32)).shape == (0, 2)


def test_the_gradient_sums_over_repeated_labels(backend: str) -> None:
    table = nn.Embedding(3, 2, key=tk.random.key(0))
    labels = tk.tensor([2, 0, 2, 2])
    gradient = tk.grad(lambda table: table(labels).sum())(table)
    assert gradient.weight.tolist() == [[1.0, 1.0], [0.0, 0.0], [3.0, 3.0]]


def test_labels_out_of_range_are_clipped_when_compiled(backend: str) -> None:
    table = nn.Embedding(3, 1, key=tk.random.key(0)).replace(weight=tk.tensor([[1.0], [2.0], [3.0]]))
    assert table(tk.tensor([-1, -3])).ravel().tolist() == [3.0, 1.0]
    compiled = tk.jit(lambda table, labels: table(labels))
    assert compiled(table, tk.tensor([-1, 7, -9, 1])).ravel().tolist() == [3.0, 3.0, 1.0, 2.0]


def test_initial_rows_are_standard_normal() -> None:
    weight = nn.Embedding(200, 50, key=KEY, dtype=tk.float64).weight
    assert weight.dtype is tk.float64
    assert weight.mean().item() == pytest.approx(0.0, abs=0.04)
    assert weight.std().item() == pytest.approx(1.0, abs=0.03)
    assert nn.Embedding(2, 2, key=KEY, weight_initializer=nn.zeros).weight.tolist() == [[0.0, 0.0]] * 2


def test_labels_that_are_not_ints_are_refused(backend: str) -> None:
    table = nn.Embedding(3, 2, key=tk.random.key(0))
    with pytest.raises(IndexingError):
        table(tk.tensor([0, 3]))
    for labels in (tk.tensor([0.0]), tk.tensor([True])):
        with pytest.raises(DTypeError, match="Embedding: labels must be ints"):
            table(labels)
    with pytest.raises(ArgumentError, match="Embedding: need one label and one column or more"):
        nn.Embedding(0, 2, key=KEY)
