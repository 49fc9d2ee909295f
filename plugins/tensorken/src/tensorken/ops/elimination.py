"""Bodies of solve, det, cholesky and qr: each step eliminates or reflects one column, in all matrices of a batch.

A step selects the rows that it changes with masks, so all steps are the same ops on the same shapes, and run as the
steps of a loop.
"""

from __future__ import annotations

from typing import Any

from tensorken.ops.matrices import (
    adjoint,
    as_column,
    as_row,
    column_at,
    column_indices,
    columns,
    conjugate,
    diagonal,
    from_lower,
    identity,
    is_complex,
    product,
    real_part,
    row_at,
    row_indices,
    rows,
    square_of_modulus,
    upper_triangle,
)
from tensorken.ops.steps import loop
from tensorken_core.language.bodies.norms import scale_of
from tensorken_core.language.op import OPS

Tensor = Any

NAN = float("nan")


def eliminate(a: Tensor, b: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor]:
    """Gaussian elimination with partial pivoting on the rows of the block matrix [a, b].

    Returns:
        The upper triangular factor of a, b after the same steps, and the sign of the row permutation.

    G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th edition, 2013, algorithm 3.4.1.
    """
    n, both = a.shape[-1], a if b is None else a.concatenate(b, axis=-1)
    row = row_indices(a, n)
    start = (both, a.sum((-2, -1)).ones_like())
    (both, sign), _ = loop(_eliminate_column, start, [(row, k) for k in range(n - 1)])
    upper = upper_triangle(columns(both, 0, n))
    return upper, None if b is None else columns(both, n, both.shape[-1]), sign


def _eliminate_column(both: Tensor, sign: Tensor, row: Tensor, k: Any) -> tuple[Tensor, Tensor]:
    """Exchange row k with the row of the pivot, then eliminate column k; also update the sign of the permutation."""
    candidates = (row >= k).where(column_at(both, k).abs(), -1.0)
    pivot = candidates.apply(OPS["argmax"], both.ndim - 2)
    chosen = row.eq(pivot)
    pivot_row, other_row = chosen.where(both, 0.0).sum(-2, keepdims=True), row_at(both, k)
    both = row.eq(k).where(pivot_row, chosen.where(other_row, both))
    sign = pivot.eq(k).reshape(sign.shape).where(sign, -sign)
    head = column_at(pivot_row, k)
    flat = head.eq(0.0)  # then all elements below the pivot are zeros too
    factors = (row > k).where(column_at(both, k) / flat.where(1.0, head), 0.0)
    return both - factors * pivot_row, sign


def triangular_solve(a: Tensor, b: Tensor, lower: bool) -> Tensor:
    """Forward or back substitution: each known row of the solution is subtracted from the equations that remain.

    The solution is divided by the diagonal once, at the end; a step divides only the row that it subtracts.
    """
    n = a.shape[-1]
    if n == 0:
        return b
    row = row_indices(a, n)
    step, order = (_substitute_below, range(n - 1)) if lower else (_substitute_above, range(n - 1, 0, -1))
    (b,), _ = loop(step, (b,), [(a, row, k) for k in order])
    pivots = as_column(diagonal(a))
    return pivots.abs().min(-2, keepdims=True).eq(0.0).where(NAN, b / pivots)


def _substitute_below(b: Tensor, a: Tensor, row: Tensor, k: Any) -> tuple[Tensor]:
    return (_subtract_known(b, a, row > k, k),)


def _substitute_above(b: Tensor, a: Tensor, row: Tensor, k: Any) -> tuple[Tensor]:
    return (_subtract_known(b, a, row < k, k),)


def _subtract_known(b: Tensor, a: Tensor, rest: Tensor, k: Any) -> Tensor:
    """The right-hand side, minus the terms with row k of the solution in the remaining rows."""
    column = column_at(a, k)
    return rest.where(b - column * (row_at(b, k) / row_at(column, k)), b)


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Elimination, then back substitution, whose result is NaN for a matrix with a zero pivot."""
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
    return sign * product(pivots.sign()) + 0.0, pivots.abs().log().sum(-1)  # + 0.0 turns -0.0 into 0.0


def cholesky(x: Tensor) -> Tensor:
    """The right-looking algorithm: each step subtracts the outer product of a column from the columns after it.

    The columns are divided by the square roots of the diagonal once, at the end.  If an element of the diagonal is not
    positive, the matrix is not positive definite and the result is NaN.
    """
    n = x.shape[-1]
    if n == 0:
        return x
    row, number = row_indices(x, n), column_indices(x, n)
    (rest,), _ = loop(_subtract_square, (from_lower(x),), [(row, k) for k in range(n - 1)])
    heads = as_row(real_part(diagonal(rest)))
    roots = heads.sqrt()
    factor = row.eq(number).where(roots, (row > number).where(rest / roots, 0.0))
    return (heads > 0.0).eq(False).max(-1, keepdims=True).where(NAN, factor)


def _subtract_square(rest: Tensor, row: Tensor, k: Any) -> tuple[Tensor]:
    column = column_at(rest, k)
    below = (row > k).where(column / real_part(row_at(column, k)).sqrt(), 0.0)
    return (rest - below * adjoint(below),)


def qr(x: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    """Householder reflections I - scale * v @ v.H, as in LAPACK's dlarfg and zlarfg; Q is their product.

    A column with only zeros below the diagonal is not reflected, and keeps its sign.  The diagonal of R is real, also
    of a complex matrix.
    """
    m, n = x.shape[-2:]
    width = m if complete else min(m, n)
    row = row_indices(x, m)
    count = min(m if is_complex(x) else m - 1, n)  # the last number of a column has a phase too
    (upper,), reflections = loop(_reflect_column, (x,), [(row, k) for k in range(count)])
    (basis,), _ = loop(_reflect, (identity(x, m, width),), reflections[::-1])
    upper = upper_triangle(rows(upper, 0, width))
    if is_complex(x):
        on_diagonal = row_indices(upper, width).eq(column_indices(upper, n))
        upper = type(x)(upper.real, on_diagonal.where(0.0, upper.imag))
    return basis, upper


def _reflect_column(upper: Tensor, row: Tensor, k: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The matrix after the reflection that makes column k zero below the diagonal, and that reflection."""
    column = (row >= k).where(column_at(upper, k), 0.0)
    column = column / scale_of(column, -2)  # so that squares neither overflow nor vanish
    below, head = (row > k).where(column, 0.0), row_at(column, k)
    length = square_of_modulus(column).sum(-2, keepdims=True).sqrt()
    flat = below.abs().max(-2, keepdims=True).eq(0.0)
    if is_complex(head):
        flat = flat & head.imag.eq(0.0)
    image = (real_part(head) < 0.0).where(length, -length)
    v = row.eq(k).where(1.0, below / flat.where(1.0, head - image))
    scale = flat.where(0.0, (image - head) / flat.where(1.0, image))
    return *_reflect(upper, v, conjugate(scale)), v, scale


def _reflect(x: Tensor, v: Tensor, scale: Tensor) -> tuple[Tensor]:
    return (x - (scale * v) * (conjugate(v) * x).sum(-2, keepdims=True),)
