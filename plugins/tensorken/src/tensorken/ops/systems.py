# mypy: disable-error-code="empty-body"
"""Derived ops on systems of linear equations: solve, inv, det, slogdet, pinv and their relatives.

The result for a matrix with a zero pivot in Gaussian elimination, which is singular, is NaN.

Derivatives: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008.
"""

from __future__ import annotations

from typing import Any

from tensorken.ops import elimination, spectral
from tensorken.ops.matrices import adjoint, conjugate, is_complex, lower_triangle, upper_triangle
from tensorken.ops.matrix_op import dominant, matrices, matrix_op, square, system
from tensorken_core.errors import ShapeError
from tensorken_core.language.dtypes import int32
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape

# ---- solutions ---------------------------------------------------------------------------------------------


def _solve_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The solution dy of a @ dy = db - da @ y."""
    (da, db), (y,) = tangents, ys
    right = db if da is None else -(da @ y) if db is None else db - da @ y
    return (xs[0].apply(OPS["solve"], right),)


def _solve_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), (y,) = cotangents, ys
    b_ct = adjoint(xs[0]).apply(OPS["solve"], t)
    return -(b_ct @ adjoint(y)), b_ct


def _triangle(x: Any, lower: bool) -> Any:
    return lower_triangle(x) if lower else upper_triangle(x)


def _triangular_solve_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The rule of `solve`, with only the triangle of da that the op reads."""
    (da, db), (y,), (lower,) = tangents, ys, params
    if da is not None:
        product = _triangle(da, lower) @ y
        db = -product if db is None else db - product
    return (xs[0].apply(OPS["triangular_solve"], db, lower),)


def _triangular_solve_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    (t,), (y,), (lower,) = cotangents, ys, params
    b_ct = adjoint(xs[0]).apply(OPS["triangular_solve"], t, not lower)
    return -_triangle(b_ct @ adjoint(y), lower), b_ct


# ---- determinants ------------------------------------------------------------------------------------------


def _per_matrix(t: Any) -> Any:
    """Add two axes of size 1, so that each number scales the matrix at its index."""
    return t.reshape((*t.shape, 1, 1))


def _cofactors(x: Any) -> Any:
    """The derivative of the determinant, without the inverse, which may not exist.

    Up to size 3 it is an explicit formula, so it can be differentiated to any order at any matrix.
    """
    n = x.shape[-1]
    if n > 3:
        return x.apply(OPS["cofactors"])
    if n < 2:
        return x.ones_like()
    if n == 2:
        return x.flip((-2, -1)) * x.constant([1.0, -1.0, -1.0, 1.0], x.dtype, (2, 2))
    second, third = x.constant([1, 2, 0], int32, (3,)), x.constant([2, 0, 1], int32, (3,))
    below, last = x.gather(second, -2), x.gather(third, -2)
    minors = below.gather(second, -1) * last.gather(third, -1)
    return minors - below.gather(third, -1) * last.gather(second, -1)


