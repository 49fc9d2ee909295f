"""Normalisation layers: outputs of mean 0 and variance 1, and running statistics."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, ShapeError

KEY = tk.random.key(3)


def test_a_layer_norm_gives_mean_0_and_variance_1(backend: str) -> None:
    x = tk.random.normal(tk.random.key(3), (4, 5, 6), tk.float64) * 7.0 + 100.0
    y = nn.LayerNorm((5, 6), eps=0.0, dtype=tk.float64)(x).reshape(4, 30)
    for row in y.tolist():
        assert statistics.fmean(row) == pytest.approx(0.0, abs=1e-12)
        assert statistics.pvariance(row) == pytest.approx(1.0)


def test_an_rms_norm_gives_mean_square_1(backend: str) -> None:
    x = tk.random.normal(tk.random.key(3), (4, 6), tk.float64) * 7.0 + 1.0
    for row in (nn.RMSNorm(6, eps=0.0, dtype=tk.float64)(x) ** 2).tolist():
        assert statistics.fmean(row) == pytest.approx(1.0)


def test_constant_inputs_are_normalised_to_the_bias() -> None:
    x = tk.full((2, 3), 5.0)
    assert nn.LayerNorm(3)(x).tolist() == [[0.0] * 3] * 2
    assert nn.BatchNorm(3).train(x, nn.BatchNorm(3).initial_state())[0].tolist() == [[0.0] * 3] * 2
    assert nn.RMSNorm(3)(tk.zeros((2, 3))).tolist() == [[0.0] * 3] * 2
    gradient = tk.grad(lambda x: (nn.LayerNorm(3)(x) ** 2).sum())(x)
    assert all(math.isfinite(g) for g in gradient.ravel().tolist())


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm, nn.BatchNorm])
def test_float16_is_kept_and_does_not_overflow(kind: Any, backend: str) -> None:
    x = tk.tensor([[-30000.0, 10000.0], [10000.0, -30000.0]], tk.float16)
    layer = kind(2, affine=False)
    if kind is nn.BatchNorm:
        y, state = layer.train(x, layer.initial_state())
        assert state.mean.dtype is state.variance.dtype is tk.float32
        assert layer(x, state).dtype is tk.float16
    else:
        y = layer(x)
    assert y.dtype is tk.float16
    expected = [-1.3416, 0.4472] if kind is nn.RMSNorm else [-1.0, 1.0]
    assert y.tolist() == [pytest.approx(expected, abs=1e-3), pytest.approx(expected[::-1], abs=1e-3)]


def test_a_state_keeps_its_dtype_for_batches_of_another_dtype() -> None:
    norm = nn.BatchNorm(2)
    _, state = norm.train(tk.random.normal(KEY, (4, 2), tk.float64), norm.initial_state())
    assert state.mean.dtype is state.variance.dtype is tk.float32


def test_parameters_are_optional_and_on_the_backend_of_the_key() -> None:
    assert list(nn.named_parameters(nn.LayerNorm(3, bias=False))) == ["weight"]
    assert not tree.leaves(
        (nn.LayerNorm(3, affine=False), nn.RMSNorm(3, affine=False), nn.BatchNorm(3, affine=False))
    )
    key = tk.random.key(0, backend="reference")
    for layer in (nn.LayerNorm(3, key=key), nn.RMSNorm(3, key=key), nn.BatchNorm(3, key=key)):
        assert {leaf.backend for leaf in tree.leaves(layer)} == {"reference"}
    assert {leaf.backend for leaf in nn.BatchNorm(3, key=key).initial_state()} == {"reference"}


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_batch_norm_gives_each_channel_mean_0_and_variance_1(backend: str, shape: tuple[int, ...]) -> None:
    norm = nn.BatchNorm(2, eps=0.0, dtype=tk.float64)
    x = tk.random.normal(tk.random.key(3), (5, 2, *shape), tk.float64) * 7.0 + 100.0
    y, _ = norm.train(x, norm.initial_state())
    for channel in tk.moveaxis(y, 1, 0).reshape(2, -1).tolist():
        assert statistics.fmean(channel) == pytest.approx(0.0, abs=1e-12)
        assert statistics.pvariance(channel) == pytest.approx(1.0)


def test_a_batch_norm_without_momentum_averages_all_batches(backend: str) -> None:
    norm = nn.BatchNorm(1, momentum=None, dtype=tk.float64)
    state = norm.initial_state()
    assert (state.mean.tolist(), state.variance.tolist(), state.batches.item()) == ([0.0], [1.0], 0)
    batches = [[1.0, 2.0], [5.0, 9.0, 4.0], [0.0, 3.0]]
    for batch in batches:
        _, state = norm.train(tk.tensor(batch, tk.float64).reshape(-1, 1), state)
    assert state.batches.item() == 3
    assert state.mean.item() == pytest.approx(statistics.fmean(map(statistics.fmean, batches)))
    assert state.variance.item() == pytest.approx(statistics.fmean(map(statistics.variance, batches)))
    assert norm(tk.tensor([[2.0]], tk.float64), state).item() == pytest.approx(
        (2.0 - state.mean.item()) / math.sqrt(state.variance.item() + 1e-5)
    )


def test_a_step_of_training_with_a_state_is_compiled_once() -> None:
    norm = nn.BatchNorm(2)
    traced = []

    @tk.jit
    def step(x: Tensor, state: nn.BatchStatistics) -> tuple[Tensor, nn.BatchStatistics]:
        traced.append(x.shape)
        return norm.train(x, state)

    x, state = tk.random.normal(KEY, (4, 2)), norm.initial_state()
    expected = state
    for _ in range(3):
        _, state = step(x, state)
        _, expected = norm.train(x, expected)
    assert len(traced) == 1
    for statistic, expected_statistic in zip(state, expected, strict=True):
        assert statistic.tolist() == pytest.approx(expected_statistic.tolist(), rel=1e-6)


def test_derivatives_include_the_statistics_of_the_batch() -> None:
    norm = nn.BatchNorm(2, dtype=tk.float64)
    x = tk.random.normal(KEY, (4, 2, 3), tk.float64)

    def loss(norm: nn.BatchNorm, x: Tensor) -> Tensor:
        return (norm.train(x, norm.initial_state())[0] ** 3).sum()

    tk.testing.check_grads(loss, (norm, x), order=1)


def test_running_statistics_are_constants_in_derivatives() -> None:
    norm = nn.BatchNorm(2)
    x = tk.random.normal(KEY, (4, 2))
    gradient = tk.grad(lambda x: norm.train(x, norm.initial_state())[1].mean.sum())(x)
    assert gradient.ravel().tolist() == [0.0] * 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.LayerNorm(()), r"LayerNorm: need positive sizes of one axis or more, got \(\)"),
        (lambda: nn.RMSNorm((2, 0)), r"RMSNorm: need positive sizes of one axis or more, got \(2, 0\)"),
        (lambda: nn.BatchNorm(0), "BatchNorm: need one channel or more, got 0"),
        (
            lambda: nn.BatchNorm(2)(tk.zeros((3, 2))),
            r"BatchNorm: needs a state, got NoneType; initial_state\(\)",
        ),
        (lambda: nn.BatchNorm(2).train(tk.zeros((3, 2)), (1, 2, 3)), "BatchNorm: needs a state, got tuple"),
    ],
)
def test_bad_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_other_shapes_are_refused() -> None:
    norm, state = nn.BatchNorm(2), nn.BatchNorm(2).initial_state()
    with pytest.raises(ShapeError, match=r"LayerNorm: got shape \(3, 2\), need \(\.\.\., 2, 3\)"):
        nn.LayerNorm((2, 3))(tk.zeros((3, 2)))
    with pytest.raises(ShapeError, match=r"RMSNorm: got shape \(\), need \(\.\.\., 2\)"):
        nn.RMSNorm(2)(tk.zeros(()))
    for x in (tk.zeros((2,)), tk.zeros((2, 3))):
        with pytest.raises(ShapeError, match=r"BatchNorm: got shape .*, need \(count, 2, \.\.\.\)"):
            norm(x, state)
    with pytest.raises(ShapeError, match="has 1 numbers for each channel, training needs two or more"):
        norm.train(tk.zeros((1, 2)), state)
