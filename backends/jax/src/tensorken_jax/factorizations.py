"""The ops on matrices, by the library that XLA calls on each device.  A matrix without a result gives NaN."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

Array = Any


def solve(a: Array, b: Array) -> Array:
    """The x with a @ x = b."""
    factors, _, permutation = lax.linalg.lu(a)
    rows = jnp.take_along_axis(b, permutation[..., None], -2)
    x = _substituted(_substituted(rows, factors, lower=True, unit=True), factors, lower=False)
    return _where(_has_zero_pivot(factors), jnp.nan, x)


def inv(x: Array) -> Array:
    """The inverse."""
    return solve(x, jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))


def triangular_solve(a: Array, b: Array, lower: bool) -> Array:
    """The x with a @ x = b for triangular a."""
    return _where(_has_zero_pivot(a), jnp.nan, _substituted(b, a, lower=lower))


def det(x: Array) -> Array:
    """The determinant."""
    factors, pivots, _ = lax.linalg.lu(x)
    return _parity(pivots, x.dtype) * jnp.prod(_diagonal(factors), -1)


def slogdet(x: Array) -> tuple[Array, Array]:
    """The determinant's sign, or its phase if it is complex, and the logarithm of its modulus."""
    factors, pivots, _ = lax.linalg.lu(x)
    diagonal = _diagonal(factors)
    sign = _parity(pivots, x.dtype) * jnp.prod(jnp.sign(diagonal), -1)
    return sign, jnp.sum(jnp.log(jnp.abs(diagonal)), -1)


def cholesky(x: Array) -> Array:
    """The lower factor; the operand's upper triangle is not read."""
    factor = lax.linalg.cholesky(_lower(x), symmetrize_input=False)
    return _where(jnp.isnan(factor).any((-2, -1)), jnp.nan, factor)


def qr(x: Array, complete: bool) -> Any:
    """Q and R."""
    return tuple(lax.linalg.qr(x, full_matrices=complete))


def eigh(x: Array) -> tuple[Array, Array]:
    """The eigenvalues in ascending order, and the eigenvectors; the operand's upper triangle is not read."""
    vectors, values = lax.linalg.eigh(_lower(x), lower=True, symmetrize_input=False)
    return values, vectors


def eigvalsh(x: Array) -> Array:
    """The eigenvalues in ascending order."""
    return eigh(x)[0]


def svd(x: Array, full_matrices: bool) -> Any:
    """U, the singular values in descending order, and the adjoint of V."""
    return tuple(lax.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Array) -> Array:
    """The singular values in descending order."""
    return lax.linalg.svd(x, compute_uv=False)


OPERANDS = {"solve": 2, "triangular_solve": 2}
"""The number of operands, where it is not 1."""


def op(name: str) -> Callable[..., Any]:
    """The function of an op; that of a complex op has operands and results in parts."""
    real = name.removeprefix("complex_")
    function: Callable[..., Any] = globals()[real]
    return function if real == name else _of_parts(function, OPERANDS.get(real, 1))


def ops(names: str) -> list[Callable[..., Any]]:
    """The functions of these ops, in order."""
    return [op(name) for name in names.split()]


def _of_parts(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function with each of its `count` complex operands, and complex results, as a real and an imaginary part."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        operands = [lax.complex(*args[2 * i : 2 * i + 2]) for i in range(count)]
        results = function(*operands, *args[2 * count :])
        parts = [
            part
            for y in (results if isinstance(results, tuple) else (results,))
            for part in ((y.real, y.imag) if jnp.iscomplexobj(y) else (y,))
        ]
        return tuple(parts) if len(parts) > 1 else parts[0]

    return call


def _substituted(b: Array, a: Array, *, lower: bool, unit: bool = False) -> Array:
    """The x with a @ x = b, reading one triangle of a; with `unit` its diagonal is 1."""
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, unit_diagonal=unit)


def _diagonal(x: Array) -> Array:
    return jnp.diagonal(x, 0, -2, -1)


def _has_zero_pivot(x: Array) -> Array:
    return jnp.any(_diagonal(x) == 0, -1)


def _where(condition: Array, value: float, x: Array) -> Array:
    """The value in each matrix of which the condition holds."""
    return jnp.where(condition[..., None, None], jnp.asarray(value, x.dtype), x)


def _parity(pivots: Array, dtype: Any) -> Array:
    """1 if the exchanges of rows are even in number, else -1."""
    odd = jnp.sum(pivots != jnp.arange(pivots.shape[-1]), -1) % 2 == 1
    return jnp.where(odd, -1, 1).astype(dtype)


def _lower(x: Array) -> Array:
    """The lower triangle, without imaginary parts on the diagonal; all NaN if an element of it is not finite."""
    lower = jnp.tril(x)
    if jnp.iscomplexobj(x):
        lower = jnp.where(jnp.eye(x.shape[-1], dtype=bool), lower.real.astype(x.dtype), lower)
    return _where(~jnp.isfinite(lower).all((-2, -1)), jnp.nan, lower)
