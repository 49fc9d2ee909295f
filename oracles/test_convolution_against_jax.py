"""`tk.convolution` against JAX's `lax.conv_general_dilated`: values, cotangents and batches for random params."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tensorken as tk
from tensorken_core.errors import ShapeError
from tensorken_core.language.op import OPS

jax.config.update("jax_enable_x64", True)


def drawn(seed: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]:
    """Shapes and params of a random convolution."""
    rng = random.Random(seed)
    while True:
        rank, groups = rng.choice((1, 2, 2, 3)), rng.choice((1, 1, 2, 3))
        x = (rng.choice((1, 3)), groups * rng.choice((1, 2)), *rng.choices(range(1, 7), k=rank))
        kernel = (groups * rng.choice((1, 4)), x[1] // groups, *rng.choices(range(1, 5), k=rank))
        padding = [(rng.randint(-2, 3), rng.randint(-2, 3)) for _ in range(rank)]
        strides, *dilations = [tuple(rng.choices((1, 1, 2, 3), k=rank)) for _ in range(3)]
        try:
            OPS["convolution"].shape(x, kernel, strides, tuple(padding), *dilations, groups)
        except ShapeError:
            continue
        return x, kernel, (strides, padding, *dilations, groups)


@pytest.mark.parametrize("seed", range(10))
def test_values_cotangents_and_batches_equal_those_of_jax(seed: int) -> None:
    shape, kernel_shape, params = drawn(seed)
    rng = np.random.default_rng(seed)
    x, kernel = rng.normal(size=(2, *shape)), rng.normal(size=(2, *kernel_shape))

    def theirs(x: Any, kernel: Any) -> Any:
        strides, padding, *dilations, groups = params
        return lax.conv_general_dilated(x, kernel, strides, padding, *dilations, feature_group_count=groups)

    def ours(x: Any, kernel: Any) -> Any:
        return tk.convolution(x, kernel, *params)

    a, b = tk.tensor(x[0], "float64"), tk.tensor(kernel[0], "float64")
    y, pullback_of_jax = jax.vjp(theirs, jnp.asarray(x[0]), jnp.asarray(kernel[0]))
    t = rng.normal(size=y.shape)
    z, pullback = tk.vjp(ours, a, b)
    for actual, expected in zip(
        (z, *pullback(tk.tensor(t, "float64"))), (y, *pullback_of_jax(jnp.asarray(t))), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)
    axes = ((0, 0), (0, None), (None, 0))[seed % 3]
    operands = [x if axes[0] == 0 else x[0], kernel if axes[1] == 0 else kernel[0]]
    expected = jax.vmap(theirs, axes)(*operands)
    actual = tk.vmap(ours, axes)(*[tk.tensor(operand, "float64") for operand in operands])
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)
