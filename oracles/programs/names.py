"""JAX's functions under Tensorken's names, with Tensorken's order of arguments."""

from __future__ import annotations

import math
import os
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special

jax.config.update("jax_enable_x64", True)

QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
EXACT = "--xla_allow_excess_precision=false"  # float16 is rounded after each op
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK} {EXACT}"

MODULES = (jnp, jax, jax.lax, jax.nn, jax.scipy.special)


class Linalg:
    """`jnp.linalg`, and `solve_triangular`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.scipy.linalg if name == "solve_triangular" else jnp.linalg, name)


class JaxNames:
    """The functions of JAX that programs call."""

    linalg = Linalg()
    cond = staticmethod(jax.lax.cond)
    norm = staticmethod(jnp.linalg.norm)
    fix = staticmethod(jnp.trunc)
    concat = staticmethod(jnp.concatenate)
    fft = jnp.fft

    def __getattr__(self, name: str) -> Any:
        for module in MODULES:
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)

    @staticmethod
    def fmax(a: Any, b: Any) -> Any:
        """The larger number; equal operands share the derivative, while JAX's fmax gives it to one of them."""
        return jnp.where(jnp.isnan(a), b, jnp.where(jnp.isnan(b), a, jnp.maximum(a, b)))

    @staticmethod
    def fmin(a: Any, b: Any) -> Any:
        """The smaller number; equal operands share the derivative, as for fmax."""
        return jnp.where(jnp.isnan(a), b, jnp.where(jnp.isnan(b), a, jnp.minimum(a, b)))

    @staticmethod
    def sinc(x: Any) -> Any:
        """sin(pi * x) / (pi * x), by a power series near 0, where JAX's derivatives lose up to half of their digits."""
        near = jnp.abs(x) < 0.5
        square = jnp.where(near, jnp.pi * x, 0.0) ** 2
        series = sum((-1.0) ** k / math.factorial(2 * k + 1) * square**k for k in range(14))
        return jnp.where(near, series, jnp.sinc(jnp.where(near, 1.0, x)))

    @staticmethod
    def atanh(x: Any) -> Any:
        """Half of log((1 + x) / (1 - x)) by log1p; JAX's atanh has errors of dozens of units in the last place."""
        size = jnp.abs(x)
        return (
            jnp.copysign(0.5 * jnp.log1p(2.0 * size / (1.0 - size)), x)
            if x.dtype.kind == "f"
            else jnp.arctanh(x)
        )

    @staticmethod
    def topk(x: Any, k: int) -> Any:
        """The k largest elements along the last axis, and their indices; JAX regards a negative NaN as the smallest."""
        return jax.lax.top_k(jnp.where(jnp.isnan(x), jnp.nan, x) if x.dtype.kind == "f" else x, k)

    @staticmethod
    def sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
        """A sort that is stable in both directions, which matters for derivatives of equal elements."""
        if not descending:
            return jnp.sort(x, axis=axis)
        return jnp.take_along_axis(x, jnp.argsort(x, axis=axis, descending=True, stable=True), axis=axis)

    @staticmethod
    def quantile(x: Any, q: Any, axis: Any = None) -> Any:
        """One quantile, or several for a list."""
        return jnp.quantile(x, jnp.asarray(q, x.dtype), axis)

    @staticmethod
    def percentile(x: Any, q: Any, axis: Any = None) -> Any:
        """One percentile, or several for a list."""
        return jnp.percentile(x, jnp.asarray(q, x.dtype), axis)

    @staticmethod
    def unstack(x: Any, axis: int = 0) -> Any:
        """The slices along an axis."""
        return tuple(jnp.moveaxis(x, axis, 0))

    @staticmethod
    def checkpoint(f: Any) -> Any:
        """f with intermediate values recomputed in the backward pass."""
        return jax.checkpoint(f)

    @staticmethod
    def stop_gradient(x: Any) -> Any:
        """x, which derivatives treat as a constant."""
        return jax.lax.stop_gradient(x)


NAMES = JaxNames()
