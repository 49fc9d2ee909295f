"""Exact facts on a matrix: growth in elimination, determinant, cofactors, pseudoinverse, spectra."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np

from tensorken_conformance.oracles.bounds import Array

Rows = list[list[Fraction]]

BRANCHES = 200
"""The most orders of rows that are followed through elimination where rows tie; beyond, Wilkinson's bound is used."""


def rows_of(a: Array) -> Rows:
    """The elements as fractions."""
    return [[Fraction(v) for v in row] for row in a.astype(np.float64).tolist()]


@dataclass(frozen=True, slots=True)
class Elimination:
    """The result of Gaussian elimination with partial pivoting, without rounding.

    Attributes:
        growth: the largest element that occurs, in any order of rows that rounding may cause.
        pivots: the pivots of the first such order.
    """

    growth: Fraction
    pivots: list[Fraction]


def eliminated(a: Array) -> Elimination:
    """Eliminate exactly.

    Rounding may choose another row where two are nearly as large, so all such choices are followed; where there are too
    many, growth is at most 2**(n - 1) (J. H. Wilkinson, "Error analysis of direct methods of matrix inversion", 1961).
    """
    rows, n = rows_of(a), a.shape[-1]
    largest = max([abs(v) for row in rows for v in row], default=Fraction(0))
    pivots: list[Fraction] = []
    growth, todo, seen = largest, [(rows, 0)], 0
    while todo:
        matrix, k = todo.pop()
        if seen > BRANCHES:
            return Elimination(largest * 2 ** max(n - 1, 0), pivots)
        if k == n:
            pivots = pivots or [matrix[i][i] for i in range(n)]
            seen += 1
            continue
        top = max([abs(matrix[i][k]) for i in range(k, n)])
        for i in [i for i in range(k, n) if abs(matrix[i][k]) * 1024 >= top * 1023]:
            chosen = [list(row) for row in matrix]
            chosen[k], chosen[i] = chosen[i], chosen[k]
            for row in chosen[k + 1 :]:
                factor = row[k] / chosen[k][k] if row[k] else Fraction(0)
                if factor:
                    row[k:] = [v - factor * w for v, w in zip(row[k:], chosen[k][k:], strict=True)]
            growth = max([growth, *[abs(v) for row in chosen[k:] for v in row[k:]]])
            todo.append((chosen, k + 1))
            seen += 1
            if not top:
                break
    return Elimination(growth, pivots)


def determinant(rows: Rows) -> Fraction:
    """The product of the pivots.

    >>> determinant([[Fraction(1), Fraction(2)], [Fraction(3), Fraction(4)]])
    Fraction(-2, 1)
    """
    _, pivots, product = _reduced_echelon(rows, len(rows))
    return product if len(pivots) == len(rows) else Fraction(0)


def cofactors(rows: Rows) -> Rows:
    """The determinants without row i and column j, times (-1)**(i + j)."""
    n = len(rows)

    def minor(i: int, j: int) -> Fraction:
        rest = [[v for q, v in enumerate(row) if q != j] for p, row in enumerate(rows) if p != i]
        return determinant(rest) * (-1 if (i + j) % 2 else 1)

    return [[minor(i, j) for j in range(n)] for i in range(n)]


def factors_of_dominant(a: Array) -> Array:
    """|L| @ |U| for the factors of a matrix that is diagonally dominant by columns, rounded to float64.

    Pivoting exchanges no rows there, and no element grows (Higham, theorem 9.9).

    Raises:
        ValueError: if the matrix is not dominant.
    """
    upper = np.array(a, np.float64)
    sizes, n = np.abs(upper), len(upper)
    if not (2 * np.diagonal(sizes) > 1.01 * sizes.sum(0)).all():  # more than float64 can round away
        raise ValueError("the theorem is about matrices that are diagonally dominant by columns")
    lower = np.eye(n)
    for k in range(n - 1):
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :] -= lower[k + 1 :, k, None] * upper[k]
    return np.asarray(np.abs(lower) @ np.abs(np.triu(upper)))


def product(a: Rows, b: Rows) -> Rows:
    """The product of matrices."""
    columns = list(zip(*b, strict=True))
    return [
        [sum([v * w for v, w in zip(row, column, strict=True)], Fraction(0)) for column in columns]
        for row in a
    ]


def transposed(a: Rows) -> Rows:
    """The transpose."""
    return [list(column) for column in zip(*a, strict=True)]


def _reduced_echelon(rows: Rows, columns: int) -> tuple[Rows, list[int], Fraction]:
    """The reduced row echelon form, the columns of its pivots, and the product of these, with the sign of exchanges."""
    rows, pivots, product = [list(row) for row in rows], list[int](), Fraction(1)
    for j in range(columns):
        k = len(pivots)
        pivot_row = next((i for i in range(k, len(rows)) if rows[i][j]), None)
        if pivot_row is None:
            continue
        product *= rows[pivot_row][j] * (1 if pivot_row == k else -1)
        rows[k], rows[pivot_row] = rows[pivot_row], rows[k]
        rows[k] = [v / rows[k][j] for v in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][j]:
                rows[i] = [v - rows[i][j] * w for v, w in zip(rows[i], rows[k], strict=True)]
        pivots.append(j)
    return rows, pivots, product


def solved(a: Rows, b: Rows) -> Rows:
    """The x with a @ x = b, for regular a, by elimination of both sides."""
    both, *_ = _reduced_echelon([[*p, *q] for p, q in zip(a, b, strict=True)], len(a))
    return [row[len(a) :] for row in both]


def pseudoinverse(a: Rows) -> Rows:
    """From a = b @ c with b of full column rank, c of full row rank (A. Ben-Israel, T. N. E. Greville, section 1.6).

    >>> pseudoinverse([[Fraction(2), Fraction(0)]])
    [[Fraction(1, 2)], [Fraction(0, 1)]]
    """
    reduced, pivots, _ = _reduced_echelon(a, len(a[0]))
    if not pivots:
        return [[Fraction(0)] * len(a) for _ in a[0]]
    b, c = [[row[j] for j in pivots] for row in a], reduced[: len(pivots)]
    left = solved(product(transposed(b), b), transposed(b))
    right = transposed(solved(product(c, transposed(c)), c))
    return product(right, left)


def eigenvalues(a: Array) -> list[float]:
    """The eigenvalues of a symmetric matrix, ascending: by float64 for a float32 matrix, else to 40 digits."""
    if a.dtype == np.float32 or not a.size:
        return [float(v) for v in np.linalg.eigvalsh(a.astype(np.float64))]
    with mpmath.workdps(40):
        return sorted(float(v) for v in mpmath.mp.eigsy(mpmath.matrix(a.tolist()), eigvals_only=True))


def singular_values(a: Array) -> list[float]:
    """The singular values of any matrix, descending, with the same digits."""
    if a.dtype == np.float32 or not a.size:
        return [float(v) for v in np.linalg.svd(a.astype(np.float64), compute_uv=False)]
    with mpmath.workdps(40):
        wide = a if a.shape[0] >= a.shape[1] else a.T
        found = mpmath.mp.svd_r(mpmath.matrix(wide.tolist()), compute_uv=False)
        return sorted([float(v) for v in itertools.chain(found)], reverse=True)
