"""Functions that `jax.numpy` lacks, or that XLA compiles badly from the default bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

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
    if x.size == 0:
        return x
    powers = jnp.exp(_Below(x, axes).differences())
    return powers / powers.sum(axes, keepdims=True)


@in_float32
def log_softmax(x: Array, axes: Axes) -> Array:
    """x - top - log(sum(exp(x - top)))."""
    if x.size == 0:
        return x
    below = _Below(x, axes)
    differences = below.differences()
    # Four times a difference from an infinite maximum overflows to minus infinity; that of a maximum itself is 0.
    return differences * jnp.where(below.is_infinite, 4.0, 1.0).astype(x.dtype) - _log_of_sum(
        differences, axes
    )


@in_float32
def logsumexp(x: Array, axes: Axes) -> Array:
    """top + log(sum(exp(x - top)))."""
    if x.size == 0:
        return jnp.log(x.sum(axes, keepdims=True))
    below = _Below(x, axes)
    return below.top + _log_of_sum(below.differences(), axes)


def _log_of_sum(differences: Array, axes: Axes) -> Array:
    return jnp.log(jnp.exp(differences).sum(axes, keepdims=True))


class _Below:
    """The differences x - top from the maximum; 0 for each maximum that is infinite, too.

    A comparison of each element with the maximum would keep XLA from vectorising `exp`.  So rows with an infinite
    maximum are scaled, which makes their maxima plus infinity, and limited to the largest number, which is then
    subtracted: a difference is 0, or so negative that `exp` is 0.
    """

    def __init__(self, x: Array, axes: Axes) -> None:
        self.x = x
        self.top = x.max(axes, keepdims=True)
        self.is_infinite = jnp.isinf(self.top)

    def differences(self) -> Array:
        """The differences."""
        dtype = self.x.dtype
        largest = np.finfo(dtype).max
        scale = jnp.where(self.is_infinite, jnp.copysign(0.5, self.top), 1.0).astype(dtype)
        limit = jnp.where(self.is_infinite, largest, jnp.inf).astype(dtype)
        return jnp.minimum(self.x * scale, limit) - jnp.where(self.is_infinite, largest, self.top)
