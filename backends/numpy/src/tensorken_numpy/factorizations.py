"""The ops on matrices as LAPACK's routines, on stacks of matrices; what has no result is NaN, and nothing raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Axes
from tensorken_numpy.contraction import Array, contract
from tensorken_numpy.quiet import quiet

_SHORT: dict[Any, float] = {
    np.dtype(name): float(np.sqrt(np.float64(np.finfo(name).tiny) / np.float64(np.finfo(name).eps)))
    for name in ("float16", "float32", "float64")
}
"""Below this length, squares that count may vanish."""


class Factorizations(RawTensor[Array]):
    """The part of the numpy backend that is on matrices."""

    def solve(self, a: Array, b: Array) -> Any:
        return _each(np.linalg.solve, a, b)

    def triangular_solve(self, a: Array, b: Array, lower: bool) -> Any:
        wide = np.float64  # as numpy.linalg computes
        x = quiet.run(_substitute, a.astype(wide, copy=False), b.astype(wide, copy=False), lower)
        singular = (np.diagonal(a, 0, -2, -1) == 0).any(-1)
        return np.where(singular[..., None, None], np.nan, x).astype(a.dtype)

    def inv(self, x: Array) -> Any:
        return _each(np.linalg.inv, x)

    def det(self, x: Array) -> Any:
        if x.shape[-1] == 1:  # numpy's is off there, as it goes by way of logarithms
            return x[..., 0, 0]
        return _each(np.linalg.det, x)

    def slogdet(self, x: Array) -> Any:
        return _each(np.linalg.slogdet, x)

    def cholesky(self, x: Array) -> Any:
        return _each(np.linalg.cholesky, _lower(x))

    def qr(self, x: Array, complete: bool) -> Any:
        return _each(lambda x: np.linalg.qr(x, "complete" if complete else "reduced"), x)

    def eigh(self, x: Array) -> Any:
        return _each(np.linalg.eigh, _lower(x))

    def eigvalsh(self, x: Array) -> Any:
        return _each(np.linalg.eigvalsh, _lower(x))

    def svd(self, x: Array, full_matrices: bool) -> Any:
        return _each(lambda x: np.linalg.svd(x, full_matrices), x)

    def svdvals(self, x: Array) -> Any:
        return _each(lambda x: np.linalg.svd(x, compute_uv=False), x)

    def norm(self, x: Array, axes: Axes) -> Array:
        return quiet.run(_norm, x, axes)


def _lower(x: Array) -> Array:
    """What is read of symmetric matrices: LAPACK may overlook a number there that is not finite, so all become NaN."""
    if np.isfinite(x).all():
        return x
    lower = np.tril(x)
    return np.where(np.isfinite(lower).all((-2, -1), keepdims=True), lower, x.dtype.type(np.nan))


def _each(routine: Callable[..., Any], *operands: Array) -> Any:
    """The routine on a stack of matrices; NaN for those that it refuses, and those with NaN, which it may overlook."""
    try:
        result: Any = quiet.run(routine, *operands)
    except np.linalg.LinAlgError:
        result = quiet.run(_one_by_one, routine, *operands)
    spoilt = np.isnan(operands[0]).any((-2, -1))
    if not spoilt.any():
        return tuple(result) if isinstance(result, tuple) else result
    parts = [
        np.where(
            spoilt.reshape(spoilt.shape + (1,) * (part.ndim - spoilt.ndim)), part.dtype.type(np.nan), part
        )
        for part in (result if isinstance(result, tuple) else (result,))
    ]
    return tuple(parts) if isinstance(result, tuple) else parts[0]


def _substitute(a: Array, b: Array, lower: bool) -> Array:
    """The half of x that needs no other, and then the rest, both in the same way.

    Elimination with pivots, as in numpy.linalg.solve, would mix rows of different sizes, and lose the short ones.
    """
    n = a.shape[-1]
    if n < 2:
        return b / a if n else b
    half = n // 2
    first, last = slice(0, half), slice(half, n)
    known, rest = (first, last) if lower else (last, first)
    x = np.empty_like(b)
    x[..., known, :] = _substitute(a[..., known, known], b[..., known, :], lower)
    right = b[..., rest, :] - np.matmul(a[..., rest, known], x[..., known, :])
    x[..., rest, :] = _substitute(a[..., rest, rest], right, lower)
    return x


def _one_by_one(routine: Callable[..., Any], *operands: Array) -> Any:
    batch = operands[0].shape[:-2]
    model = routine(*[np.eye(*x.shape[-2:], dtype=x.dtype) for x in operands])
    parts = model if isinstance(model, tuple) else (model,)
    results = [np.full((*batch, *part.shape), np.nan, part.dtype) for part in parts]
    for place in np.ndindex(batch):
        try:
            found = routine(*[x[place] for x in operands])
        except np.linalg.LinAlgError:
            continue
        for result, part in zip(results, found if isinstance(model, tuple) else (found,), strict=True):
            result[place] = part
    return tuple(results) if isinstance(model, tuple) else results[0]


def _norm(x: Array, axes: Axes) -> Array:
    """The root of the sum of squares; of what is divided by the largest size where squares overflow or vanish."""
    y: Array = np.sqrt(contract(x, x, axes))
    if bool(((y > _SHORT[x.dtype]) & (y < np.inf)).all()):
        return y
    largest = np.max(np.absolute(x), axes, keepdims=True, initial=0)
    scale = np.where((largest > 0) & (largest < np.inf), largest, x.dtype.type(1))
    scaled = x / scale
    length: Array = np.sqrt(contract(scaled, scaled, axes)) * scale
    return length
