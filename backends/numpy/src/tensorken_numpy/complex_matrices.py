"""The ops on complex matrices, and those with complex eigenvalues, by LAPACK, on pairs of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_numpy.arrays import Array
from tensorken_numpy.factorizations import batched, check_lower, solve_triangular
from tensorken_numpy.parts import complex_of, parts


class ComplexMatrices(RawTensor[Array]):
    """The ops on complex matrices of the numpy backend."""

    def complex_solve(self, a: Array, a_imag: Array, b: Array, b_imag: Array) -> Any:
        return _parts_of(np.linalg.solve, complex_of(a, a_imag), complex_of(b, b_imag))

    def complex_triangular_solve(self, a: Array, a_imag: Array, b: Array, b_imag: Array, lower: bool) -> Any:
        return parts(solve_triangular(complex_of(a, a_imag), complex_of(b, b_imag), lower))

    def complex_inv(self, x: Array, x_imag: Array) -> Any:
        return _parts_of(np.linalg.inv, complex_of(x, x_imag))

    def complex_det(self, x: Array, x_imag: Array) -> Any:
        if x.shape[-1] == 1:  # numpy computes it through logarithms, which is inexact
            return x[..., 0, 0], x_imag[..., 0, 0]
        return _parts_of(np.linalg.det, complex_of(x, x_imag))

    def complex_slogdet(self, x: Array, x_imag: Array) -> Any:
        sign, logarithm = batched(np.linalg.slogdet, complex_of(x, x_imag))
        return *parts(sign), logarithm

    def complex_cholesky(self, x: Array, x_imag: Array) -> Any:
        return _parts_of(np.linalg.cholesky, _lower(x, x_imag))

    def complex_qr(self, x: Array, x_imag: Array, complete: bool) -> Any:
        q, r = batched(
            lambda z: np.linalg.qr(z, "complete" if complete else "reduced"), complex_of(x, x_imag)
        )
        return *parts(q), *parts(r)

    def complex_eigh(self, x: Array, x_imag: Array) -> Any:
        values, vectors = batched(np.linalg.eigh, _lower(x, x_imag))
        return values, *parts(vectors)

    def complex_eigvalsh(self, x: Array, x_imag: Array) -> Any:
        return batched(np.linalg.eigvalsh, _lower(x, x_imag))

    def complex_svd(self, x: Array, x_imag: Array, full_matrices: bool) -> Any:
        left, values, right = batched(lambda z: np.linalg.svd(z, full_matrices), complex_of(x, x_imag))
        return *parts(left), values, *parts(right)

    def complex_svdvals(self, x: Array, x_imag: Array) -> Any:
        return batched(lambda z: np.linalg.svd(z, compute_uv=False), complex_of(x, x_imag))

    def eig(self, x: Array) -> Any:
        return _eig(x)

    def eigvals(self, x: Array) -> Any:
        return _parts_of(np.linalg.eigvals, _all_finite(x))

    def complex_eig(self, x: Array, x_imag: Array) -> Any:
        return _eig(complex_of(x, x_imag))

    def complex_eigvals(self, x: Array, x_imag: Array) -> Any:
        return _parts_of(np.linalg.eigvals, _all_finite(complex_of(x, x_imag)))


def _lower(real: Array, imag: Array) -> Array:
    """The matrix of which LAPACK reads the lower triangle, without imaginary parts on the diagonal."""
    return check_lower(complex_of(real, np.tril(imag, -1)))


def _eig(x: Array) -> tuple[Array, ...]:
    values, vectors = batched(np.linalg.eig, _all_finite(x))
    return *parts(values), *parts(vectors)


def _all_finite(x: Array) -> Array:
    """The operand with NaN in each matrix with an element that is not finite, which numpy refuses for all."""
    finite = np.isfinite(x).all((-2, -1), keepdims=True)
    return np.where(finite, x, x.dtype.type(np.nan)) if not finite.all() else x


def _parts_of(routine: Callable[..., Any], *operands: Array) -> tuple[Array, Array]:
    return parts(batched(routine, *operands))
