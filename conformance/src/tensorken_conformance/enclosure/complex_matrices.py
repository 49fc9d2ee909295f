"""Enclosures of ops on complex matrices, which are pairs of parts, and of those with complex eigenvalues.

A complex matrix A + iB is the real matrix [[A, -B], [B, A]] of twice the size, whose solutions, inverse, eigenvalues
and singular values are those of the complex one.  Its bounds, which are those of a larger matrix, hold for algorithms
in complex arithmetic too: a product of complex numbers has a relative error of 2.83 units (N. J. Higham, "Accuracy and
Stability of Numerical Algorithms", 2nd edition, 2002, lemma 3.5), and the bounds grow faster with the size.
"""

from __future__ import annotations

import numpy as np

from tensorken_conformance.enclosure import factorizations
from tensorken_conformance.enclosure.arithmetic import Rule
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import (
    Array,
    Interval,
    anything,
    around,
    combined,
    exactly,
    no_nan,
    rounded,
    where_known,
)

Pair = tuple[Interval, Interval]


def _embedded(real: Interval, imag: Interval) -> Interval:
    """The real matrix of twice the size."""
    return combined(lambda a, b, c: np.block([[a, b], [c, a]]), real, -imag, imag)


def _columns(real: Interval, imag: Interval) -> Interval:
    """The right-hand sides of the real matrix."""
    return combined(lambda a, b: np.concatenate([a, b], -2), real, imag)


def _parts(x: Interval, rows: int, columns: int) -> Pair:
    """The parts in the first columns of the real matrix."""
    real = x.each(lambda values: values[..., :rows, :columns])
    return real, x.each(lambda values: values[..., rows:, :columns])


def solve(errors: Errors, a: Interval, a_imag: Interval, b: Interval, b_imag: Interval) -> Pair:
    """The solution of the real system."""
    *_, n, k = b.shape
    return _parts(factorizations.solve(errors, _embedded(a, a_imag), _columns(b, b_imag)), n, k)


def triangular_solve(
    errors: Errors, a: Interval, a_imag: Interval, b: Interval, b_imag: Interval, lower: bool
) -> Pair:
    """The system of one triangle."""
    triangle = np.tril if lower else np.triu
    return solve(errors, combined(triangle, a), combined(triangle, a_imag), b, b_imag)


def inv(errors: Errors, x: Interval, x_imag: Interval) -> Pair:
    """The solution with the identity matrix as right-hand side."""
    n = x.shape[-1]
    identity = exactly(np.broadcast_to(np.eye(n), x.shape), x.dtype)
    return solve(errors, x, x_imag, identity, exactly(np.zeros(x.shape), x.dtype))


def pinv(errors: Errors, x: Interval, x_imag: Interval, rtol: Interval) -> Pair:
    """That of the real matrix, which has each singular value twice."""
    *_, m, n = x.shape
    return _parts(factorizations.pinv(errors, _embedded(x, x_imag), rtol), n, m)


def _logarithm(errors: Errors, x: Interval, x_imag: Interval) -> tuple[Array, Array, Interval]:
    """The sign of the determinant, whether it is known, and the logarithm of the modulus, half that of the real one."""
    signs, logs = factorizations.slogdet(errors, _embedded(x, x_imag))
    middles = [np.where(p.finite, p.low / 2 + p.high / 2, other) for p, other in ((x, 1.0), (x_imag, 0.0))]
    sign = np.linalg.slogdet(middles[0] + 1j * middles[1])[0]
    known = (signs.low == signs.high) & np.isfinite(logs.low) & np.isfinite(logs.high)
    half = rounded(logs.low / 2, logs.high / 2, logs.maybe_nan, x.dtype, 1)
    return sign, known, half


def _turned(sign: Array, width: Array, known: Array, like: Interval) -> Pair:
    """The parts of a number of modulus 1 whose logarithm is off by no more than the width."""
    slack = np.minimum(width, 2.0) * (1.0 + 2.0**-20) + 2.0**-40
    real, imag = [
        rounded(np.maximum(p - slack, -1.0), np.minimum(p + slack, 1.0), no_nan(p), like.dtype, 4)
        for p in (sign.real, sign.imag)
    ]
    return where_known(known, real), where_known(known, imag)


