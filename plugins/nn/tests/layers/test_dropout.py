"""Dropout: it keeps the mean, and does nothing without a key."""

from __future__ import annotations

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError

KEY = tk.random.key(7)


def test_without_a_key_the_input_is_returned() -> None:
    x = tk.tensor([1.0, float("nan"), 3.0])
    assert nn.Dropout(0.9)(x) is x
    assert nn.Dropout(0.0)(x, key=KEY) is x


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_the_mean_is_kept_and_the_rate_is_right(rate: float) -> None:
    count = 40_000
    y = nn.Dropout(rate)(tk.full((200, 200), 3.0, tk.float64), key=KEY)
    deviation = (rate / (1.0 - rate) / count) ** 0.5  # of the mean, for inputs of 1
    assert y.mean().item() == pytest.approx(3.0, abs=3.0 * 4.0 * deviation)
    assert set(y.ravel().tolist()) == {0.0, 3.0 / (1.0 - rate)}
    assert (y == 0.0).mean().item() == pytest.approx(rate, abs=4.0 * (rate * (1.0 - rate) / count) ** 0.5)


def test_the_key_decides(backend: str) -> None:
    x, key = tk.ones((5, 20)), tk.random.key(7)
    drop = nn.Dropout()
    first, again = (drop(x, key=key).tolist() for _ in range(2))
    other = drop(x, key=tk.random.key(8)).tolist()
    assert first == again == tk.jit(lambda x, key: drop(x, key=key))(x, key).tolist() != other
    assert first[0] != first[1]


def test_every_element_may_be_dropped_even_infinity() -> None:
    assert nn.Dropout(1.0)(tk.tensor([1.0, float("inf")]), key=KEY).tolist() == [0.0, 0.0]


def test_the_derivative_is_zero_where_elements_were_dropped(backend: str) -> None:
    x, key = tk.arange(1, 13, dtype=tk.float64), tk.random.key(7)
    drop = nn.Dropout(0.25)
    y, gradient = drop(x, key=key), tk.grad(lambda x: drop(x, key=key).sum())(x)
    assert (gradient * x).tolist() == pytest.approx(y.tolist())
    assert set(gradient.tolist()) == {0.0, 1.0 / 0.75}


def test_vmap_with_a_key_for_each_example() -> None:
    x, keys = tk.ones((3, 50)), tk.random.split(KEY, 3)
    together = tk.vmap(lambda x, key: nn.Dropout()(x, key=key))(x, keys)
    for row, key, result in zip(x, keys, together, strict=True):
        assert result.tolist() == nn.Dropout()(row, key=key).tolist()


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rates_out_of_range_are_refused(rate: float) -> None:
    with pytest.raises(ArgumentError, match="Dropout: rate must be from 0 to 1"):
        nn.Dropout(rate)
