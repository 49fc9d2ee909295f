"""Layers and initialisers: what parameters there are, how they begin, and what a network computes."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import tree
from tensorken.errors import ArgumentError, ShapeError


def shapes(parameters: Any) -> Any:
    return tree.map(lambda leaf: leaf.shape, parameters)


@pytest.mark.feature(153, 156)
def test_parameters_are_nested_dicts_named_by_place() -> None:
    model = nn.Sequential([nn.Linear(3, 4, activation=tk.tanh), nn.Linear(4, 2, bias=False)])
    parameters = model.init(random.Random(0))
    assert shapes(parameters) == {"0": {"W": (4, 3), "b": (4,)}, "1": {"W": (2, 4)}}
    assert parameters["0"]["b"].tolist() == [0.0] * 4
    assert nn.size(parameters) == 4 * 3 + 4 + 2 * 4


@pytest.mark.feature(154)
def test_a_linear_layer_is_a_matrix_product_and_a_bias(backend: str) -> None:
    parameters = {"W": tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "b": tk.tensor([10.0, 20.0, -100.0])}
    layer = nn.Linear(2, 3)
    x = tk.tensor([[1.0, -1.0], [0.5, 2.0]])
    assert layer(parameters, x).tolist() == [[9.0, 19.0, -101.0], [14.5, 29.5, -85.5]]
    assert layer(parameters, x[0]).tolist() == [9.0, 19.0, -101.0]
    assert layer(parameters, x.reshape(2, 1, 1, 2)).shape == (2, 1, 1, 3)
    rectified = nn.Linear(2, 3, activation=tk.relu)
    assert rectified(parameters, x).tolist() == [[9.0, 19.0, 0.0], [14.5, 29.5, 0.0]]


def test_a_network_applies_its_layers_in_order(backend: str) -> None:
    model = nn.mlp((2, 3, 1), tk.tanh)
    parameters = model.init(random.Random(1), tk.float64)
    (w, b), (v, c) = ((parameters[i]["W"].tolist(), parameters[i]["b"].tolist()) for i in "01")
    x = [0.3, -0.7]
    hidden = [
        math.tanh(sum(p * q for p, q in zip(row, x, strict=True)) + s) for row, s in zip(w, b, strict=True)
    ]
    expected = sum(p * q for p, q in zip(v[0], hidden, strict=True)) + c[0]
    assert model(parameters, tk.tensor(x, tk.float64)).item() == pytest.approx(expected, abs=1e-14)


@pytest.mark.feature(153)
def test_the_gradient_has_the_structure_of_the_parameters_and_is_right(backend: str) -> None:
    model = nn.mlp((3, 4, 2), tk.tanh)
    parameters = model.init(random.Random(2), tk.float64)
    x, labels = tk.randn((5, 3), random.Random(3), tk.float64), tk.tensor([0, 1, 1, 0, 1])

    def loss(parameters: Any) -> tk.Tensor:
        return nn.cross_entropy(model(parameters, x), labels, 0.1)

    assert shapes(tk.grad(loss)(parameters)) == shapes(parameters)
    tk.testing.check_grads(loss, (parameters,), order=1)


@pytest.mark.feature(155)
def test_he_draws_with_variance_two_over_the_inputs() -> None:
    weights = nn.he((300, 200), random.Random(7), tk.float64).ravel().tolist()
    deviation = math.sqrt(2 / 200)
    n = len(weights)
    assert abs(statistics.fmean(weights)) < 4 * deviation / math.sqrt(n)
    assert abs(statistics.pstdev(weights) / deviation - 1) < 4 / math.sqrt(2 * n)
    within = [sum(abs(w) < k * deviation for w in weights) / n for k in (1, 2, 3)]
    assert within == pytest.approx([0.6827, 0.9545, 0.9973], abs=0.01)


@pytest.mark.feature(155)
def test_he_counts_all_inputs_of_an_output() -> None:
    flat = nn.he((4, 18), random.Random(0), tk.float64).ravel().tolist()
    assert nn.he((4, 2, 3, 3), random.Random(0), tk.float64).ravel().tolist() == flat


@pytest.mark.feature(154, 155)
def test_the_first_weights_of_the_linear_experiment() -> None:
    """The published numbers: five draws of gauss(0, sqrt(2/5)) after seeding with 42."""
    expected = [
        -0.09113072605411639,
        -0.1093538385382091,
        -0.07040233245156298,
        0.4439734903363831,
        -0.08069391590116948,
    ]
    model = nn.Sequential([nn.Linear(5, 1, bias=False)])
    parameters = model.init(random.Random(42), tk.float64)
    assert parameters["0"]["W"].tolist() == [expected]


def test_parameters_begin_equal_on_every_backend() -> None:
    model = nn.mlp((5, 7, 3))
    numpy, reference = (model.init(random.Random(3), backend=name) for name in ("numpy", "reference"))
    assert {leaf.backend for leaf in tree.leaves(reference)} == {"reference"}
    assert tree.map(tk.Tensor.tolist, numpy) == tree.map(tk.Tensor.tolist, reference)


def test_the_wrong_input_is_refused() -> None:
    layer = nn.Linear(3, 2)
    with pytest.raises(ShapeError, match=r"Linear: got shape \(4, 2\), need \(\.\.\., 3\)"):
        layer(layer.init(random.Random(0)), tk.zeros((4, 2)))
    with pytest.raises(ShapeError, match=r"Linear: got shape \(\)"):
        layer(layer.init(random.Random(0)), tk.zeros(()))


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (2, -1)])
def test_a_layer_without_inputs_or_outputs_is_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="Linear: need one input and one output or more"):
        nn.Linear(*sizes)


def test_a_network_needs_two_sizes() -> None:
    with pytest.raises(ArgumentError, match=r"mlp: need at least .* got \(3,\)"):
        nn.mlp((3,))