def slogdet(errors: Errors, x: Interval, x_imag: Interval) -> tuple[Interval, Interval, Interval]:
    """The sign turns by no more than the logarithm may change."""
    sign, known, logs = _logarithm(errors, x, x_imag)
    width = np.where(known, logs.high - logs.low, 0.0)
    return *_turned(sign, width, known, x), where_known(known, logs)


def det(errors: Errors, x: Interval, x_imag: Interval) -> Pair:
    """The determinant is off by its modulus times the change of its logarithm."""
    sign, known, logs = _logarithm(errors, x, x_imag)
    width = np.where(known, logs.high - logs.low, 0.0)
    size = np.exp(np.where(known, logs.high, 0.0))
    slack = size * (np.expm1(width) + 2.0**-40)
    known, value = known & np.isfinite(slack), sign * size
    return around(value.real, slack, known, x.dtype, 4), around(value.imag, slack, known, x.dtype, 4)


def cofactors(errors: Errors, x: Interval, x_imag: Interval) -> Pair:
    """The determinants of minors, where these are known."""
    n = x.shape[-1]
    if n == 1:
        return exactly(np.ones(x.shape), x.dtype), exactly(np.zeros(x.shape), x.dtype)
    found = [anything(x.shape, x.dtype) for _ in range(2)]
    size = 2.0 ** (n + 2) * errors.unit(x.dtype) * _largest_cofactor(x, x_imag)
    for i, j in np.ndindex(n, n):

        def minor(values: Array, i: int = i, j: int = j) -> Array:
            return np.delete(np.delete(values, i, -2), j, -1)

        for whole, part in zip(found, det(errors, x.each(minor), x_imag.each(minor)), strict=True):
            one = -part if (i + j) % 2 else part
            whole.low[..., i, j], whole.high[..., i, j] = one.low - size, one.high + size
            whole.maybe_nan[..., i, j] = one.maybe_nan
    finite = np.logical_and.reduce(x.finite & x_imag.finite, (-2, -1))
    return where_known(finite, found[0]), where_known(finite, found[1])


def _largest_cofactor(x: Interval, x_imag: Interval) -> Array:
    """A bound of the cofactors, and of the products of singular values that they are computed from."""
    parts = [np.maximum(np.abs(p.low), np.abs(p.high)) for p in (x, x_imag)]
    size = np.sqrt((parts[0] ** 2 + parts[1] ** 2).sum((-2, -1)))
    return np.asarray(64.0 * np.maximum(size, 1.0) ** max(x.shape[-1] - 1, 0))


# ---- Hermitian matrices, and factors ---------------------------------------------------------------------------


def _hermitian(real: Interval, imag: Interval) -> Pair:
    """The Hermitian matrix of the lower triangle."""

    def mirrored(values: Array) -> Array:
        return np.where(np.tri(values.shape[-1], dtype=bool), values, np.swapaxes(values, -1, -2))

    below = combined(lambda v: np.tril(v, -1), imag)
    above = -combined(lambda v: np.swapaxes(v, -1, -2), below)
    return real.each(mirrored), Interval(
        below.low + above.low, below.high + above.high, below.maybe_nan | above.maybe_nan, imag.dtype
    )


def cholesky(errors: Errors, x: Interval, x_imag: Interval) -> Pair:
    """The first half of the factor of the real matrix has columns as long; its elements are bounded by the diagonal."""
    n = x.shape[-1]
    real, _ = _hermitian(x, x_imag)
    longest = np.sqrt(np.maximum(np.diagonal(real.high, 0, -2, -1), 0.0))[..., None]
    longest = longest * (1 + 64 * errors.unit(x.dtype))
    end = np.where(np.tri(n, dtype=bool), np.broadcast_to(longest, x.shape), 0.0)
    return _bounded(end, x, True), _bounded(np.where(np.tri(n, k=-1, dtype=bool), end, 0.0), x, True)


def _bounded(end: Array, like: Interval, may_fail: bool = False) -> Interval:
    """Numbers up to an end; NaN where that is not finite, or where the algorithm may fail."""
    finite = np.isfinite(end)
    end = np.where(finite, end, np.inf)
    return Interval(-end, end, ~finite | may_fail, like.dtype)


def _twice(x: Interval) -> Interval:
    """Of values that occur twice, in order, each once."""
    return Interval(
        np.minimum(x.low[..., 0::2], x.low[..., 1::2]),
        np.maximum(x.high[..., 0::2], x.high[..., 1::2]),
        x.maybe_nan[..., 0::2] | x.maybe_nan[..., 1::2],
        x.dtype,
    )


