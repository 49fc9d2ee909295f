"""Bodies and a derivative rule that use the singular value decomposition."""

from __future__ import annotations

from typing import Any

from tensorken.ops.matrices import (
    adjoint,
    as_row,
    column_indices,
    conjugate,
    diagonal,
    diagonal_matrix,
    product,
    row_indices,
)
from tensorken_core.language.op import OPS

Tensor = Any


def pinv(x: Tensor, rtol: Tensor) -> Tensor:
    if 0 in x.shape[-2:]:
        return adjoint(x)
    left, values, right = x.apply(OPS["svd"], False)
    kept = values > values.max(-1, keepdims=True) * rtol.reshape((*rtol.shape, 1))
    inverse = kept.where(1.0 / kept.where(values, 1.0), values * 0.0)  # NaN propagates
    return (adjoint(right) * as_row(inverse)) @ adjoint(left)


def cofactors(x: Tensor) -> Tensor:
    """The cofactors of the diagonal matrix of singular values, multiplied by the singular vectors on both sides.

    Each cofactor is the product of all singular values but one.  There is no division by a singular value, so the
    result is correct for singular matrices.
    """
    left, values, right = x.apply(OPS["svd"], False)
    n = values.shape[-1]
    others = row_indices(x, n).eq(column_indices(x, n)).where(1.0, as_row(values))
    return _orientation(left, right) * conjugate((left * as_row(product(others))) @ right)


def cofactors_derivative(t: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The derivative of the cofactors along t; it is the second derivative of det, so it is symmetric.

    Let s be the singular values and u = U.H @ t @ V.  In the basis of the singular vectors, element (i, j) for i != j
    is -u[j, i] times the product of all s but s[i] and s[j]; element (i, i) is the sum over j != i of u[j, j] times
    the product of all s but s[i] and s[j].
    """
    left, values, right = x.apply(OPS["svd"], False)
    n = values.shape[-1]
    index = x.constant(range(n), row_indices(x, n).dtype, (n,))
    first, second = index.reshape((n, 1, 1)), index.reshape((n, 1))
    others = first.eq(index).where(1.0, second.eq(index).where(1.0, as_row(as_row(values))))
    weights = row_indices(x, n).eq(column_indices(x, n)).where(0.0, product(others))
    inner = (adjoint(left) @ t) @ adjoint(right)
    adjusted = diagonal_matrix((weights * as_row(diagonal(inner))).sum(-1)) - weights * inner.mT
    return _orientation(left, right) * (conjugate(left) @ adjusted @ conjugate(right))


def _orientation(left: Tensor, right: Tensor) -> Tensor:
    """The determinant of the product of the two unitary factors, of modulus 1."""
    sign = (left.apply(OPS["det"]) * right.apply(OPS["det"])).sign()
    return sign.reshape((*sign.shape, 1, 1))
