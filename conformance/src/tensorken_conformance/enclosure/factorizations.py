"""Enclosures of ops on matrices: bounds of results from the backward error of the method.

A backward stable method returns the exact result of a matrix near the given one.  The distance is known: for
elimination with partial pivoting from theorem 9.4 of N. J. Higham, "Accuracy and Stability of Numerical Algorithms",
2nd edition, 2002, with the largest growth of pivots; for eigenvalues and singular values from section 4 of the LAPACK
Users' Guide, with a factor that grows modestly with the size.  The widths of the operands' intervals are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.enclosure.arithmetic import Rule
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import (
    PRECISION,
    Array,
    Interval,
    around,
    chosen,
    exactly,
    no_nan,
    rounded,
    where_known,
)
from tensorken_core.language.dtypes import DType


def _middle(x: Interval) -> tuple[Array, Array, Array]:
    """The midpoints of the intervals, half their widths, and whether each matrix is finite."""
    finite = np.logical_and.reduce(x.finite, (-2, -1))
    low, high = np.where(x.finite, x.low, 1.0), np.where(x.finite, x.high, 1.0)
    middle = low / 2 + high / 2
    radius = np.maximum(high - middle, middle - low)
    return middle, np.where(x.low == x.high, 0.0, radius * (1 + 2.0**-50)), finite


def _unit(errors: Errors, dtype: DType) -> float:
    """The relative error of an operation, including that of computing midpoints in float64."""
    return errors.unit(dtype) + PRECISION["float64"]


def _sized(x: Array) -> Array:
    """The infinity norm of each matrix."""
    return np.abs(x).sum(-1).max(-1, initial=0.0)[..., None, None]  # type: ignore[no-any-return]


def _eliminated(errors: Errors, middle: Array, radius: Array, dtype: DType) -> Array:
    """The distance of each element of the matrix from the given one."""
    n = middle.shape[-1]
    unit = 3 * n * _unit(errors, dtype)
    share = n * n * 2.0 ** (n - 1) * unit / max(1.0 - unit, 2.0**-10)
    return np.asarray(radius + share * _sized(middle))


def _inverse(x: Array) -> tuple[Array, Array]:
    """The inverses, and the matrices without a known one."""
    try:
        y = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        y = np.full(x.shape, np.nan)
        for place in np.ndindex(x.shape[:-2]):
            try:
                y[place] = np.linalg.inv(x[place])
            except np.linalg.LinAlgError:
                continue
    singular: Array = ~np.logical_and.reduce(np.isfinite(y), (-2, -1))
    return np.where(singular[..., None, None], 0.0, y), singular


def _around(middle: Array, slack: Array, known: Array, dtype: DType) -> Interval:
    """The interval `middle` plus or minus `slack`, if it is known and finite."""
    known = known & np.isfinite(middle).all((-2, -1)) & np.isfinite(slack).all((-2, -1))
    return around(middle, slack, known, dtype)


def solve(errors: Errors, a: Interval, b: Interval) -> Interval:
    """x with (a + E) x = b + e is x0 + (1 - R E)**-1 R (e - E x0) for R the inverse of a and x0 = R b."""
    if 0 in a.shape or 0 in b.shape:
        return exactly(np.zeros(b.shape), b.dtype)
    (p, e, finite), (q, f, right) = _middle(a), _middle(b)
    inverse, singular = _inverse(p)
    e = _eliminated(errors, p, e, a.dtype)
    x = np.matmul(inverse, q)
    size = np.abs(inverse)
    drift = np.matmul(size, np.matmul(e, np.abs(x)) + f + np.abs(q) * 2.0**-50)
    share = _sized(np.matmul(size, e))
    slack = drift + share / np.where(share < 1, 1 - share, 1.0) * drift.max((-2, -1), keepdims=True)
    known = finite & right & ~singular & (share < 0.9).reshape(finite.shape)
    return _around(x, slack, known, b.dtype)


def triangular_solve(errors: Errors, a: Interval, b: Interval, lower: bool) -> Interval:
    """The system of one triangle."""
    triangle = np.tril if lower else np.triu
    return solve(errors, Interval(triangle(a.low), triangle(a.high), triangle(a.maybe_nan), a.dtype), b)


def inv(errors: Errors, x: Interval) -> Interval:
    """The solution with the identity matrix as right-hand side."""
    identity = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    return solve(errors, x, exactly(identity, x.dtype))


def _determinant(errors: Errors, x: Interval) -> tuple[Array, Array, Array, Array]:
    """Sign and logarithm of determinants, how far the latter may be off, and where that is known.

    det(a + E) / det(a) = det(1 + R E), whose eigenvalues differ from 1 by less than the norm of R E.
    """
    n = x.shape[-1]
    middle, radius, finite = _middle(x)
    inverse, singular = _inverse(middle)
    share = _sized(np.matmul(np.abs(inverse), _eliminated(errors, middle, radius, x.dtype)))[..., 0, 0]
    sign, size = np.linalg.slogdet(middle)
    known = finite & ~singular & (share < 0.9)
    return sign, size, np.where(known, -n * np.log1p(-np.where(known, share, 0.0)), np.inf), known


def det(errors: Errors, x: Interval) -> Interval:
    """A bound from the condition number; if that is large, the product of the lengths of rows (Hadamard)."""
    shape = x.shape[:-2]
    if x.shape[-1] == 0:
        return exactly(np.ones(shape), x.dtype)
    sign, size, slack, known = _determinant(errors, x)
    slack = slack + float(errors.gamma(2 * x.shape[-1], x.dtype)) + 2.0**-40
    ends = sign * np.exp(size - slack), sign * np.exp(size + slack)
    largest = np.maximum(np.abs(x.low), np.abs(x.high))
    bound = np.sqrt((largest**2).sum(-1)).prod(-1) * (1.0 + 2.0 ** x.shape[-1] * 64 * errors.unit(x.dtype))
    low = np.where(known, np.minimum(*ends), -bound)
    high = np.where(known, np.maximum(*ends), bound)
    return where_known(np.isfinite(low) & np.isfinite(high), rounded(low, high, no_nan(low), x.dtype, 1))


def slogdet(errors: Errors, x: Interval) -> tuple[Interval, Interval]:
    """The sign is known if the determinant cannot be zero."""
    shape = x.shape[:-2]
    n = x.shape[-1]
    if n == 0:
        return exactly(np.ones(shape), x.dtype), exactly(np.zeros(shape), x.dtype)
    sign, size, slack, known = _determinant(errors, x)
    longest = np.log(np.maximum(np.abs(x.low), np.abs(x.high)).max((-2, -1)) * n * 2.0**n + 1.0)
    parts = np.abs(size) + 2 * n * np.maximum(longest, 1.0)
    slack = slack + parts * float(errors.gamma(2 * n + 16, x.dtype)) + n * 2.0**-40
    signs = exactly(np.where(known, sign, 1.0), x.dtype)
    either = Interval(-np.ones(shape), np.ones(shape), ~known, x.dtype)
    logs = rounded(size - slack, size + slack, no_nan(size), x.dtype, 4)
    sure = known & np.isfinite(size) & np.isfinite(slack)
    return chosen(known, signs, either), where_known(sure, logs)


def cofactors(errors: Errors, x: Interval) -> Interval:
    """Determinants of minors: a change of rows changes them by no more than it does the product of their lengths.

    That is Hadamard's inequality, for each term of the determinant as a function that is linear in every row.
    """
    n = x.shape[-1]
    middle, radius, finite = _middle(x)
    y = np.ones(x.shape)
    for i, j in np.ndindex(n, n):
        minor = np.delete(np.delete(middle, i, -2), j, -1)
        y[..., i, j] = np.linalg.det(minor) * (-1.0) ** (i + j) if n > 1 else 1.0
    lengths = np.sqrt((middle**2).sum(-1))
    changes = np.sqrt((_eliminated(errors, middle, radius, x.dtype) ** 2).sum(-1)) * 2.0
    slack = np.zeros(x.shape)
    for i in range(n):
        kept = [k for k in range(n) if k != i]
        gap = (lengths + changes)[..., kept].prod(-1) - lengths[..., kept].prod(-1)
        rounded = np.abs(y[..., i, :]).max(-1, initial=0.0) * 2.0**-40
        slack[..., i, :] = (gap * (1.0 + 2.0**-20) + rounded)[..., None]
    return _around(y, slack if n > 1 else np.zeros(x.shape), finite, x.dtype)


def pinv(errors: Errors, x: Interval, rtol: Interval) -> Interval:
    """Of matrices of full rank, by Wedin's theorem: off by the square of the inverse's norm times the change.

    P.-A. Wedin, "Perturbation theory for pseudo-inverses", 1973, for two pseudoinverses of one rank.
    """
    *batch, m, n = x.shape
    shape = (*batch, n, m)
    if 0 in x.shape:
        return exactly(np.zeros(shape), x.dtype)
    middle, radius, finite = _middle(x)
    values = np.linalg.svd(middle, compute_uv=False)
    least, most = values[..., -1], values[..., 0]
    change = np.sqrt((radius**2).sum((-2, -1))) + 10 * max(m, n) ** 2 * _unit(errors, x.dtype) * most
    cut = np.broadcast_to(rtol.high.reshape(rtol.shape[: len(batch)]) if rtol.high.size else 0.0, least.shape)
    known = finite & (least > 2 * change) & (least - change > cut * (most + change))
    norm = 1.0 / np.where(known, least - change, 1.0)
    slack = np.where(known, 3.0 * norm * norm * change, 0.0)
    y = np.linalg.pinv(np.where(known[..., None, None], middle, 1.0))
    return _around(y, np.broadcast_to(slack[..., None, None], shape), known, x.dtype)


# ---- symmetric matrices, and lengths ---------------------------------------------------------------------------


def _symmetric(x: Interval) -> Interval:
    """The symmetric matrix of the lower triangle."""

    def mirrored(values: Array) -> Array:
        lower = np.tril(values)
        return np.where(np.tri(values.shape[-1], dtype=bool), lower, np.swapaxes(lower, -1, -2))

    return x.each(mirrored)


def cholesky(errors: Errors, x: Interval) -> Interval:
    """By Higham, theorems 10.3 and 10.8: relatively off by the condition times the change of the matrix."""
    n = x.shape[-1]
    if 0 in x.shape:
        return x
    middle, radius, finite = _middle(_symmetric(x))
    values = np.linalg.eigvalsh(middle)
    least, most = values[..., 0], values[..., -1]
    positive = finite & (least > 0)
    share = float(errors.gamma(n + 1, x.dtype)) * n + 2.0**-46
    change = (np.sqrt((radius**2).sum((-2, -1))) + share * most) / np.where(positive, least, 1.0)
    known = positive & (change < 0.5)
    safe = np.where(known[..., None, None], middle, np.eye(n))
    y = np.linalg.cholesky(safe)
    slack = np.sqrt(most * np.where(known, 1.0, 0.0)) * change / (1 - np.where(known, change, 0.0))
    wide = np.where(np.tri(n, dtype=bool), np.where(known, slack, 0.0)[..., None, None], 0.0)
    y = np.where(np.tri(n, dtype=bool), y, 0.0)
    return around(y, wide, known, x.dtype, 0)


def _values(errors: Errors, x: Interval, function: Any, count: int) -> Interval:
    """Eigenvalues or singular values: by Weyl's inequality no further off than the norm of the change."""
    shape = (*x.shape[:-2], count)
    if 0 in x.shape:
        return exactly(np.zeros(shape), x.dtype)
    middle, radius, finite = _middle(x)
    values = function(np.where(finite[..., None, None], middle, 0.0))
    n = max(x.shape[-2:])
    norm = np.sqrt((middle**2).sum((-2, -1)))
    slack = np.sqrt((radius**2).sum((-2, -1))) + 10 * n * n * _unit(errors, x.dtype) * norm
    return around(values, slack[..., None], finite, x.dtype)