def eigvalsh(errors: Errors, x: Interval, x_imag: Interval) -> Interval:
    """Those of the real matrix, by Weyl's inequality."""
    return _twice(factorizations.eigvalsh(errors, _embedded(*_hermitian(x, x_imag))))


def svdvals(errors: Errors, x: Interval, x_imag: Interval) -> Interval:
    """Those of the real matrix, by Weyl's inequality."""
    return _twice(factorizations.svdvals(errors, _embedded(x, x_imag)))


def _vectors(errors: Errors, x: Interval, x_imag: Interval, shape: tuple[int, ...]) -> Pair:
    """Parts of vectors of length 1, of which neither the phase is determined, nor the direction if values coincide."""
    finite = np.logical_and.reduce(x.finite & x_imag.finite, (-2, -1))
    part = factorizations.orthonormal(errors, shape, finite, x.dtype)
    return part, part


def eigh(errors: Errors, x: Interval, x_imag: Interval) -> tuple[Interval, Interval, Interval]:
    """The values, and of the vectors their length."""
    return eigvalsh(errors, x, x_imag), *_vectors(errors, *_hermitian(x, x_imag), x.shape)


def svd(errors: Errors, x: Interval, x_imag: Interval, full_matrices: bool) -> tuple[Interval, ...]:
    """The values, and of the vectors their length."""
    *batch, m, n = x.shape
    left, right = (m, n) if full_matrices else (min(m, n), min(m, n))
    u = _vectors(errors, x, x_imag, (*batch, m, left))
    return *u, svdvals(errors, x, x_imag), *_vectors(errors, x, x_imag, (*batch, right, n))


def qr(errors: Errors, x: Interval, x_imag: Interval, complete: bool) -> tuple[Interval, ...]:
    """Columns of length 1, and a triangle whose columns are as long as those of the matrix."""
    *_, m, n = x.shape
    _, triangle = factorizations.qr(errors, _columns(x, x_imag), False)
    width = m if complete else min(m, n)
    end = np.zeros((*x.shape[:-2], width, n))
    rows = min(width, triangle.shape[-2])
    column = np.abs(triangle.high).max(-2, keepdims=True, initial=0.0)
    end[..., :rows, :] = np.triu(np.broadcast_to(column, end.shape))[..., :rows, :]
    end = np.where(np.isnan(end), np.inf, end)
    r = Interval(
        -end, end, np.broadcast_to(triangle.maybe_nan.any((-2, -1), keepdims=True), end.shape), x.dtype
    )
    return *_vectors(errors, x, x_imag, (*x.shape[:-2], m, width)), r, r


# ---- eigenvalues of general matrices ---------------------------------------------------------------------------


def eigvals(errors: Errors, x: Interval, x_imag: Interval | None = None) -> Pair:
    """No eigenvalue of a real or a complex matrix is larger than its norm."""
    parts = [np.maximum(np.abs(p.low), np.abs(p.high)) ** 2 for p in (x, x_imag) if p is not None]
    norm = np.sqrt(sum(parts).sum((-2, -1)))[..., None]  # type: ignore[union-attr]
    end = np.broadcast_to(norm * (1 + 64 * x.shape[-1] ** 2 * errors.unit(x.dtype)), x.shape[:-1])
    return _bounded(end, x), _bounded(end, x)


def eig(errors: Errors, x: Interval, x_imag: Interval | None = None) -> tuple[Interval, ...]:
    """The values, and of the vectors their length."""
    values = eigvals(errors, x, x_imag)
    return *values, *[_unit_vectors(errors, v) for v in values]


def _unit_vectors(errors: Errors, values: Interval) -> Interval:
    """Parts of vectors of length 1, for matrices with these eigenvalues."""
    end = np.where(np.isfinite(values.high), 1.0 + 16 * errors.unit(values.dtype), np.inf)
    return _bounded(np.repeat(end[..., None, :], end.shape[-1], -2), values)


_COMPLEX: tuple[Rule, ...] = (
    *(solve, triangular_solve, inv, det, slogdet, cofactors, pinv),
    *(cholesky, eigvalsh, eigh, svdvals, svd, qr, eig, eigvals),
)

RULES: dict[str, Rule] = {
    **{f"complex_{rule.__name__}": rule for rule in _COMPLEX},
    "eig": eig,
    "eigvals": eigvals,
}
