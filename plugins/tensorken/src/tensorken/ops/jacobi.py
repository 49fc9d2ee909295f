"""Bodies of eigh and svd by Jacobi rotations, for all matrices of a batch at once, of real and of complex numbers.

A sweep rotates every pair of columns once.  It consists of rounds of n / 2 disjoint pairs, so a round is a few ops on
full matrices.  The number of sweeps is fixed, since a test for convergence would need known values.  Convergence is
quadratic, so the fixed number, a few more than are usually needed, costs little and suffices for all matrices.  All
rounds are the same ops on the same shapes and differ only in the pairs, so they run as the steps of a loop.

G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, 2013, sections 8.5 and 8.6.3.
"""

from __future__ import annotations

from typing import Any

from tensorken.ops.matrices import (
    EPSILON,
    adjoint,
    as_column,
    as_row,
    columns,
    conjugate,
    diagonal,
    from_lower,
    identity,
    is_complex,
    phase,
    real_part,
    rows,
    square_of_modulus,
)
from tensorken.ops.steps import loop
from tensorken_core.language.bodies.arrangement import take_along
from tensorken_core.language.bodies.norms import scale_of
from tensorken_core.language.dtypes import float64, int32
from tensorken_core.language.op import OPS

Tensor = Any


def sweep_count(n: int, dtype: Any) -> int:
    """The number of sweeps after which no pair needs a rotation: about log2(n), plus a few that depend on the dtype."""
    return n.bit_length() + (10 if dtype is float64 else 7) if n > 1 else 0


