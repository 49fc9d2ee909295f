# mypy: disable-error-code="empty-body"
"""The derived ops that factor a matrix: cholesky, qr, eigh, svd.

Derivatives: I. Murray, "Differentiation of the Cholesky decomposition", 2016; M. Seeger et al., "Auto-differentiating
linear algebra", 2017 (qr, eigh); M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008, and J. Townsend, "Differentiating the singular value decomposition", 2016 (svd).
"""

from __future__ import annotations

from typing import Any

from tensorken.ops import elimination, jacobi
from tensorken.ops.matrices import (
    adjoint,
    as_column,
    as_row,
    columns,
    diagonal,
    diagonal_matrix,
    divided_by_all_gaps,
    divided_by_gaps,
    from_lower,
    gaps_of,
    halved_triangle,
    is_complex,
    lower_triangle,
    real_part,
)
from tensorken.ops.matrix_op import matrices, matrix_op, square
from tensorken_core.errors import GradientError
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

# ---- cholesky ----------------------------------------------------------------------------------------------


def _cholesky_jvp(t: Any, y: Any, x: Any) -> Any:
    substitute = OPS["triangular_solve"]
    inner = y.apply(substitute, adjoint(y.apply(substitute, from_lower(t), True)), True)
    return y @ halved_triangle(inner)


def _cholesky_vjp(t: Any, y: Any, x: Any) -> Any:
    substitute, transposed = OPS["triangular_solve"], adjoint(y)
    inner = transposed.apply(substitute, halved_triangle(transposed @ t), False)
    outer = transposed.apply(substitute, adjoint(inner), False)
    return halved_triangle(outer + adjoint(outer))


# ---- qr ----------------------------------------------------------------------------------------------------


