"""The linear layer: its definition and errors."""

from __future__ import annotations

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError, ShapeError

KEY = tk.random.key(0)


@pytest.mark.feature(154)
def test_a_linear_layer_is_a_matrix_product_and_a_bias(backend: str) -> None:
    layer = nn.Linear(2, 3, key=tk.random.key(0)).replace(
        weight=tk.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), bias=tk.tensor([10.0, 20.0, -100.0])
    )
    x = tk.tensor([[1.0, -1.0], [0.5, 2.0]])
    assert layer(x).tolist() == [[9.0, 19.0, -101.0], [14.5, 29.5, -85.5]]
    assert layer(x[0]).tolist() == [9.0, 19.0, -101.0]
    assert layer(x.reshape(2, 1, 1, 2)).shape == (2, 1, 1, 3)
    assert nn.Sequential(layer, tk.relu)(x).tolist() == [[9.0, 19.0, 0.0], [14.5, 29.5, 0.0]]


def test_inputs_of_another_size_are_refused() -> None:
    layer = nn.Linear(3, 2, key=KEY)
    with pytest.raises(ShapeError, match=r"Linear: got shape \(4, 2\), need \(\.\.\., 3\)"):
        layer(tk.zeros((4, 2)))
    with pytest.raises(ShapeError, match=r"Linear: got shape \(\)"):
        layer(tk.zeros(()))


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (2, -1)])
def test_a_layer_without_inputs_or_outputs_is_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="Linear: need one input and one output or more"):
        nn.Linear(*sizes, key=KEY)
