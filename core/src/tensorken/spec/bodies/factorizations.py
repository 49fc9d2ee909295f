"""Bodies that eliminate or reflect, one column of all matrices of a batch at a time.

Rows and columns stay where they are, and masks say which of them a step changes, so that every step is a few ops on
whole matrices.
"""

from __future__ import annotations

from typing import Any

from tensorken.spec.bodies.matrices import (
    columns,
    diagonal,
    from_lower,
    identity,
    product,
    row_numbers,
    rows,
    size,
    upper_triangle,
)
from tensorken.spec.op import OPS

Tensor = Any

NAN = float("nan")


def eliminate(a: Tensor, b: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
    """Gaussian elimination with partial pivoting on the rows of a, and of b beside them.

    Returns:
        The upper triangular factor of a, b after the same steps, and the sign of the order of the rows.

    G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, 2013, algorithm 3.4.1.
    """
    n, both = a.shape[-1], a if b is None else a.concatenate(b, axis=-1)
    row = row_numbers(a, n)
    sign = a.sum((-2, -1)).ones_like()
    for k in range(n - 1):
        column = columns(both, k, k + 1)
        candidates = (row >= k).where(column.abs(), -1.0)
        pivot = candidates.apply(OPS["argmax"], a.ndim - 2)
        chosen = row.eq(pivot)
        pivot_row, other_row = chosen.where(both, 0.0).sum(-2, keepdims=True), rows(both, k, k + 1)
        both = row.eq(k).where(pivot_row, chosen.where(other_row, both))
        sign = pivot.eq(k).reshape(sign.shape).where(sign, -sign)
        head = columns(pivot_row, k, k + 1)
        flat = head.eq(0.0)  # then all elements below it are zeros too
        factors = (row > k).where(columns(both, k, k + 1) / flat.where(1.0, head), 0.0)
        both = both - factors * pivot_row
    upper = upper_triangle(columns(both, 0, n))
    return upper, None if b is None else columns(both, n, both.shape[-1]), sign


def triangular_solve(a: Tensor, b: Tensor, lower: bool) -> Tensor:
    """Substitution: each row of the solution, once known, leaves the equations of the rows that follow."""
    n = a.shape[-1]
    if n == 0:
        return b
    row, found = row_numbers(a, n), []
    for k in range(n) if lower else range(n - 1, -1, -1):
        column = columns(a, k, k + 1)
        known = rows(b, k, k + 1) / rows(column, k, k + 1)
        found.append(known)
        rest = row > k if lower else row < k
        b = b - rest.where(column, 0.0) * known
    first, *others = found if lower else found[::-1]
    x = first.concatenate(*others, axis=-2) if others else first
    least = diagonal(a).abs().min(-1)
    return least.eq(0.0).reshape((*least.shape, 1, 1)).where(NAN, x)


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Elimination, then substitution, which gives NaN for a matrix with a pivot of zero."""
    upper, right, _ = eliminate(a, b)
    return upper.apply(OPS["triangular_solve"], right, False)


def inv(x: Tensor) -> Tensor:
    return x.apply(OPS["solve"], identity(x, x.shape[-1], x.shape[-1]))


def det(x: Tensor) -> Tensor:
    upper, _, sign = eliminate(x, None)
    return sign * product(diagonal(upper))


def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    upper, _, sign = eliminate(x, None)
    pivots = diagonal(upper)
    return sign * product(pivots.sign()) + 0.0, pivots.abs().log().sum(-1)  # no zero with a sign


def cholesky(x: Tensor) -> Tensor:
    """Right-looking: each column, divided by the root of its first element, leaves its square in what follows.

    A matrix that is not positive definite has, at some step, a first element that is not above 0; it gives NaN.
    """
    n, row = x.shape[-1], row_numbers(x, x.shape[-1])
    rest, found = from_lower(x), []
    failed = x.sum((-2, -1), keepdims=True).zeros_like().eq(1.0)
    for k in range(n):
        column = columns(rest, k, k + 1)
        head = rows(column, k, k + 1)
        failed = failed.where(True, (head > 0.0).eq(False))
        root = head.sqrt()
        column = row.eq(k).where(root, (row > k).where(column / root, 0.0))
        found.append(column)
        rest = rest - column * column.mT
    if not found:
        return x
    factor = found[0].concatenate(*found[1:], axis=-1) if n > 1 else found[0]
    return failed.where(NAN, factor)


def qr(x: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    """Householder's reflections I - scale * v @ v.T, as LAPACK's dlarfg makes them; Q is their product.

    A column that has only zeros below the diagonal needs none, and keeps its sign.
    """
    m, n = x.shape[-2:]
    width = m if complete else min(m, n)
    row, upper, reflections = row_numbers(x, m), x, []
    for k in range(min(m - 1, n)):
        column = (row >= k).where(columns(upper, k, k + 1), 0.0)
        column = column / size(
            column, -2
        )  # or a short one would lose its digits, and the reflection with them
        below, head = (row > k).where(column, 0.0), rows(column, k, k + 1)
        length = column.square().sum(-2, keepdims=True).sqrt()
        flat = below.abs().max(-2, keepdims=True).eq(0.0)
        image = (head < 0.0).where(length, -length)
        v = row.eq(k).where(1.0, below / flat.where(1.0, head - image))
        scale = flat.where(0.0, (image - head) / flat.where(1.0, image))
        upper = upper - (scale * v) * (v * upper).sum(-2, keepdims=True)
        reflections.append((v, scale))
    basis = identity(x, m, width)
    for v, scale in reversed(reflections):
        basis = basis - (scale * v) * (v * basis).sum(-2, keepdims=True)
    return basis, upper_triangle(rows(upper, 0, width))
