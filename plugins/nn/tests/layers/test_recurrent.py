"""Recurrent layers: they agree with a loop, sequences can be split, and a network learns from the first element."""

from __future__ import annotations

from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError

KEY = tk.random.key(0)
KINDS = [nn.RNN, nn.GRU, nn.LSTM]


def linear(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    return weight @ x + bias


def by_hand(layer: Any, x: Tensor) -> list[Tensor]:
    """The outputs of a sequence (steps, inputs) by the formulas of the definition, gate by gate."""
    (cell,) = layer.cells
    width = cell.state_weight.shape[1]

    def part(i: int, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        rows = slice(i * width, (i + 1) * width)
        return (
            linear(cell.input_weight[rows], cell.input_bias[rows], x),
            linear(cell.state_weight[rows], cell.state_bias[rows], h),
        )

    h = c = tk.zeros((width,), tk.float64)
    outputs = []
    for step in x:
        gates = [part(i, step, h) for i in range(cell.gates)]
        if isinstance(layer, nn.RNN):
            h = tk.tanh(sum(gates[0]))
        elif isinstance(layer, nn.GRU):
            r, z = (tk.sigmoid(a + b) for a, b in gates[:2])
            h = (1.0 - z) * tk.tanh(gates[2][0] + r * gates[2][1]) + z * h
        else:
            i, f, _, o = (tk.sigmoid(a + b) for a, b in gates)
            c = f * c + i * tk.tanh(sum(gates[2]))
            h = o * tk.tanh(c)
        outputs.append(h)
    return outputs


@pytest.mark.parametrize("kind", KINDS)
def test_the_scan_agrees_with_a_loop(kind: Any, backend: str) -> None:
    layer = kind(3, 2, key=tk.random.key(0), dtype=tk.float64)
    x = tk.random.normal(tk.random.key(1), (4, 3), tk.float64)
    outputs, state = layer(x)
    expected = tk.stack(by_hand(layer, x))
    assert outputs.ravel().tolist() == pytest.approx(expected.ravel().tolist(), rel=1e-12)
    last = state.output if isinstance(state, nn.LSTMState) else state
    assert last.tolist() == outputs[-1].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_can_be_processed_in_two_parts(kind: Any) -> None:
    layer = kind(3, 2, key=KEY, dtype=tk.float64)
    x = tk.random.normal(tk.random.key(1), (2, 5, 3), tk.float64)
    outputs, last = layer(x)
    first, state = layer(x[:, :2])
    second, state = layer(x[:, 2:], state)
    assert tk.concatenate([first, second], 1).tolist() == outputs.tolist()
    assert tree.map(Tensor.tolist, state) == tree.map(Tensor.tolist, last)


@pytest.mark.parametrize("kind", KINDS)
def test_leading_axes_are_batch_axes(kind: Any) -> None:
    layer = kind(3, 2, key=KEY, dtype=tk.float64)
    x = tk.random.normal(tk.random.key(1), (2, 2, 4, 3), tk.float64)
    outputs, _ = layer(x)
    assert outputs.shape == (2, 2, 4, 2)
    for i in range(2):
        alone, _ = layer(x[i, 0])
        assert outputs[i, 0].ravel().tolist() == pytest.approx(alone.ravel().tolist(), rel=1e-12)
    empty, state = layer(x[0, :, :0])
    assert empty.shape == (2, 0, 2)
    assert all(leaf.tolist() == [[0.0, 0.0]] * 2 for leaf in tree.leaves(state))


@pytest.mark.parametrize("kind", KINDS)
def test_initial_parameters_are_within_the_bounds(kind: Any) -> None:
    layer = kind(3, 25, key=KEY)
    numbers = [x for leaf in tree.leaves(layer) for x in leaf.ravel().tolist()]
    assert -0.2 <= min(numbers) < -0.19 and 0.19 < max(numbers) <= 0.2
    assert len(set(numbers)) > 0.99 * len(numbers)
    assert list(nn.named_parameters(kind(3, 2, bias=False, key=KEY))) == [
        "cells.0.input_weight",
        "cells.0.state_weight",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_learns_the_first_element_of_a_sequence(kind: Any) -> None:
    """The label is the sign of the first number of a sequence."""
    x = tk.random.normal(tk.random.key(1), (32, 6, 1))
    labels = (x[:, 0, 0] > 0.0).astype(tk.int32)
    keys = tk.random.split(KEY)
    model: Any = {"layer": kind(1, 8, key=keys[0]), "head": nn.Linear(8, 2, key=keys[1])}
    optimizer = nn.Adam(0.05)

    def loss(model: Any) -> Tensor:
        outputs, _ = model["layer"](x)
        return nn.cross_entropy(model["head"](outputs[:, -1]), labels)

    @tk.jit
    def step(model: Any, state: Any) -> Any:
        value, gradient = tk.value_and_grad(loss)(model)
        return value, *optimizer.update(model, gradient, state)

    state = optimizer.init(model)
    losses = []
    for _ in range(60):
        value, model, state = step(model, state)
        losses.append(value.item())
    assert losses[0] > 0.5 > 0.2 > losses[-1]


def test_inputs_and_states_that_do_not_fit_are_refused() -> None:
    layer, x = nn.LSTM(3, 2, key=KEY), tk.ones((2, 5, 3))
    zeros = tk.zeros((2, 2))
    with pytest.raises(ShapeError, match=r"LSTM: got shape \(2, 3, 5\), need \(\.\.\., steps, 3\)"):
        layer(x.swapaxes(1, 2))
    with pytest.raises(ShapeError, match=r"LSTM: got shape \(3,\)"):
        layer(x[0, 0])
    with pytest.raises(ArgumentError, match="LSTM: got a Tensor as the state, need a LSTMState"):
        layer(x, zeros)
    with pytest.raises(ShapeError, match=r"LSTM: got a state of shape \(2,\), need \(2, 2\) with this input"):
        layer(x, nn.LSTMState(zeros, zeros[0]))
    with pytest.raises(
        ArgumentError, match="GRU: need one input, a width and a number of layers of 1 or more, got 3, 0, 1"
    ):
        nn.GRU(3, 0, key=KEY)
