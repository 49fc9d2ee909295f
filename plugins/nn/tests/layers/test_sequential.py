"""Networks of layers one after the other: order, keys, states, and how they begin."""

from __future__ import annotations

import math

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor, tree
from tensorken.errors import ArgumentError

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


def test_a_bias_begins_at_zero_and_may_be_left_out() -> None:
    model = nn.Sequential(nn.Linear(3, 4, key=KEY), tk.tanh, nn.Linear(4, 2, bias=False, key=KEY))
    assert list(nn.named_parameters(model)) == ["layers.0.weight", "layers.0.bias", "layers.2.weight"]
    assert model[0].bias.tolist() == [0.0] * 4
    assert model[2].bias is None
    assert len(model) == len(list(model)) == 3


def test_layers_begin_with_different_numbers_that_the_key_decides() -> None:
    model = nn.mlp((4, 4, 4), key=KEY)
    assert model[0].weight.tolist() != model[2].weight.tolist()
    again = nn.mlp((4, 4, 4), key=KEY)
    assert tree.map(Tensor.tolist, tree.leaves(model)) == tree.map(Tensor.tolist, tree.leaves(again))


def test_parameters_begin_alike_on_every_backend() -> None:
    numpy, reference = (
        nn.mlp((5, 7, 3), key=tk.random.key(3, backend=name)) for name in ("numpy", "reference")
    )
    assert {leaf.backend for leaf in tree.leaves(reference)} == {"reference"}
    for a, b in zip(tree.leaves(numpy), tree.leaves(reference), strict=True):
        assert a.ravel().tolist() == pytest.approx(b.ravel().tolist(), rel=1e-6)


def test_keys_reach_the_layers_that_take_them() -> None:
    class Noise(nn.Module):
        """Adds what its key draws."""

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