def eigvalsh(errors: Errors, x: Interval) -> Interval:
    """By Weyl's inequality."""
    return _values(errors, _symmetric(x), np.linalg.eigvalsh, x.shape[-1])


def svdvals(errors: Errors, x: Interval) -> Interval:
    """By Weyl's inequality."""
    return _values(errors, x, lambda m: np.linalg.svd(m, compute_uv=False), min(x.shape[-2:]))


def orthonormal(errors: Errors, shape: tuple[int, ...], finite: Array, dtype: DType) -> Interval:
    """Vectors of length 1, whose sign is not determined, nor their direction if values coincide."""
    n = max(shape[-2:], default=1)
    end = np.full(shape, 1.0 + 10 * n * n * errors.unit(dtype))
    return where_known(finite, Interval(-end, end, no_nan(end), dtype))


def eigh(errors: Errors, x: Interval) -> tuple[Interval, Interval]:
    """The values by Weyl's inequality, of the vectors their length."""
    finite = _middle(_symmetric(x))[2]
    return eigvalsh(errors, x), orthonormal(errors, x.shape, finite, x.dtype)


def svd(errors: Errors, x: Interval, full_matrices: bool) -> tuple[Interval, Interval, Interval]:
    """The values by Weyl's inequality, of the vectors their length."""
    *batch, m, n = x.shape
    finite, least = _middle(x)[2], min(m, n)
    left, right = (m, n) if full_matrices else (least, least)
    u = orthonormal(errors, (*batch, m, left), finite, x.dtype)
    return u, svdvals(errors, x), orthonormal(errors, (*batch, right, n), finite, x.dtype)


def qr(errors: Errors, x: Interval, complete: bool) -> tuple[Interval, Interval]:
    """Columns of length 1, and a triangle whose columns are as long as those of the matrix."""
    *batch, m, n = x.shape
    width = m if complete else min(m, n)
    finite = _middle(x)[2]
    q = orthonormal(errors, (*batch, m, width), finite, x.dtype)
    longest = np.sqrt((np.maximum(np.abs(x.low), np.abs(x.high)) ** 2).sum(-2, keepdims=True))
    end = np.broadcast_to(longest * (1.0 + 10 * max(m, n, 1) ** 2 * errors.unit(x.dtype)), (*batch, width, n))
    end = np.triu(np.where(np.isfinite(end), end, np.inf))
    end = np.where(np.isnan(end), np.inf, end)
    return q, where_known(finite, rounded(-end, end, no_nan(end), x.dtype, 0))


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        *(solve, triangular_solve, inv, det, slogdet, cofactors, pinv),
        *(cholesky, eigvalsh, eigh, svdvals, svd, qr),
    )
}
