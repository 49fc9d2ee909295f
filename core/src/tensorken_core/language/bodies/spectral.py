"""Bodies, and a rule, that go through the singular values."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies.matrices import (
    as_row,
    column_indices,
    diagonal,
    diagonal_matrix,
    product,
    row_indices,
)
from tensorken_core.language.op import OPS

Tensor = Any


def pinv(x: Tensor, rtol: Tensor) -> Tensor:
    if 0 in x.shape[-2:]:
        return x.mT
    left, values, right = x.apply(OPS["svd"], False)
    kept = values > values.max(-1, keepdims=True) * rtol.reshape((*rtol.shape, 1))
    inverse = kept.where(1.0 / kept.where(values, 1.0), values * 0.0)  # NaN stays
    return (right.mT * as_row(inverse)) @ left.mT


def cofactors(x: Tensor) -> Tensor:
    """The cofactors of the diagonal matrix of singular values, turned by the singular vectors.

    Each is a product of all values but one, so none is divided by, and the result is right for singular matrices.
    """
    left, values, right = x.apply(OPS["svd"], False)
    n = values.shape[-1]
    others = row_indices(x, n).eq(column_indices(x, n)).where(1.0, as_row(values))
    return _orientation(left, right) * ((left * as_row(product(others))) @ right)


def cofactors_derivative(t: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The derivative of the cofactors along t; as the second derivative of the determinant it is symmetric.

    In the coordinates of the singular vectors: row i, column j has minus element (j, i) of the direction times all
    values but i and j; the diagonal has the sum of the other diagonal elements, each times all values but those two.
    """
    left, values, right = x.apply(OPS["svd"], False)
    n = values.shape[-1]
    place = x.constant(range(n), row_indices(x, n).dtype, (n,))
    first, second = place.reshape((n, 1, 1)), place.reshape((n, 1))
    others = first.eq(place).where(1.0, second.eq(place).where(1.0, as_row(as_row(values))))
    weights = row_indices(x, n).eq(column_indices(x, n)).where(0.0, product(others))
    turned = (left.mT @ t) @ right.mT
    bent = diagonal_matrix((weights * as_row(diagonal(turned))).sum(-1)) - weights * turned.mT
    return _orientation(left, right) * ((left @ bent) @ right)


def _orientation(left: Tensor, right: Tensor) -> Tensor:
    """The determinant of the two orthogonal factors together: 1 or -1."""
    sign = (left.apply(OPS["det"]) * right.apply(OPS["det"])).sign()
    return sign.reshape((*sign.shape, 1, 1))