def round_robin(n: int) -> list[list[int]]:
    """For each round of a round-robin schedule the partner of each column; an unpaired column is its own partner.

    >>> round_robin(4)
    [[3, 2, 1, 0], [2, 3, 0, 1], [1, 0, 3, 2]]
    """
    size = n + n % 2
    ring, rounds = list(range(size)), []
    for _ in range(size - 1):
        partner = list(range(n))
        for p, q in zip(ring[: size // 2], ring[: size // 2 - 1 : -1], strict=True):
            if p < n and q < n:
                partner[p], partner[q] = q, p
        rounds.append(partner)
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds


def rotation(squares: Tensor, product: Tensor, partner: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """The cosine and signed tangent of the smaller angle that makes two columns orthogonal.

    Each column becomes cosine * (column - tangent * partner).  If the inner products are complex, so are the tangents:
    the partner is multiplied by the phase that makes the inner product real, and positive.  The tangents of a pair have
    opposite signs; for equal squares `side` decides the sign: 1 for one column of a pair, -1 for the other, 0 for an
    unpaired column.  The two tangents must agree in every bit, or the pair would be sheared instead of rotated; so both
    use the sum of the two products, which may differ by rounding.

    Args:
        squares: the squared length of each column (for eigh the element on the diagonal).
        product: the inner product of each column's partner with it (for eigh the element in their row and column).
        partner: the index of each column's partner.
        side: 1, -1 or 0, which decides the sign of the tangent for equal squares.
    """
    axis = squares.ndim - 1
    both = product + conjugate(product.gather(partner, axis))
    twice = both.abs() if is_complex(both) else both
    other = squares.gather(partner, axis)
    orthogonal = squares.abs().sqrt() * other.abs().sqrt() * EPSILON[squares.dtype]
    idle = twice.abs() <= orthogonal
    slope = (other - squares) / idle.where(1.0, twice)
    direction = (slope > 0.0).where(1.0, (slope < 0.0).where(-1.0, side))
    tangent = idle.where(0.0, direction / (slope.abs() + slope.apply(OPS["hypot"], slope.ones_like())))
    cosine = 1.0 / tangent.apply(OPS["hypot"], tangent.ones_like())
    return cosine, tangent * phase(both) if is_complex(both) else tangent


def round_inputs(x: Tensor, n: int) -> list[tuple[Tensor, Tensor]]:
    """For each round of a sweep the partner of each column, and its `side`; see `rotation`."""
    inputs = []
    for partner in round_robin(n):
        side = [0.0 if p == i else 1.0 if i < p else -1.0 for i, p in enumerate(partner)]
        inputs.append(
            (x.constant(partner, int32, (n,)), real_part(x).constant(side, real_part(x).dtype, (n,)))
        )
    return inputs


def take_columns(x: Tensor, indices: Tensor) -> Tensor:
    """The columns of each matrix of x at the indices for that matrix."""
    broadcast = as_row(indices).broadcast_to(x.shape[:-1] + indices.shape[-1:])
    return take_along(x, broadcast, x.ndim - 1)


def eigh(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rotations from both sides make the Hermitian matrix diagonal; the eigenvectors are their product."""
    n, last = x.shape[-1], x.ndim - 1
    if n == 0:
        return real_part(x.sum(-1)), x
    number = x.constant(range(n), int32, (n, 1))
    steps = [(partner, side, number.eq(partner.reshape((1, n)))) for partner, side in round_inputs(x, n)]
    hermitian = from_lower(x)
    scale = scale_of(hermitian, (last - 1, last))  # so that no sum of two elements overflows
    start = (hermitian / scale, identity(x, n, n))
    (matrix, vectors), _ = loop(_eigh_round, start, steps * sweep_count(n, x.dtype))
    values = real_part(diagonal(matrix)) * scale.reshape((*scale.shape[:-2], 1))
    order = values.apply(OPS["argsort"], last - 1)
    return take_along(values, order, last - 1), take_columns(vectors, order)


def _eigh_round(
    matrix: Tensor, vectors: Tensor, partner: Tensor, side: Tensor, is_partner: Tensor
) -> tuple[Tensor, Tensor]:
    n, last = matrix.shape[-1], matrix.ndim - 1
    squares = real_part(diagonal(matrix))
    product = is_partner.where(matrix, 0.0).sum(-2)
    cosine, tangent = rotation(squares, product, partner, side)
    both = matrix.concatenate(vectors, axis=-2)
    both = as_row(cosine) * (both - as_row(tangent) * both.gather(partner, last))
    matrix, vectors = rows(both, 0, n), rows(both, n, 2 * n)
    matrix = as_column(cosine) * (matrix - as_column(conjugate(tangent)) * matrix.gather(partner, last - 1))
    return matrix, vectors


def eigvalsh(x: Tensor) -> Tensor:
    return x.apply(OPS["eigh"])[0]


def svd(x: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """One-sided Jacobi: rotations from the right make the columns orthogonal; their lengths are the singular values.

    M. R. Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958.  The columns are sorted
    by descending length, and the left vectors are the Q of their QR decomposition: orthonormal even where a length is
    0.  A matrix with more rows than columns is reduced to its R first, whose Q also completes the left vectors.
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
        return x, real_part(x.sum(-1)), x
    scale = scale_of(x, (last - 1, last))  # so that no square overflows
    both = (x / scale).concatenate(identity(x, n, n), axis=-2)
    (both,), _ = loop(_svd_round, (both,), round_inputs(x, n) * sweep_count(n, x.dtype))
    lengths = rows(both, 0, n).apply(OPS["norm"], (last - 1,)).reshape(x.shape[:-1])
    order = (-lengths).apply(OPS["argsort"], last - 1)
    both = take_columns(both, order)
    left, upper = rows(both, 0, n).apply(OPS["qr"], False)
    sign = phase(real_part(diagonal(upper)))
    values = take_along(lengths, order, last - 1) * scale.reshape((*scale.shape[:-2], 1))
    return left * as_row(sign), values, adjoint(rows(both, n, 2 * n))


def _svd_round(both: Tensor, partner: Tensor, side: Tensor) -> tuple[Tensor]:
    n, last = both.shape[-1], both.ndim - 1
    other = both.gather(partner, last)
    top, top_other = rows(both, 0, n), rows(other, 0, n)
    squares = square_of_modulus(top).sum(-2)
    cosine, tangent = rotation(squares, (conjugate(top_other) * top).sum(-2), partner, side)
    return (as_row(cosine) * (both - as_row(tangent) * other),)


def svdvals(x: Tensor) -> Tensor:
    return x.apply(OPS["svd"], False)[1]
