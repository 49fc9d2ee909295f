"""Checks of factors of a matrix: Cholesky, QR, eigenvalues and eigenvectors, singular values and vectors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tensorken_conformance.laws.factorizations import facts
from tensorken_conformance.laws.factorizations.residuals import (
    Given,
    demand,
    elementwise,
    orthonormal,
    root,
    small,
)
from tensorken_conformance.oracles.bounds import Array, Dyadic


def symmetric(a: Array) -> Array:
    """The symmetric matrix with this lower triangle."""
    return np.tril(a) + np.tril(a, -1).T


def lower_triangle(a: Array) -> Array:
    """The lower triangle; elements above it may be NaN."""
    return np.where(np.tri(*a.shape) == 1, a, 0).astype(a.dtype)


def cholesky(given: Given) -> float:
    """L is lower triangular with a positive diagonal, and |A - L @ L.T| <= gamma_{n+2} |L| @ |L.T|.

    Higham, theorem 10.3, where one rounding more is for a quotient as the product with a reciprocal.
    """
    a, (factor,) = symmetric(lower_triangle(given.operands[0])), given.got
    demand(np.triu(factor, 1) == 0, "zeros above the diagonal of L", factor)
    demand(np.diagonal(factor) > 0, "a positive diagonal of L", factor)
    exact = Dyadic.of(factor)
    residual = Dyadic.of(a) - (exact @ exact.T)
    size = abs(exact)
    return elementwise(given, "L @ L.T = A", residual, given.gamma(len(a) + 2), size @ size.T, factor)


def qr(given: Given) -> float:
    """R is upper triangular, Q has orthonormal columns, and each column of Q @ R is that of A.

    Higham, theorem 19.4 and (19.13): A + dA = P @ R for an exactly orthogonal P, with norms of dA and Q - P of at most
    gamma~_mn times that of each column of A, and gamma~_mn times the root of n.
    """
    (a,), (q, r) = given.operands, given.got
    (m, n), width = a.shape, q.shape[1]
    bound = given.turned(m * n)
    demand(np.tril(r, -1) == 0, "zeros below the diagonal of R", r)
    deviation = root(width) * bound
    worst = orthonormal(given, "the columns of Q", q, deviation)
    residual, exact = Dyadic.of(a) - (Dyadic.of(q) @ Dyadic.of(r)), Dyadic.of(a)
    for j in range(n):
        coefficient = bound + deviation * (1 + bound)
        says = f"Q @ R = A in column {j}"
        worst = max(worst, small(given, says, residual[:, j], coefficient, exact[:, j], r))
    return worst


def eigh(given: Given) -> float:
    """The values ascend, V has orthonormal columns, and A @ V = V * values.

    For n * n elements of reflections and rotations (Higham, lemma 19.3; E. Anderson et al., LAPACK Users' Guide,
    section 4.7): A + dA = P @ diag(values) @ P.T for an exactly orthogonal P, both as near as in the QR factorization.
    """
    a, (values, vectors) = symmetric(lower_triangle(given.operands[0])), given.got
    n = len(a)
    bound = given.turned(n * n)
    demand(np.diff(values) >= 0, "ascending values", values)
    deviation = root(n) * bound
    worst = orthonormal(given, "the columns of V", vectors, deviation)
    exact, turned = Dyadic.of(a), Dyadic.of(vectors)
    residual = (exact @ turned) - turned * Dyadic.of(values)
    return max(worst, small(given, "A @ V = V * values", residual, _turned(bound, deviation), exact, values))


def _turned(bound: Fraction, deviation: Fraction) -> Fraction:
    """The error of the product from an error in A and deviations of the factors on both sides."""
    return (1 + bound) * (1 + deviation) ** 2 - 1


def eigvalsh(given: Given) -> float:
    """The values ascend, and the error of each is at most the backward error (H. Weyl's theorem)."""
    a, (values,) = symmetric(lower_triangle(given.operands[0])), given.got
    demand(np.diff(values) >= 0, "ascending values", values)
    true = given.fact(lambda a: facts.eigenvalues(symmetric(lower_triangle(a))))
    return _near(given, "eigenvalues", a, values, true, len(a) ** 2)


def _near(given: Given, says: str, a: Array, got: Array, true: list[float], count: int) -> float:
    """Require values to equal the true ones within the backward error."""
    exact, unit = Dyadic.of(a), 2 * given.arithmetic.format.unit
    norm = float((exact * exact).sum().fraction()) ** 0.5
    if not got.size:
        return 0.0
    off = np.max(np.abs(got.astype(np.float64) - np.array(true))) / norm if norm else np.max(np.abs(got))
    ulp, allowed = float(off / unit), float(given.turned(count) / unit)
    demand(ulp <= allowed, f"{says} {true} to {allowed:.3g} units in the last place of the norm", got, ulp)
    return ulp


def svd(given: Given) -> float:
    """The values descend and are not negative, U and Vh are orthonormal, and (U * values) @ Vh = A.

    As for eigenvalues: m n elements of reflections from the left, n n of reflections and rotations from the right.
    """
    (a,), (left, values, right) = given.operands, given.got
    least = min(a.shape)
    bound = given.turned(a.size + least**2)
    demand(np.append(np.diff(values) <= 0, values >= 0), "descending values, none of them negative", values)
    deviation = root(max(left.shape[1], right.shape[0])) * bound
    worst = orthonormal(given, "the columns of U", left, deviation)
    worst = max(worst, orthonormal(given, "the rows of Vh", right.T, deviation))
    scaled = Dyadic.of(left[:, :least]) * Dyadic.of(values)
    exact = Dyadic.of(a)
    residual = exact - (scaled @ Dyadic.of(right[:least]))
    return max(worst, small(given, "(U * S) @ Vh = A", residual, _turned(bound, deviation), exact, values))


def svdvals(given: Given) -> float:
    """The values descend, are not negative, and the error of each is at most the backward error (Weyl)."""
    (a,), (values,) = given.operands, given.got
    demand(np.append(np.diff(values) <= 0, values >= 0), "descending values, none of them negative", values)
    count = a.size + min(a.shape) ** 2
    return _near(given, "singular values", a, values, given.fact(facts.singular_values), count)
