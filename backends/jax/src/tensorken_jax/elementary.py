"""Functions that `jax.numpy` lacks, or that XLA compiles badly from the default bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tensorken_core.language.shapes import Axes

Array = Any


def in_float32(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function, which computes float16 in float32."""

    def call(x: Array, *params: Any) -> Array:
        if x.dtype != jnp.float16:
            return function(x, *params)
        return function(x.astype(jnp.float32), *params).astype(jnp.float16)

    return call


@in_float32
def sigmoid(x: Array) -> Array:
    """z / (1 + z) with z = exp(min(x, 40)): the result is 1 from there on, and z does not overflow."""
    z = jnp.exp(jnp.minimum(x, 40.0))
    return z / (z + 1.0)


@in_float32
def softplus(x: Array) -> Array:
    """max(x, 0) + log1p(exp(-abs(x)))."""
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@in_float32
def sech_squared(x: Array) -> Array:
    """4 * e / (1 + e * (2 + e)) with e = exp(-2 * abs(x))."""
    e = jnp.exp(-2.0 * jnp.abs(x))
    return 4.0 * e / (1.0 + e * (2.0 + e))


@in_float32
def softmax(x: Array, axes: Axes) -> Array:
    """exp(x - top) / sum(exp(x - top)), where top is the maximum."""
    powers = jnp.exp(_below_maximum(x, axes))
    return powers / powers.sum(axes, keepdims=True)


@in_float32
def log_softmax(x: Array, axes: Axes) -> Array:
    """x - top - log(sum(exp(x - top)))."""
    below = _below_maximum(x, axes)
    return below - jnp.log(jnp.exp(below).sum(axes, keepdims=True))


@in_float32
def logsumexp(x: Array, axes: Axes) -> Array:
    """top + log(sum(exp(x - top)))."""
    top = x.max(axes, keepdims=True)
    return top + jnp.log(jnp.exp(_below_maximum(x, axes)).sum(axes, keepdims=True))


def _below_maximum(x: Array, axes: Axes) -> Array:
    """x - top; 0 for an infinite maximum."""
    top = x.max(axes, keepdims=True)
    return jnp.where(x == top, 0.0, x - top)
