"""Eigenvalues and eigenvectors of a general matrix of Python numbers, by the QR algorithm.

The steps are those of LAPACK's geev: balancing, Householder reflections to Hessenberg form, implicit double shifts to
Schur form, back substitution.  All of them are written for floats and for complex numbers alike; a real matrix stays
real, so its complex eigenvalues come in exact pairs.

G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, 2013, sections 7.4 to 7.6; B. N. Parlett, C. Reinsch,
"Balancing a matrix for calculation of eigenvalues and eigenvectors", 1969.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from typing import Any

Rows = list[list[Any]]

EPSILON = 2.0**-52
_MOST_STEPS = 60  # for one eigenvalue; more than 10 are rare
_LARGE = 2.0**200


def eigenvalues(rows: Sequence[Sequence[Any]]) -> list[complex]:
    """The eigenvalues; NaN if an element is not finite, or if the iteration does not converge.

    >>> eigenvalues([[0.0, 1.0], [-1.0, 0.0]])
    [1j, -1j]
    """
    return eigen(rows, False)[0]


def eigen(rows: Sequence[Sequence[Any]], vectors: bool = True) -> tuple[list[complex], Rows]:
    """The eigenvalues, and if `vectors`, the matrix whose columns are the eigenvectors, else [].

    The vectors have length 1, and their largest component is real, as in LAPACK.

    >>> eigen([[2.0, 0.0], [0.0, 1.0]])
    ([(2+0j), (1+0j)], [[(1+0j), 0j], [0j, (1+0j)]])
    """
    n = len(rows)
    nan = complex(math.nan, math.nan)
    nothing = [nan] * n, [[nan] * n for _ in rows] if vectors else []
    largest = max([abs(x) for row in rows for x in row], default=0.0)
    if not all([cmath.isfinite(x) for row in rows for x in row]):
        return nothing
    scale = 2.0 ** (math.frexp(largest)[1] - 1) if 0.0 < largest < math.inf else 1.0
    t = [[x / scale for x in row] for row in rows]
    weights = _balanced(t)
    z = [[float(i == j) for j in range(n)] for i in range(n)] if vectors else []
    _to_hessenberg(t, z)
    if not _to_schur(t, z):
        return nothing
    values = _values(t)
    columns = _vectors(t, z, weights, values) if vectors else []
    return [value * scale for value in values], [list(row) for row in zip(*columns, strict=True)]


def _balanced(a: Rows) -> list[float]:
    """Scale rows and columns by powers of 2 until they are about equally long; returns the scales of the rows."""
    n = len(a)
    weights = [1.0] * n
    changed = True
    while changed:
        changed = False
        for i in range(n):
            column = math.hypot(*[abs(a[j][i]) for j in range(n) if j != i])
            row = math.hypot(*[abs(a[i][j]) for j in range(n) if j != i])
            if column == 0.0 or row == 0.0:
                continue
            factor = 2.0 ** round((math.log2(row) - math.log2(column)) / 2)
            if not 2.0**-500 < weights[i] * factor < 2.0**500:
                continue
            if math.hypot(column * factor, row / factor) < 0.95 * math.hypot(column, row):
                changed = True
                weights[i] *= factor
                for j in range(n):
                    a[j][i] *= factor
                a[i] = [x / factor for x in a[i]]
    return weights


def _reflection(x: Sequence[Any]) -> tuple[list[Any], float]:
    """The v and the factor f for which (1 - f v v*) x has zeros after its first element."""
    length = math.hypot(*[abs(value) for value in x])
    if length == 0.0 or not any(x[1:]):
        return list(x), 0.0
    head = x[0]
    v = [head + (head / abs(head) if head else 1.0) * length, *x[1:]]
    return v, 1.0 / (length * (length + abs(head)))


def _reflect(a: Rows, z: Rows, v: Sequence[Any], f: float, first: int, start: int, end: int) -> None:
    """The matrix between two reflections of the rows and columns from `first`, and z times the reflection.

    Args:
        start: the first column of `a` that changes on the left.
        end: the number of rows that change on the right.
    """
    if f == 0.0:
        return
    size = len(v)
    conjugates = [x.conjugate() for x in v]
    block = a[first : first + size]
    for j in range(start, len(a)):
        total = f * sum([c * row[j] for c, row in zip(conjugates, block, strict=True)])
        for x, row in zip(v, block, strict=True):
            row[j] -= x * total
    for row in [*a[:end], *z]:
        total = f * sum([x * y for x, y in zip(v, row[first : first + size], strict=True)])
        for i, c in enumerate(conjugates, first):
            row[i] -= total * c


def _to_hessenberg(a: Rows, z: Rows) -> None:
    """Make all elements below the first subdiagonal zero."""
    n = len(a)
    for k in range(n - 2):
        v, f = _reflection([a[i][k] for i in range(k + 1, n)])
        _reflect(a, z, v, f, k + 1, k, n)
        for i in range(k + 2, n):
            a[i][k] = 0.0


def _to_schur(a: Rows, z: Rows) -> bool:
    """Make a Hessenberg matrix triangular, but for blocks of real matrices with two conjugate eigenvalues.

    Returns:
        Whether the iteration converged.
    """
    end, steps = len(a) - 1, 0
    whole = max([abs(x) for row in a for x in row], default=0.0)
    while end > 0:
        start = _start_of_block(a, end, whole)
        if start == end:
            end, steps = end - 1, 0
        elif start == end - 1:
            _split(a, z, start)
            end, steps = end - 2, 0
        elif steps == _MOST_STEPS:
            return False
        else:
            steps += 1
            _double_step(a, z, start, end, exceptional=steps % 10 == 0)
    return True


def _start_of_block(a: Rows, end: int, whole: float) -> int:
    """The first row of the last block without a negligible element below the diagonal, which becomes 0."""
    for i in range(end, 0, -1):
        near = abs(a[i - 1][i - 1]) + abs(a[i][i])
        if abs(a[i][i - 1]) <= EPSILON * (near or whole):
            a[i][i - 1] = 0.0
            return i
    return 0


def _double_step(a: Rows, z: Rows, start: int, end: int, exceptional: bool) -> None:
    """One step with the eigenvalues of the last two rows and columns as shifts; after many steps with other ones."""
    if exceptional:
        size = abs(a[end][end - 1]) + abs(a[end - 1][end - 2])
        total, product = (
            a[end][end] + 1.5 * size,
            a[end][end] * (a[end][end] + 1.5 * size) - 0.4375 * size * size,
        )
    else:
        total = a[end - 1][end - 1] + a[end][end]
        product = a[end - 1][end - 1] * a[end][end] - a[end - 1][end] * a[end][end - 1]
    head, below = a[start][start], a[start + 1][start]
    x = [
        head * (head - total) + product + a[start][start + 1] * below,
        below * (head + a[start + 1][start + 1] - total),
        below * a[start + 2][start + 1],
    ]
    for k in range(start, end):
        if k > start:
            x = [a[i][k - 1] for i in range(k, min(k + 3, end + 1))]
        v, f = _reflection(x)
        _reflect(a, z, v, f, k, max(k - 1, start), min(k + 4, end + 1))
        if k > start:
            for i in range(k + 1, min(k + 3, end + 1)):
                a[i][k - 1] = 0.0


def _split(a: Rows, z: Rows, k: int) -> None:
    """Make the block of rows k and k + 1 triangular, unless it is real with complex eigenvalues."""
    (p, q), (r, s) = a[k][k : k + 2], a[k + 1][k : k + 2]
    half = (p - s) / 2
    square = half * half + q * r
    if isinstance(square, float):
        if square < 0.0:
            return
        root: Any = math.sqrt(square)
    else:
        root = cmath.sqrt(square)
    shift = half + root if abs(half + root) >= abs(half - root) else half - root
    # (shift, r) is an eigenvector; the reflection makes it a multiple of the first unit vector.
    v, f = _reflection([shift, r])
    _reflect(a, z, v, f, k, k, k + 2)
    a[k + 1][k] = 0.0


def _values(t: Rows) -> list[complex]:
    """The eigenvalues of the blocks on the diagonal."""
    values: list[complex] = []
    for k in range(len(t)):
        if k and t[k][k - 1]:
            continue
        if k + 1 == len(t) or not t[k + 1][k]:
            values.append(complex(t[k][k]))
            continue
        half = (t[k][k] - t[k + 1][k + 1]) / 2
        root = math.sqrt(-(half * half + t[k][k + 1] * t[k + 1][k]))
        middle = t[k + 1][k + 1] + half
        values += [complex(middle, root), complex(middle, -root)]
    return values


def _vectors(t: Rows, z: Rows, weights: Sequence[float], values: Sequence[complex]) -> Rows:
    """The eigenvectors of the eigenvalues, in their order."""
    is_real = all([isinstance(x, float) for row in t for x in row])
    least = EPSILON * max([abs(x) for row in t for x in row], default=0.0) or 2.0**-1000
    found: Rows = []
    for k, value in enumerate(values):
        if k and t[k][k - 1]:
            found.append([x.conjugate() for x in found[-1]])
            continue
        x = _substituted(t, k, value.real if is_real and not value.imag else value, least)
        vector = [
            w * sum([q * y for q, y in zip(row, x, strict=True)]) for w, row in zip(weights, z, strict=True)
        ]
        found.append(_normalized(vector))
    return found


def _substituted(t: Rows, k: int, value: Any, least: float) -> list[Any]:
    """The eigenvector of the block that begins in row k, by back substitution.

    Args:
        least: the smallest distance of other eigenvalues; smaller ones count as this.
    """
    x: list[Any] = [0.0] * len(t)
    last = k
    x[k] = 1.0
    if k + 1 < len(t) and t[k + 1][k]:
        last = k + 1
        x[k], x[k + 1] = t[k][k + 1], value - t[k][k]
    i = k - 1
    while i >= 0:
        above, right = [-sum([t[j][m] * x[m] for m in range(i + 1, last + 1)]) for j in (i - 1, i)]
        if i and t[i][i - 1]:
            (p, q), (r, s) = t[i - 1][i - 1 : i + 1], t[i][i - 1 : i + 1]
            p, s = p - value, s - value
            determinant = p * s - q * r
            if abs(determinant) < least * least:
                determinant = least * least
            x[i - 1], x[i] = (s * above - q * right) / determinant, (p * right - r * above) / determinant
            i -= 2
        else:
            gap = t[i][i] - value
            x[i] = right / (gap if abs(gap) > least else least)
            i -= 1
        size = max([abs(y) for y in x])
        if size > _LARGE:
            x = [y / size for y in x]
    return x


def _normalized(x: list[Any]) -> list[complex]:
    """The vector of length 1 in this direction whose largest component is real."""
    size = max([abs(y) for y in x]) or 1.0
    x = [y / size for y in x]
    length = math.hypot(*[abs(y) for y in x])
    k = max(range(len(x)), key=lambda i: abs(x[i]))
    if isinstance(x[k], complex):
        turn = x[k].conjugate() / abs(x[k])
        x = [y * turn for y in x]
        x[k] = x[k].real
    return [complex(y / length) for y in x]
