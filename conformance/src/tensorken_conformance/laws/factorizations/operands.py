"""Operands of factorizations: kinds of matrices, shapes and value classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.oracles.bounds import Array

Shape = tuple[int, ...]


def _matrices(names: str) -> dict[str, Shape]:
    """The shapes of matrices with these names."""
    return {name: tuple(map(int, name.split("x"))) for name in names.split()}


SQUARE = {
    **_matrices("0x0 1x1 2x2 3x3 5x5 8x8"),
    "batch": (3, 4, 4),
    "batches": (2, 1, 2, 2),
    "no-batch": (0, 3, 3),
}

RECTANGULAR = {**_matrices("3x2 2x3 5x1 1x5 7x4 4x7 0x3 3x0"), "tall-batch": (2, 4, 3)}

LARGE = _matrices("65x65 130x130")
"""Larger than the blocks of libraries: 64, and 128 for the QR of LAPACK, which has none below (its ILAENV)."""

SHAPES = {**SQUARE, **RECTANGULAR, **LARGE}

REGULAR = ("normals", "small-integers", "graded", "nearly-singular", "scaled", "structured")
"""Value classes of matrices that have a regular result.

`graded`: rows and columns of very different sizes; `nearly-singular`: rows that nearly depend on each other; `scaled`:
far from 1; `structured`: diagonals, permutations, equal values.
"""

DOMINANT = "dominant"
"""The value class of large matrices: each element of the diagonal is larger than the sum of the rest of its column."""

SPOILT = ("singular", "indefinite", "nan")
"""Value classes where the first matrix of a batch has no regular result."""

FAR = 40
"""`scaled` matrices are 2**FAR from 1: so far that products of four elements overflow in float32; squares do not."""


def drawn(rng: np.random.Generator, values: str, shape: Shape, dtype: str, kind: str) -> Array:
    """Matrices of a value class.

    Args:
        rng: the source of random numbers.
        values: one of REGULAR or SPOILT, or DOMINANT, or `garbage`: the triangle that is not to be read is NaN.
        shape: of the tensor.
        dtype: of the tensor.
        kind: `general`, `symmetric`, `positive` (definite), `lower` or `upper` (triangular), or `deficient` (in rank).
    """
    found = np.empty(shape, dtype)
    indices = list(np.ndindex(shape[:-2]))
    for index in indices:
        one = values if values in (*REGULAR, DOMINANT) else "normals"
        matrix = _MAKERS[kind](rng, one, shape[-2], shape[-1], dtype)
        if values in SPOILT and index == indices[0] and matrix.size:
            _spoil(rng, matrix, values, kind)
        if values == "garbage":
            row, column = np.indices(matrix.shape)
            matrix = np.where(column < row if kind == "upper" else column > row, np.nan, matrix)
        found[index] = matrix
    return found


def _spoil(rng: np.random.Generator, matrix: Array, values: str, kind: str) -> None:
    """Make a matrix irregular: with NaN, indefinite or singular."""
    m, n = matrix.shape
    i, j = int(rng.integers(m)), int(rng.integers(n))
    if values == "nan":
        i, j = (max(i, j), min(i, j)) if kind in ("positive", "symmetric", "lower") else (i, j)
        i, j = (min(i, j), max(i, j)) if kind == "upper" else (i, j)
        matrix[i, j] = np.nan
    elif values == "indefinite":
        matrix[i, i] = -abs(matrix[i, i])
    elif kind in ("lower", "upper"):
        matrix[i, i] = 0.0
    elif rng.random() < 0.3:
        matrix[:] = 0.0
    elif rng.random() < 0.5:
        matrix[i] = 0.0
    else:
        matrix[:, j] = 0.0


def _general(rng: np.random.Generator, values: str, m: int, n: int, dtype: str) -> Array:
    """A general matrix, which is regular if it is square."""
    least = min(m, n)
    if values == "small-integers":
        found = rng.integers(-4, 5, (m, n)).astype(float)
        found[np.arange(least), np.arange(least)] = rng.choice([9.0, -9.0], least) * 4
        return found
    if values == "structured":
        found = np.zeros((m, n))
        found[np.arange(least), rng.permutation(least)] = rng.choice([1.0, 1.0, -1.0, 2.0, 0.5])
        return found
    found = rng.standard_normal((m, n))
    if values == "graded":
        rows, columns = 2.0 ** -(4.0 * rng.permutation(m)), 2.0 ** -(3.0 * rng.permutation(n))
        found *= rows[:, None] * columns
    if values == "nearly-singular" and m > 1:
        found[-1] = rng.standard_normal(m - 1) @ found[:-1] / m + rng.standard_normal(n) * _little(dtype)
    if values == "scaled":
        found *= 2.0 ** (FAR * rng.choice([-1, 1]))
    if values == DOMINANT:
        found[np.arange(least), np.arange(least)] = (
            2 * np.abs(found).sum(0)[:least] * rng.choice([-1, 1], least)
        )
    return found


def _little(dtype: str) -> float:
    """The distance of `nearly-singular` from singular: a few hundred unit roundoffs."""
    return 2.0**-15 if dtype == "float32" else 2.0**-44


def _symmetric(rng: np.random.Generator, values: str, m: int, n: int, dtype: str) -> Array:
    found: Array = _general(rng, values, n, n, dtype)
    if values == "structured":
        found = np.diag(rng.choice([1.0, -1.0, 0.0, 2.0], n)) if rng.random() < 0.5 else np.ones((n, n))
    if values == "graded":
        scale = 2.0 ** -(4.0 * rng.permutation(n))
        found = rng.standard_normal((n, n)) * scale[:, None] * scale
    return np.tril(found) + np.tril(found, -1).T


def _positive(rng: np.random.Generator, values: str, m: int, n: int, dtype: str) -> Array:
    """Positive definite with a margin beyond rounding errors (Higham, theorem 10.7)."""
    if values == "structured":
        diagonal = np.diag(rng.choice([1.0, 4.0, 2.0, 0.25], n))
        return diagonal if rng.random() < 0.5 else np.ones((n, n)) + n * np.eye(n)
    if values == "small-integers":
        whole = np.tril(rng.integers(-3, 4, (n, n)), -1) + np.diag(rng.integers(1, 4, n))
        return np.asarray(whole @ whole.T, float)
    factor = rng.standard_normal((n, n))
    if values == "nearly-singular" and n > 1:
        factor[-1] = rng.standard_normal(n - 1) @ factor[:-1] / n
        found = factor @ factor.T
        return found + np.diag(np.diag(found)) * (2.0**-12 if dtype == "float32" else 2.0**-40)
    found = np.asarray(factor @ factor.T + n * np.eye(n))
    if values == "graded":
        scale = 2.0 ** -(4.0 * rng.permutation(n))
        found = found * scale[:, None] * scale
    if values == "scaled":
        found = found * 2.0 ** (FAR * rng.choice([-1, 1]))
    return np.asarray(np.tril(found) + np.tril(found, -1).T)


def _lower(rng: np.random.Generator, values: str, m: int, n: int, dtype: str) -> Array:
    found: Array = np.tril(_general(rng, "normals" if values == "structured" else values, n, n, dtype))
    if values == "structured":
        found = np.tril(np.ones((n, n)))
    if values == "nearly-singular" and n:
        found[n - 1, n - 1] = _little(dtype)
    return found


def _upper(rng: np.random.Generator, values: str, m: int, n: int, dtype: str) -> Array:
    return np.ascontiguousarray(_lower(rng, values, m, n, dtype).T)


def _deficient(rng: np.random.Generator, values: str, m: int, n: int, dtype: str) -> Array:
    """Of any rank; all singular values that are not 0 are far from it; of small whole numbers if rank deficient."""
    least = min(m, n)
    if values == "small-integers" and least > 1:
        rank = int(rng.integers(1, least))
        left = np.tril(rng.integers(-1, 2, (m, rank)), -1) + 2 * np.eye(m, rank)
        right = np.triu(rng.integers(-1, 2, (rank, n)), 1) + 2 * np.eye(rank, n)
        return np.asarray(left @ right)
    if values == "structured":
        return np.zeros((m, n)) if rng.random() < 0.3 else np.eye(m, n)
    found = rng.uniform(-0.3, 0.3, (m, n)) / max(least, 1) ** 0.5 + 2 * np.eye(m, n)
    if values == "scaled":
        found *= 2.0 ** (FAR * rng.choice([-1, 1]))
    return np.asarray(found)


_MAKERS: dict[str, Any] = {
    "general": _general,
    "symmetric": _symmetric,
    "positive": _positive,
    "lower": _lower,
    "upper": _upper,
    "deficient": _deficient,
}
