"""Sequences of layers: order, keys, states and initial parameters."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, AxisError, ShapeError

KEY = tk.random.key(0)


def test_a_network_applies_its_layers_in_order(backend: str) -> None:
    model = nn.mlp((2, 3, 1), tk.tanh, key=tk.random.key(1), dtype=tk.float64)
    (w, b), (v, c) = ((model[i].weight.tolist(), model[i].bias.tolist()) for i in (0, 2))
    x = [0.3, -0.7]
    hidden = [
        math.tanh(sum(p * q for p, q in zip(row, x, strict=True)) + s) for row, s in zip(w, b, strict=True)
    ]
    expected = sum(p * q for p, q in zip(v[0], hidden, strict=True)) + c[0]
    assert model(tk.tensor(x, tk.float64)).item() == pytest.approx(expected, abs=1e-14)


def test_a_bias_is_initially_zero_and_optional() -> None:
    model = nn.Sequential(nn.Linear(3, 4, key=KEY), tk.tanh, nn.Linear(4, 2, bias=False, key=KEY))
    assert list(nn.named_parameters(model)) == ["layers.0.weight", "layers.0.bias", "layers.2.weight"]
    assert model[0].bias.tolist() == [0.0] * 4
    assert model[2].bias is None
    assert len(model) == len(list(model)) == 3


def test_initial_parameters_depend_on_the_key_and_differ_between_layers() -> None:
    model = nn.mlp((4, 4, 4), key=KEY)
    assert model[0].weight.tolist() != model[2].weight.tolist()
    again = nn.mlp((4, 4, 4), key=KEY)
    assert tree.map(Tensor.tolist, tree.leaves(model)) == tree.map(Tensor.tolist, tree.leaves(again))


def test_initial_parameters_agree_between_backends() -> None:
    numpy, reference = (
        nn.mlp((5, 7, 3), key=tk.random.key(3, backend=name)) for name in ("numpy", "reference")
    )
    assert {leaf.backend for leaf in tree.leaves(reference)} == {"reference"}
    for a, b in zip(tree.leaves(numpy), tree.leaves(reference), strict=True):
        assert a.ravel().tolist() == pytest.approx(b.ravel().tolist(), rel=1e-6)


def test_keys_reach_the_layers_that_take_them() -> None:
    class Noise(nn.Module):
        """Adds random numbers drawn with its key."""

        def __call__(self, x: Tensor, *, key: Tensor | None = None) -> Tensor:
            return x if key is None else x + tk.random.normal(key, x.shape)

    model = nn.Sequential(Noise(), tk.relu, Noise())
    x = tk.full((3,), 100.0)
    assert model(x).tolist() == x.tolist()
    first, again, other = (model(x, key=tk.random.key(seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other
    one = tk.random.normal(tk.random.fold_in(KEY, 0), (3,))
    two = tk.random.normal(tk.random.fold_in(KEY, 2), (3,))
    assert model(x, key=KEY).tolist() == (x + one + two).tolist()


def test_a_network_needs_two_sizes() -> None:
    with pytest.raises(ArgumentError, match=r"mlp: need at least .* got \(3,\)"):
        nn.mlp((3,), key=KEY)


# ---- states ------------------------------------------------------------------------------------------------


def with_states() -> nn.Sequential:
    """A nested network with two layers that have a state and a dropout layer."""
    keys = tk.random.split(KEY, 3)
    inner = nn.Residual(nn.Linear(4, 4, key=keys[1]), nn.BatchNorm(4), tk.tanh, nn.Dropout(0.5))
    return nn.Sequential(nn.Linear(3, 4, key=keys[0]), nn.BatchNorm(4), inner, nn.Linear(4, 2, key=keys[2]))


def test_the_state_has_a_part_for_each_layer() -> None:
    model = with_states()
    state = model.initial_state()
    assert [type(part) for part in state] == [type(None), nn.BatchStatistics, tuple, type(None)]
    assert [type(part) for part in state[2]] == [type(None), nn.BatchStatistics, type(None), type(None)]
    assert nn.mlp((2, 3, 1), key=KEY).initial_state() == (None, None, None)


def test_training_updates_the_state_and_a_call_uses_it() -> None:
    model, x = with_states(), tk.random.normal(KEY, (5, 3))
    y, state = model.train(x, model.initial_state())
    h = model[0](x)
    h, first = model[1].train(h, model[1].initial_state())
    h, second = model[2].train(h, model[2].initial_state())
    assert y.tolist() == model[3](h).tolist()
    assert state[1].mean.tolist() == first.mean.tolist()
    assert state[2][1].variance.tolist() == second[1].variance.tolist()
    evaluated = model[3](model[2](model[1](model[0](x), state[1]), state[2]))
    assert model(x, state).tolist() == evaluated.tolist() != y.tolist()


def test_training_passes_keys_to_nested_layers() -> None:
    model, x = with_states(), tk.random.normal(KEY, (5, 3))
    state = model.initial_state()
    plain, first, again, other = (
        model.train(x, state, key=key)[0].tolist()
        for key in (None, tk.random.key(1), tk.random.key(1), tk.random.key(2))
    )
    assert plain != first == again != other


def test_training_with_a_state_goes_through_jit_and_grad(backend: str) -> None:
    model = nn.Sequential(nn.Linear(2, 3, key=tk.random.key(0)), nn.BatchNorm(3), tk.tanh)
    x = tk.tensor([[0.0, 1.0], [2.0, 3.0], [1.0, -2.0]])

    @tk.jit
    def step(model: nn.Sequential, state: tuple[Any, ...]) -> Any:
        def loss(model: nn.Sequential) -> Any:
            y, new_state = model.train(x, state)
            return (y**2).sum(), new_state

        return tk.value_and_grad(loss, has_aux=True)(model)

    state: Any = model.initial_state()
    for batches in (1, 2):
        (value, state), gradient = step(model, state)
        assert state[1].batches.item() == batches
        assert value.item() > 0.0
        assert tree.structure(gradient) == tree.structure(model)
        assert gradient[0].bias.tolist() == pytest.approx(
            [0.0] * 3, abs=1e-6
        )  # subtracting the mean cancels a bias


def test_a_state_that_is_missing_or_does_not_fit_is_refused() -> None:
    model, x = with_states(), tk.zeros((5, 3))
    with pytest.raises(
        ArgumentError, match=r"BatchNorm: needs a state, got NoneType; initial_state\(\) gives"
    ):
        model(x)
    with pytest.raises(
        ArgumentError, match="Sequential: the state must be a tuple with a part for each of 4 layers, "
    ):
        model.train(x, (None, None))
    with pytest.raises(ArgumentError, match="BatchNorm: needs a state"):
        model.train(x, (None, model[1].initial_state(), None, None))


# ---- residual ----------------------------------------------------------------------------------------------


def test_a_residual_adds_its_input(backend: str) -> None:
    layer = nn.Linear(3, 3, key=tk.random.key(0))
    x = tk.random.normal(tk.random.key(1), (4, 3))
    assert nn.Residual(layer, tk.relu)(x).tolist() == (x + tk.relu(layer(x))).tolist()
    assert repr(nn.Residual(tk.relu)) == "Residual(Function(relu))"
    with pytest.raises(
        ShapeError, match=r"Residual: the layers map shape \(4, 3\) to \(4, 2\); they must keep"
    ):
        nn.Residual(nn.Linear(3, 2, key=tk.random.key(0)))(x)


# ---- flatten -----------------------------------------------------------------------------------------------


def test_flatten_joins_axes() -> None:
    x = tk.arange(24).reshape(2, 3, 4)
    assert nn.Flatten()(x).tolist() == x.reshape(2, 12).tolist()
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Flatten(-1)(x).shape == (2, 3, 4)
    assert nn.Flatten()(tk.zeros((2, 3, 0))).shape == (2, 0)
    for flatten in (nn.Flatten(2, 1), nn.Flatten(0, 3), nn.Flatten(-4)):
        with pytest.raises(AxisError, match=r"Flatten: got shape \(2, 3, 4\), need the axes from"):
            flatten(x)


def test_a_slice_of_a_network_is_a_network() -> None:
    model = nn.mlp((2, 3, 1), tk.tanh, key=tk.random.key(0))
    x = tk.ones((4, 2))
    assert isinstance(model[:2], nn.Sequential)
    assert model[2](model[:2](x)).tolist() == model(x).tolist()