def _slogdet_jvp(tangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    """The logarithm of the determinant changes by the trace of inv(x) @ dx; its imaginary part turns the sign."""
    change = (tangents[0] * xs[0].apply(OPS["inv"]).mT).sum((-2, -1))
    if not is_complex(change):
        return None, change
    return ys[0] * type(change)(change.imag.zeros_like(), change.imag), change.real


def _slogdet_vjp(cotangents: Any, ys: Any, xs: Any, params: Any) -> Any:
    of_sign, t = cotangents
    if of_sign is not None and is_complex(of_sign):
        turn = (conjugate(ys[0]) * of_sign).imag
        t = type(of_sign)(turn.zeros_like() if t is None else t, turn)
    return (None if t is None else _per_matrix(t) * adjoint(xs[0].apply(OPS["inv"])),)


def _batch_shape(x: Shape) -> Shape:
    return square(x)[:-2]


# ---- the pseudoinverse -------------------------------------------------------------------------------------


def _pinv_jvp(t: Any, y: Any, x: Any, rtol: Any) -> Any:
    """G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems", 1973."""
    t_h, y_h = adjoint(t), adjoint(y)
    outside = t_h - (t_h @ x) @ y
    across = (t_h @ y_h) @ y
    return y @ (y_h @ outside) - (y @ t) @ y + (across - y @ (x @ across))


def _pinv_vjp(t: Any, y: Any, x: Any, rtol: Any) -> Any:
    t_h, y_h = adjoint(t), adjoint(y)
    left, right = t_h @ y, y @ t_h  # no product of three y, which may underflow
    return (left - x @ (y @ left)) @ y_h - (y_h @ t) @ y_h + y_h @ (right - (right @ y) @ x)


def _pinv_shape(x: Shape, rtol: Shape) -> Shape:
    *batch, m, n = matrices(x)
    if rtol != tuple(batch):
        raise ShapeError(f"need one rtol for each matrix of shape {x}, got shape {rtol}; broadcast it first")
    return (*batch, n, m)


class Systems(Interpreter[R]):
    """Solutions, inverses, determinants, the pseudoinverse."""

    @matrix_op(
        shape=system,
        jvp_all=_solve_jvp,
        vjp_all=_solve_vjp,
        body=elimination.solve,
        min_loop_steps=2,
        samples=((((3, 3), (3, 2)), ()), (((2, 2, 2), (2, 2, 1)), ())),
    )
    def solve(self, a: R, b: R) -> R:
        """The y with a @ y = b, for square a; NaN if a is singular."""

    @matrix_op(
        shape=system,
        params=("flag",),
        jvp_all=_triangular_solve_jvp,
        vjp_all=_triangular_solve_vjp,
        body=elimination.triangular_solve,
        min_loop_steps=1,
        samples=((((3, 3), (3, 2)), (True,)), (((2, 2, 2), (2, 2, 1)), (False,))),
    )
    def triangular_solve(self, a: R, b: R, lower: bool) -> R:
        """The y with a @ y = b, for triangular a; reads one triangle of a; NaN if a is singular."""

    @matrix_op(
        jvp=(lambda t, y, x: -((y @ t) @ y),),
        vjp=(lambda t, y, x: -((adjoint(y) @ t) @ adjoint(y)),),
        body=elimination.inv,
        min_loop_steps=2,
    )
    def inv(self, x: R) -> R:
        """The inverse of a square matrix; NaN if it is singular."""

    @matrix_op(
        shape=_batch_shape,
        jvp=(lambda t, y, x: (t * _cofactors(x)).sum((-2, -1)),),
        vjp=(lambda t, y, x: _per_matrix(t) * conjugate(_cofactors(x)),),
        body=elimination.det,
        min_loop_steps=1,
        samples=((((3, 3),), ()), (((2, 2, 2),), ()), (((1, 1),), ()), (((4, 4),), ())),
    )
    def det(self, x: R) -> R:
        """The determinant of a square matrix; the derivative is correct for singular matrices too."""

    @matrix_op(
        jvp=(spectral.cofactors_derivative,),
        vjp=(lambda t, y, x: conjugate(spectral.cofactors_derivative(conjugate(t), y, x)),),
        body=spectral.cofactors,
        min_loop_steps=8,
        samples=((((4, 4),), ()), (((2, 2, 2),), ())),
    )
    def cofactors(self, x: R) -> R:
        """The matrix of cofactors, the derivative of det: (-1)**(i + j) * det(x without row i and column j).

        The first derivative is correct for every matrix.  Higher derivatives use svd's, so they are NaN where
        singular values are equal.
        """

    @matrix_op(
        shape=lambda x: (_batch_shape(x),) * 2,
        results=2,
        jvp_all=_slogdet_jvp,
        vjp_all=_slogdet_vjp,
        body=elimination.slogdet,
        min_loop_steps=1,
    )
    def slogdet(self, x: R) -> tuple[R, R]:
        """The sign of the determinant and the logarithm of its absolute value; 0 and -inf for a singular matrix."""

    @matrix_op(
        shape=_pinv_shape,
        jvp=(_pinv_jvp, None),
        vjp=(_pinv_vjp, None),
        body=spectral.pinv,
        min_loop_steps=8,
        adjust_samples=lambda x, rtol: (*dominant(x), rtol.zeros_like()),
        samples=((((3, 2), ()), ()), (((2, 2, 3), (2,)), ())),
    )
    def pinv(self, x: R, rtol: R) -> R:
        """The pseudoinverse; singular values that are at most rtol times the largest count as 0."""
