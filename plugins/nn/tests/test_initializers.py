"""Initialisers: variance, bounds and shape agree with the definition."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn import initializers
from tensorken_nn.initializers import (
    Initializer,
    constant,
    normal,
    ones,
    orthogonal,
    truncated_normal,
    uniform,
    zeros,
)

KEY = tk.random.key(3)

VARIANCES = {
    "he": lambda inputs, outputs: 2.0 / inputs,
    "xavier": lambda inputs, outputs: 2.0 / (inputs + outputs),
    "glorot": lambda inputs, outputs: 2.0 / (inputs + outputs),
    "lecun": lambda inputs, outputs: 1.0 / inputs,
}
SHAPES = {(40, 90): (90, 40), (30, 10, 3, 4): (120, 360)}
"""Shapes with the number of inputs of an output, and of outputs of an input."""


def moments(x: tk.Tensor) -> tuple[float, float, float]:
    """The mean square, the fourth moment divided by its square (3 for normal numbers), and the largest magnitude."""
    x = x.astype(tk.float64)
    square = x.square().mean().item()
    return square, (x.square().square().mean() / square**2).item(), tk.abs(x).max().item()


@pytest.mark.feature(155)
@pytest.mark.parametrize("name", VARIANCES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_variance_is_that_of_the_definition(name: str, shape: tuple[int, ...]) -> None:
    """To 4 standard deviations of estimates from 3600 numbers; the fourth moments distinguish the distributions."""
    variance = VARIANCES[name](*SHAPES[shape])
    of_normal = moments(getattr(initializers, f"{name}_normal")(KEY, shape))
    of_uniform = moments(getattr(initializers, f"{name}_uniform")(KEY, shape))
    assert of_normal[0] == pytest.approx(variance, rel=0.1)
    assert of_normal[1] == pytest.approx(3.0, abs=0.4)
    assert of_uniform[0] == pytest.approx(variance, rel=0.06)
    assert of_uniform[1] == pytest.approx(1.8, abs=0.1)
    assert 0.99 * math.sqrt(3 * variance) < of_uniform[2] <= math.sqrt(3 * variance) * (1 + 1e-6)


@pytest.mark.parametrize("name", ["he_normal", "he_uniform", "xavier_normal", "lecun_uniform"])
def test_a_shape_without_inputs_is_refused(name: str) -> None:
    with pytest.raises(ShapeError, match=rf"{name}: shape \(5,\) has no axes for outputs and inputs"):
        getattr(initializers, name)(KEY, (5,))
    assert getattr(initializers, name)(KEY, (5, 0)).shape == (5, 0)


def test_initializers_of_a_given_scale() -> None:
    assert moments(normal(0.02)(KEY, (60, 60), tk.float32))[0] == pytest.approx(0.0004, rel=0.1)
    square, _, most = moments(uniform(0.5)(KEY, (60, 60), tk.float32))
    assert square == pytest.approx(0.25 / 3, rel=0.06)
    assert 0.49 < most <= 0.5
    square, _, most = moments(truncated_normal(0.1)(KEY, (60, 60), tk.float32))
    # The variance of normal numbers between -2 and 2: 1 - 4 * density(2) / probability.
    density, probability = math.exp(-2.0) / math.sqrt(2.0 * math.pi), math.erf(math.sqrt(2.0))
    assert square == pytest.approx(0.01 * (1.0 - 4.0 * density / probability), rel=0.06)
    assert 0.19 < most <= 0.2 * (1 + 1e-6)
    above = truncated_normal(2.0, 0.5, 1.0)(KEY, (100,), tk.float32)
    assert 1.0 <= above.min().item() < above.max().item() <= 2.0


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (4, 2, 3, 1), (6, 1, 2, 2)])
@pytest.mark.parametrize("gain", [1.0, 1.5])
def test_orthogonal_matrices_keep_lengths(backend: str, shape: tuple[int, ...], gain: float) -> None:
    drawn = orthogonal(gain)(tk.random.key(0), shape, tk.float64)
    assert drawn.shape == shape
    matrix = drawn.reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert float(tk.abs(product - gain**2 * tk.eye(product.shape[0], dtype=tk.float64)).max()) < 1e-14


def test_orthogonal_matrices_are_uniformly_distributed() -> None:
    """An element of a rotation or reflection of the plane is a cosine, within +-0.7 for half of them."""
    draws = [orthogonal()(tk.random.fold_in(KEY, i), (2, 2), tk.float32) for i in range(300)]
    corners = [q[0, 0].item() for q in draws]
    assert sum([abs(x) < math.sqrt(0.5) for x in corners]) == pytest.approx(150, abs=35)
    assert sum([x < 0.0 for x in corners]) == pytest.approx(150, abs=35)
    assert sum([tk.linalg.det(q).item() < 0.0 for q in draws]) == pytest.approx(150, abs=35)


EVERY: dict[str, Initializer] = {
    name: getattr(initializers, f"{name}")
    for name in ("he_normal", "xavier_uniform", "lecun_normal", "zeros", "ones")
} | {
    "normal": normal(0.1),
    "uniform": uniform(0.1),
    "truncated_normal": truncated_normal(0.1),
    "orthogonal": orthogonal(),
    "constant": constant(0.5),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [tk.float16, tk.float32, tk.float64], ids=str)
def test_results_depend_on_the_key_and_have_the_requested_dtype(backend: str, name: str, dtype: Any) -> None:
    initializer = EVERY[name]
    one, two = tk.random.key(1), tk.random.key(2)
    drawn = initializer(one, (3, 4), dtype)
    assert (drawn.shape, drawn.dtype, drawn.backend) == ((3, 4), dtype, backend)
    assert drawn.tolist() == initializer(one, (3, 4), dtype).tolist()
    assert (drawn.tolist() == initializer(two, (3, 4), dtype).tolist()) == (
        name in ("zeros", "ones", "constant")
    )


def test_constants() -> None:
    assert zeros(KEY, (2,)).tolist() == [0.0, 0.0]
    assert ones(KEY, (2,)).tolist() == [1.0, 1.0]
    assert constant(-2.5)(KEY, (2, 1), tk.float64).tolist() == [[-2.5], [-2.5]]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"normal: std must not be negative, got -1\.0"):
        normal(-1.0)
    with pytest.raises(ArgumentError, match=r"uniform: bound must not be negative, got nan"):
        uniform(math.nan)
    with pytest.raises(ArgumentError, match=r"truncated_normal: need lower < upper, got 2\.0, -2\.0"):
        truncated_normal(1.0, 2.0, -2.0)
    with pytest.raises(ArgumentError, match="orthogonal: gain must not be negative"):
        orthogonal(-1.0)
    with pytest.raises(ShapeError, match=r"orthogonal: shape \(3,\)"):
        orthogonal()(KEY, (3,), tk.float32)
