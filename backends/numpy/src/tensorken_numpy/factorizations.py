"""The ops on matrices, by LAPACK, on stacks of matrices.  They never raise: a matrix without a result gives NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes
from tensorken_numpy.arrays import Array
from tensorken_numpy.bfloat16 import in_float32
from tensorken_numpy.contraction import contract
from tensorken_numpy.quiet import quiet

_MIN_NORM: dict[Any, float] = {
    np.dtype(name): float(np.sqrt(np.float64(np.finfo(name).tiny) / np.float64(np.finfo(name).eps)))
    for name in ("float16", "float32", "float64")
}
"""Vectors shorter than this may have squares that underflow but matter."""


class Factorizations(RawTensor[Array]):
    """The ops on matrices of the numpy backend."""

    def solve(self, a: Array, b: Array) -> Any:
        return batched(np.linalg.solve, a, b)

    def triangular_solve(self, a: Array, b: Array, lower: bool) -> Any:
        return solve_triangular(a, b, lower)

    def inv(self, x: Array) -> Any:
        return batched(np.linalg.inv, x)

    def det(self, x: Array) -> Any:
        if x.shape[-1] == 1:  # numpy computes it through logarithms, which is inexact
            return x[..., 0, 0]
        return batched(np.linalg.det, x)

    def slogdet(self, x: Array) -> Any:
        return batched(np.linalg.slogdet, x)

    def cholesky(self, x: Array) -> Any:
        return batched(np.linalg.cholesky, check_lower(x))

    def qr(self, x: Array, complete: bool) -> Any:
        return batched(lambda x: np.linalg.qr(x, "complete" if complete else "reduced"), x)

    def eigh(self, x: Array) -> Any:
        return batched(np.linalg.eigh, check_lower(x))

    def eigvalsh(self, x: Array) -> Any:
        return batched(np.linalg.eigvalsh, check_lower(x))

    def svd(self, x: Array, full_matrices: bool) -> Any:
        return batched(lambda x: np.linalg.svd(x, full_matrices), x)

    def svdvals(self, x: Array) -> Any:
        return batched(lambda x: np.linalg.svd(x, compute_uv=False), x)

    def norm(self, x: Array, axes: Axes) -> Array:
        return quiet.run(in_float32(_norm), x, axes)


def check_lower(x: Array) -> Array:
    """The operand with NaN in each matrix whose lower triangle has a non-finite element, which LAPACK may overlook."""
    if np.isfinite(x).all():
        return x
    lower = np.tril(x)
    return np.where(np.isfinite(lower).all((-2, -1), keepdims=True), lower, x.dtype.type(np.nan))


def batched(routine: Callable[..., Any], *operands: Array) -> Any:
    """Apply the routine to a stack of matrices; NaN for matrices that it refuses or that contain NaN."""
    try:
        result: Any = quiet.run(routine, *operands)
    except np.linalg.LinAlgError:
        result = quiet.run(_one_by_one, routine, *operands)
    has_nan = np.isnan(operands[0]).any((-2, -1))
    if not has_nan.any():
        return tuple(result) if isinstance(result, tuple) else result
    parts = [
        np.where(
            has_nan.reshape(has_nan.shape + (1,) * (part.ndim - has_nan.ndim)), part.dtype.type(np.nan), part
        )
        for part in (result if isinstance(result, tuple) else (result,))
    ]
    return tuple(parts) if isinstance(result, tuple) else parts[0]


def solve_triangular(a: Array, b: Array, lower: bool) -> Array:
    """The x with a @ x = b for triangular a, of real or complex numbers, computed in the precision of numpy.linalg."""
    wide = np.result_type(a.dtype, np.float64)
    x = quiet.run(_substitute, a.astype(wide, copy=False), b.astype(wide, copy=False), lower)
    singular = (np.diagonal(a, 0, -2, -1) == 0).any(-1)
    result: Array = np.where(singular[..., None, None], np.nan, x).astype(a.dtype)
    return result


def _substitute(a: Array, b: Array, lower: bool) -> Array:
    """Solve a triangular system by halves: first the half that does not depend on the other.

    Elimination with pivots, as in numpy.linalg.solve, would mix rows of different magnitude and lose the small
    ones.
    """
    n = a.shape[-1]
    if n < 2:
        return b / a if n else b
    half = n // 2
    top, bottom = slice(0, half), slice(half, n)
    first, rest = (top, bottom) if lower else (bottom, top)
    x = np.empty_like(b)
    x[..., first, :] = _substitute(a[..., first, first], b[..., first, :], lower)
    right = b[..., rest, :] - np.matmul(a[..., rest, first], x[..., first, :])
    x[..., rest, :] = _substitute(a[..., rest, rest], right, lower)
    return x


def _one_by_one(routine: Callable[..., Any], *operands: Array) -> Any:
    batch = operands[0].shape[:-2]
    model = routine(*[np.eye(*x.shape[-2:], dtype=x.dtype) for x in operands])
    parts = model if isinstance(model, tuple) else (model,)
    results = [np.full((*batch, *part.shape), np.nan, part.dtype) for part in parts]
    for index in np.ndindex(batch):
        try:
            outputs = routine(*[x[index] for x in operands])
        except np.linalg.LinAlgError:
            continue
        for i, part in enumerate(outputs if isinstance(model, tuple) else (outputs,)):
            if part.dtype != results[i].dtype:  # eigenvalues of a real matrix may be complex
                results[i] = results[i].astype(np.result_type(results[i], part), copy=False)
            results[i][index] = part
    return tuple(results) if isinstance(model, tuple) else results[0]


def _norm(x: Array, axes: Axes) -> Array:
    """The root of the sum of squares, scaled by the largest magnitude where squares overflow or underflow."""
    y: Array = np.sqrt(contract(x, x, axes))
    if bool(((y > _MIN_NORM[x.dtype]) & (y < np.inf)).all()):
        return y
    largest = np.max(np.absolute(x), axes, keepdims=True, initial=0)
    scale = np.where((largest > 0) & (largest < np.inf), largest, x.dtype.type(1))
    scaled = x / scale
    length: Array = np.sqrt(contract(scaled, scaled, axes)) * scale
    return length