def _qr_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The rule for the first columns of x, as many as Q has; the tangents of the other columns only enter R."""
    (t,), (q, r), width = tangents, ys, _width(xs[0], params[0])
    dx_r_inv = _times_inverse(columns(t, 0, width), columns(r, 0, width))
    inner = adjoint(q) @ dx_r_inv
    skew = _skew(inner)  # q.H @ dq
    return dx_r_inv - q @ (inner - skew), adjoint(q) @ t - skew @ r


def _qr_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (q, r), width = ys, _width(xs[0], params[0])
    q_ct, r_ct = [y.zeros_like() if t is None else t for t, y in zip(cotangents, ys, strict=True)]
    inner = adjoint(q) @ q_ct
    skew = inner - r_ct @ adjoint(r)
    below = lower_triangle(skew - adjoint(skew), -1)
    if is_complex(skew):
        below = below + _imaginary_diagonal(skew)
    adjusted = q_ct + q @ (below - inner)
    pulled = _times_inverse(adjusted, columns(r, 0, width), transposed=True)
    missing = xs[0].shape[-1] - width
    if missing:
        pulled = pulled.pad((*[(0, 0)] * (pulled.ndim - 1), (0, missing)))
    return (q @ r_ct + pulled,)


def _skew(x: Any) -> Any:
    """The skew-Hermitian matrix with the lower triangle of x; of the diagonal it has the imaginary part."""
    below = lower_triangle(x, -1)
    skew = below - adjoint(below)
    return skew + _imaginary_diagonal(x) if is_complex(x) else skew


def _imaginary_diagonal(x: Any) -> Any:
    """The imaginary part of the diagonal of a square matrix, as a matrix."""
    imag = diagonal_matrix(diagonal(x.imag))
    return type(x)(imag.zeros_like(), imag)


def _times_inverse(x: Any, upper: Any, transposed: bool = False) -> Any:
    """x @ inv(upper), or x @ inv(upper.H) if transposed, for an upper triangular matrix."""
    factor = upper if transposed else adjoint(upper)
    return adjoint(factor.apply(OPS["triangular_solve"], adjoint(x), not transposed))


def _width(x: Any, complete: bool) -> int:
    """The number of columns of Q."""
    m, n = x.shape[-2:]
    if complete and m > n:
        raise GradientError(
            f"qr: cannot differentiate mode='complete' for shape {x.shape}: the added columns of Q are not unique; "
            f"use mode='reduced'"
        )
    return min(m, n)  # type: ignore[no-any-return]


def _shapes_of_qr(x: Shape, complete: bool) -> tuple[Shape, Shape]:
    *batch, m, n = matrices(x)
    width = m if complete else min(m, n)
    return (*batch, m, width), (*batch, width, n)


# ---- eigh --------------------------------------------------------------------------------------------------


def _eigh_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), (values, vectors) = tangents, ys
    inner = (adjoint(vectors) @ from_lower(t)) @ vectors
    return _tied(real_part(diagonal(inner)), values), vectors @ divided_by_gaps(inner, gaps_of(values))


def _eigh_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (values_ct, vectors_ct), (values, vectors) = cotangents, ys
    inner = None if values_ct is None else diagonal_matrix(_tied(values_ct, values))
    if vectors_ct is not None:
        turn = adjoint(vectors) @ vectors_ct
        # A function of the vectors alone may be smooth where eigenvalues are equal; one of both needs more than this.
        if values_ct is None:
            off_diagonal = divided_by_all_gaps(_half_skew(turn), values, [turn])
        else:
            off_diagonal = divided_by_gaps(turn, gaps_of(values))
        inner = off_diagonal if inner is None else inner + off_diagonal
    outer = (vectors @ inner) @ adjoint(vectors)
    return (halved_triangle(outer + adjoint(outer)),)


def _tied(t: Any, values: Any) -> Any:
    """t, as a function of the values too: the derivative of a rule for them is that of values and vectors together.

    The rules for vectors alone take 0 where values are equal, which is wrong for the second derivative of a function
    of the values; that of both is not finite there.
    """
    return t + values * 0.0


def _half_skew(x: Any) -> Any:
    """Half of x minus its adjoint: the sum of this and its adjoint, over gaps, is that of x."""
    return (x - adjoint(x)) * 0.5


def _eigvalsh_jvp(t: Any, y: Any, x: Any) -> Any:
    values, vectors = x.apply(OPS["eigh"])
    return _tied(real_part(diagonal((adjoint(vectors) @ from_lower(t)) @ vectors)), values)


def _eigvalsh_vjp(t: Any, y: Any, x: Any) -> Any:
    values, vectors = x.apply(OPS["eigh"])
    outer = (vectors * as_row(_tied(t, values))) @ adjoint(vectors)
    return halved_triangle(outer + adjoint(outer))


# ---- svd ---------------------------------------------------------------------------------------------------


def _svd_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), (left, values, right) = tangents, _checked_factors(ys, xs[0], params[0])
    m, n = xs[0].shape[-2:]
    inner = (adjoint(left) @ t) @ adjoint(right)
    gaps, row, column = gaps_of(values), as_row(values), as_column(values)
    inner_h, shares = adjoint(inner), _shares(values)
    turn = divided_by_gaps(inner * shares + inner_h * shares.mT, gaps)
    if is_complex(inner):  # only the left vectors turn
        turn = turn + _imaginary_diagonal(inner) / row
    d_left = left @ turn
    d_right = adjoint(divided_by_gaps(inner * shares.mT + inner_h * shares, gaps)) @ right
    if m > n:
        d_left = d_left + (t @ adjoint(right) - left @ inner) / row
    if n > m:
        d_right = d_right + (adjoint(left) @ t - inner @ right) / column
    return d_left, _tied(real_part(diagonal(inner)), values), d_right


def _svd_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (left_ct, values_ct, right_ct), (left, values, right) = cotangents, _checked_factors(ys, xs[0], params[0])
    m, n = xs[0].shape[-2:]
    inner = diagonal_matrix(values.zeros_like() if values_ct is None else _tied(values_ct, values))
    outer = None
    joint = values_ct is None and left_ct is not None and right_ct is not None
    if joint:
        # A product of both may be smooth where singular values are equal: the parts that are divided by the
        # difference and by the sum of two of them are apart.
        turn, other = _half_skew(adjoint(left) @ left_ct), _half_skew(right @ adjoint(right_ct))
        total = as_row(values) + as_column(values)
        inner = divided_by_all_gaps(turn + other, values, [turn, other]) + divided_by_gaps(
            turn - other, total
        )
    if left_ct is not None:
        turn = adjoint(left) @ left_ct
        if not joint:
            inner = inner + divided_by_gaps(turn - adjoint(turn), gaps_of(values)) * _shares(values)
        if is_complex(turn):
            inner = inner + _imaginary_diagonal(turn) / as_row(values)
        if m > n:
            scaled = left_ct / as_row(values)
            inner, outer = inner - adjoint(left) @ scaled, scaled @ right
    if right_ct is not None:
        if not joint:
            other = right @ adjoint(right_ct)
            inner = inner + divided_by_gaps(other - adjoint(other), gaps_of(values)) * _shares(values).mT
        if n > m:
            scaled = right_ct / as_column(values)
            inner, outer = inner - scaled @ adjoint(right), left @ scaled
    pulled = (left @ inner) @ right
    return (pulled if outer is None else pulled + outer,)


def _shares(values: Any) -> Any:
    """values[j] / (values[i] + values[j]) in row i and column j, and 0 on the diagonal.

    They stand for the values over the differences of their squares, which overflow or underflow before the values do.
    """
    return divided_by_gaps(as_row(values), as_row(values) + as_column(values))


def _checked_factors(ys: Any, x: Any, full_matrices: bool) -> Any:
    m, n = x.shape[-2:]
    if full_matrices and m != n:
        raise GradientError(
            f"svd: cannot differentiate full_matrices=True for shape {x.shape}: the added singular vectors are not "
            f"unique; use full_matrices=False"
        )
    return ys


def _svdvals_jvp(t: Any, y: Any, x: Any) -> Any:
    left, values, right = x.apply(OPS["svd"], False)
    return _tied(real_part(diagonal((adjoint(left) @ t) @ adjoint(right))), values)


def _svdvals_vjp(t: Any, y: Any, x: Any) -> Any:
    left, values, right = x.apply(OPS["svd"], False)
    return (left * as_row(_tied(t, values))) @ right


def _shapes_of_svd(x: Shape, full_matrices: bool) -> tuple[Shape, Shape, Shape]:
    *batch, m, n = matrices(x)
    least = min(m, n)
    if full_matrices:
        return (*batch, m, m), (*batch, least), (*batch, n, n)
    return (*batch, m, least), (*batch, least), (*batch, least, n)


class Factorizations(Interpreter[R]):
    """Matrix factorizations."""

    @matrix_op(jvp=(_cholesky_jvp,), vjp=(_cholesky_vjp,), body=elimination.cholesky, min_loop_steps=1)
    def cholesky(self, x: R) -> R:
        """The lower triangular L with L @ L.T = x; reads the lower triangle of x; NaN if x is not positive definite."""

    @matrix_op(
        shape=_shapes_of_qr,
        params=("flag",),
        results=2,
        jvp_all=_qr_jvp,
        vjp_all=_qr_vjp,
        body=elimination.qr,
        min_loop_steps=2,
        samples=((((3, 2),), (False,)), (((2, 2, 3),), (False,)), (((2, 2),), (True,))),
    )
    def qr(self, x: R, complete: bool) -> tuple[R, R]:
        """Q with orthonormal columns and upper triangular R, Q @ R = x; Q is square if complete, else no wider than x.

        The derivative assumes that the first columns of x, as many as Q has, are linearly independent.
        """

    @matrix_op(
        shape=lambda x: (square(x)[:-1], x),
        results=2,
        jvp_all=_eigh_jvp,
        vjp_all=_eigh_vjp,
        body=jacobi.eigh,
        min_loop_steps=8,
    )
    def eigh(self, x: R) -> tuple[R, R]:
        """The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns; reads the lower triangle.

        The derivative of eigenvectors is not finite where eigenvalues are equal.
        """

    @matrix_op(
        shape=lambda x: square(x)[:-1],
        jvp=(_eigvalsh_jvp,),
        vjp=(_eigvalsh_vjp,),
        body=jacobi.eigvalsh,
        min_loop_steps=8,
    )
    def eigvalsh(self, x: R) -> R:
        """The eigenvalues of a symmetric matrix, ascending; only the lower triangle is read."""

    @matrix_op(
        shape=_shapes_of_svd,
        params=("flag",),
        results=3,
        jvp_all=_svd_jvp,
        vjp_all=_svd_vjp,
        body=jacobi.svd,
        min_loop_steps=8,
        samples=((((3, 2),), (False,)), (((2, 2, 3),), (False,)), (((2, 2),), (True,))),
    )
    def svd(self, x: R, full_matrices: bool) -> tuple[R, R, R]:
        """U, S, Vh with (U * S) @ Vh = x: orthonormal columns, descending singular values, orthonormal rows.

        The derivative of singular vectors is not finite where singular values are equal.
        """

    @matrix_op(
        shape=lambda x: _shapes_of_svd(x, False)[1],
        jvp=(_svdvals_jvp,),
        vjp=(_svdvals_vjp,),
        body=jacobi.svdvals,
        min_loop_steps=8,
        samples=((((3, 2),), ()), (((2, 2, 3),), ())),
    )
    def svdvals(self, x: R) -> R:
        """The singular values, descending."""
