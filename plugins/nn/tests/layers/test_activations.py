"""Activations far from 0, at infinities and NaN, in both precisions, and in second derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import tensorken as tk
import tensorken_nn as nn
from core.tests.each import each_of
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError

Activation = Callable[[Tensor], Tensor]

ELEMENTWISE: dict[str, Activation] = {
    name: getattr(nn, name)
    for name in (
        *("celu", "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_sigmoid", "mish"),
        *("relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softsign", "tanh"),
    )
} | {"gelu tanh": lambda x: nn.gelu(x, "tanh")}

LIMITS: dict[str, tuple[float, float]] = {  # at -1e30 and 1e30
    "celu": (-1.0, 1e30),
    "elu": (-1.0, 1e30),
    "gelu": (0.0, 1e30),
    "gelu tanh": (0.0, 1e30),
    "hardsigmoid": (0.0, 1.0),
    "hardswish": (0.0, 1e30),
    "hardtanh": (-1.0, 1.0),
    "leaky_relu": (-1e28, 1e30),
    "log_sigmoid": (-1e30, 0.0),
    "mish": (0.0, 1e30),
    "relu": (0.0, 1e30),
    "relu6": (0.0, 6.0),
    "selu": (-1.7580993408473766, 1.0507009873554805e30),
    "sigmoid": (0.0, 1.0),
    "silu": (0.0, 1e30),
    "softplus": (0.0, 1e30),
    "softsign": (-1.0, 1.0),
    "tanh": (-1.0, 1.0),
}


@each_of("name", ELEMENTWISE)
def test_large_numbers_give_neither_nan_nor_overflow(name: str, backend: str) -> None:
    """Neither in the value nor in the derivative, which is the slope of the asymptote."""
    x = tk.tensor([-1e30, 1e30])
    assert ELEMENTWISE[name](x).tolist() == pytest.approx(LIMITS[name], rel=1e-6, abs=1e-30)
    slopes = [limit / point for limit, point in zip(LIMITS[name], (-1e30, 1e30), strict=True)]
    assert tk.elementwise_grad(ELEMENTWISE[name])(x).tolist() == pytest.approx(slopes, rel=1e-6, abs=1e-20)


@each_of("name", ELEMENTWISE)
def test_nan_stays_nan(name: str, backend: str) -> None:
    assert math.isnan(ELEMENTWISE[name](tk.tensor(math.nan)).item())


@each_of("name", ELEMENTWISE)
def test_the_dtype_is_kept(name: str, backend: str) -> None:
    for dtype in (tk.float32, tk.float64):
        assert ELEMENTWISE[name](tk.tensor([0.5], dtype)).dtype is dtype


@each_of("name", ELEMENTWISE)
def test_first_and_second_derivatives_are_right(name: str) -> None:
    tk.testing.check_grads(ELEMENTWISE[name], (tk.tensor([-2.2, -0.7, 0.4, 1.3], tk.float64),))


def test_swish_is_silu() -> None:
    assert nn.swish is nn.silu


def test_glu_takes_halves_of_any_axis(backend: str) -> None:
    x = tk.arange(24, dtype=tk.float64).reshape(2, 4, 3) / 10.0
    expected = x[:, :2] * tk.sigmoid(x[:, 2:])
    assert nn.glu(x, 1).tolist() == expected.tolist() == nn.glu(x, -2).tolist()


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ShapeError, match="glu: axis -1 has size 3, need an even one"):
        nn.glu(tk.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="gelu: approximate must be 'none' or 'tanh', got 'erf'"):
        nn.gelu(tk.zeros(()), "erf")
