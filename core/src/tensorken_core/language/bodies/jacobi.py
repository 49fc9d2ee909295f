"""Bodies by rotations: eigenvalues and singular values after C. G. J. Jacobi, all matrices of a batch at once.

A sweep rotates every pair of columns once, in rounds of n / 2 pairs without a common column, so that a round is a few
ops on whole matrices.  The number of sweeps is fixed, since the values that would tell when to stop may not be known;
convergence is quadratic, so a few sweeps more than are usually needed cost little and settle all cases.  All rounds are
the same ops on the same shapes, with other columns for partners, so they are the steps of a loop.

G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, 2013, sections 8.5 and 8.6.3.
"""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies.arrangement import take_along
from tensorken_core.language.bodies.matrices import (
    EPSILON,
    as_column,
    as_row,
    columns,
    diagonal,
    from_lower,
    identity,
    rows,
    scale_of,
)
from tensorken_core.language.dtypes import float64, int32
from tensorken_core.language.op import OPS

Tensor = Any


def sweep_count(n: int, dtype: Any) -> int:
    """How many sweeps leave nothing to rotate: about log2(n) and a few more for the digits of the dtype."""
    return n.bit_length() + (10 if dtype is float64 else 7) if n > 1 else 0


def round_robin(n: int) -> list[list[int]]:
    """Each column's partner, itself if it rests, in each round of a tournament in which every two meet once.

    >>> round_robin(4)
    [[3, 2, 1, 0], [2, 3, 0, 1], [1, 0, 3, 2]]
    """
    size = n + n % 2
    ring, found = list(range(size)), []
    for _ in range(size - 1):
        partner = list(range(n))
        for p, q in zip(ring[: size // 2], ring[: size // 2 - 1 : -1], strict=True):
            if p < n and q < n:
                partner[p], partner[q] = q, p
        found.append(partner)
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return found


def rotation(own: Tensor, product: Tensor, partner: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and signed tangent of the smaller of the angles that bring the product of two columns to zero.

    Each column becomes cosine * (itself - tangent * its partner).  The partner's tangent is the opposite, which between
    equal columns `side` decides: 1 for one of the two, -1 for the other, 0 for a column that rests.  They must agree to
    the last bit, or else the columns are not rotated but sheared; so both take the sum of what each has as the product.
    """
    axis = own.ndim - 1
    twice = product + product.gather(partner, axis)
    other = own.gather(partner, axis)
    orthogonal = own.abs().sqrt() * other.abs().sqrt() * EPSILON[own.dtype]
    idle = twice.abs() <= orthogonal
    slope = (other - own) / idle.where(1.0, twice)
    direction = (slope > 0.0).where(1.0, (slope < 0.0).where(-1.0, side))
    tangent = idle.where(0.0, direction / (slope.abs() + slope.apply(OPS["hypot"], slope.ones_like())))
    return 1.0 / tangent.apply(OPS["hypot"], tangent.ones_like()), tangent


def round_inputs(x: Tensor, n: int) -> list[tuple[Tensor, Tensor]]:
    """For each round of a sweep the partners, and which side of its pair each column is on."""
    found = []
    for partner in round_robin(n):
        side = [0.0 if p == i else 1.0 if i < p else -1.0 for i, p in enumerate(partner)]
        found.append((x.constant(partner, int32, (n,)), x.constant(side, x.dtype, (n,))))
    return found


def take_columns(x: Tensor, places: Tensor) -> Tensor:
    """The columns of x at these places, which each matrix has for itself."""
    everywhere = as_row(places).broadcast_to(x.shape[:-1] + places.shape[-1:])
    return take_along(x, everywhere, x.ndim - 1)


def eigh(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rotations from both sides make the symmetric matrix diagonal; their product is the eigenvectors."""
    n, last = x.shape[-1], x.ndim - 1
    number = x.constant(range(n), int32, (n, 1))
    steps = [(partner, side, number.eq(partner.reshape((1, n)))) for partner, side in round_inputs(x, n)]
    start = (from_lower(x), identity(x, n, n))
    (matrix, vectors), _ = x.interpreter.loop(_eigh_round, start, steps * sweep_count(n, x.dtype))
    values = diagonal(matrix)
    places = values.apply(OPS["argsort"], last - 1)
    return take_along(values, places, last - 1), take_columns(vectors, places)


def _eigh_round(
    matrix: Tensor, vectors: Tensor, partner: Tensor, side: Tensor, is_partner: Tensor
) -> tuple[Tensor, Tensor]:
    n, last = matrix.shape[-1], matrix.ndim - 1
    own = diagonal(matrix)
    product = is_partner.where(matrix, 0.0).sum(-2)
    cosine, tangent = rotation(own, product, partner, side)
    both = matrix.concatenate(vectors, axis=-2)
    both = as_row(cosine) * (both - as_row(tangent) * both.gather(partner, last))
    matrix, vectors = rows(both, 0, n), rows(both, n, 2 * n)
    matrix = as_column(cosine) * (matrix - as_column(tangent) * matrix.gather(partner, last - 1))
    return matrix, vectors


def eigvalsh(x: Tensor) -> Tensor:
    return x.apply(OPS["eigh"])[0]


def svd(x: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Rotations from the right make the columns orthogonal; their lengths are the singular values.

    M. R. Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958.  The left vectors are the
    Q of the result, in the order of descending lengths, so that they are orthonormal where a length is zero, too, and
    complete if need be.  A matrix with more rows than columns is first reduced to its R.
    """
    m, n = x.shape[-2:]
    if m < n:
        left, values, right = svd(x.mT, full_matrices)
        return right.mT, values, left.mT
    if m > n:
        basis, upper = x.apply(OPS["qr"], full_matrices)
        left, values, right = svd(rows(upper, 0, n), False)
        inside = columns(basis, 0, n) @ left
        return inside.concatenate(columns(basis, n, m), axis=-1) if full_matrices else inside, values, right
    last = x.ndim - 1
    if n == 0:
        return x, x.sum(-1), x
    scale = scale_of(x, (last - 1, last))  # no square overflows
    both = (x / scale).concatenate(identity(x, n, n), axis=-2)
    (both,), _ = x.interpreter.loop(_svd_round, (both,), round_inputs(x, n) * sweep_count(n, x.dtype))
    lengths = rows(both, 0, n).apply(OPS["norm"], (last - 1,)).reshape(x.shape[:-1])
    places = (-lengths).apply(OPS["argsort"], last - 1)
    both = take_columns(both, places)
    left, upper = rows(both, 0, n).apply(OPS["qr"], False)
    sign = (diagonal(upper) < 0.0).where(-1.0, 1.0)
    values = take_along(lengths, places, last - 1) * scale.reshape((*scale.shape[:-2], 1))
    return left * as_row(sign), values, rows(both, n, 2 * n).mT


def _svd_round(both: Tensor, partner: Tensor, side: Tensor) -> tuple[Tensor]:
    n, last = both.shape[-1], both.ndim - 1
    other = both.gather(partner, last)
    top, top_other = rows(both, 0, n), rows(other, 0, n)
    own = (top * top).sum(-2)
    cosine, tangent = rotation(own, (top * top_other).sum(-2), partner, side)
    return (as_row(cosine) * (both - as_row(tangent) * other),)


def svdvals(x: Tensor) -> Tensor:
    return x.apply(OPS["svd"], False)[1]
