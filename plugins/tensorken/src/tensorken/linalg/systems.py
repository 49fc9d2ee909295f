"""Systems of linear equations: solutions, inverses, determinants, least squares, rank."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.products import matmul
from tensorken.linalg.operands import applied, check, matrices, square, system
from tensorken.ops.matrices import EPSILON, square_of_modulus
from tensorken_core.language.dtypes import real_dtype
from tensorken_core.language.op import OPS
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "LstsqResult",
    "SlogdetResult",
    "det",
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "slogdet",
    "solve",
    "solve_triangular",
]

SINGULAR = "is singular; use lstsq or pinv for a solution of least squares"


class SlogdetResult(NamedTuple):
    """The result of `slogdet`.

    >>> import tensorken as tk
    >>> tk.linalg.slogdet(-tk.eye(1)).sign.item()
    -1.0
    """

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """The result of `lstsq`.

    >>> import tensorken as tk
    >>> tk.linalg.lstsq(tk.eye(3, 2), tk.ones(3)).rank.item()
    2
    """

    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def solve(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """The x with a @ x = b.

    Args:
        a: of shape (..., n, n).
        b: of shape (n,) for one vector, else (..., n, k) for k right-hand sides; batch axes broadcast.

    Raises:
        ShapeError: if a is not square, or b does not fit it.
        LinearAlgebraError: if a matrix is singular; if its values are unknown, the result is NaN.

    >>> import tensorken as tk
    >>> tk.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 8.0]).tolist()
    [1.0, 2.0]
    """
    matrix, columns, shape = system("solve", a, b)
    x = applied("solve", matrix, columns)
    check("solve", x, (matrix, columns), SINGULAR)
    return x.reshape(shape)


def solve_triangular(a: ArrayLike, b: ArrayLike, /, *, lower: bool = False) -> Tensor:
    """The x with a @ x = b for triangular a, by substitution.

    Args:
        a: of shape (..., n, n); the other triangle is not read.
        b: of shape (n,) for one vector, else (..., n, k) for k right-hand sides; batch axes broadcast.
        lower: whether a is lower triangular.

    Raises:
        ShapeError: if a is not square, or b does not fit it.
        LinearAlgebraError: if a diagonal has a zero; if its values are unknown, the result is NaN.

    >>> import tensorken as tk
    >>> tk.linalg.solve_triangular([[1.0, 0.0], [2.0, 4.0]], [1.0, 6.0], lower=True).tolist()
    [1.0, 1.0]
    """
    matrix, columns, shape = system("solve_triangular", a, b)
    x = applied("triangular_solve", matrix, columns, bool(lower))
    check("solve_triangular", x, (matrix, columns), SINGULAR)
    return x.reshape(shape)


def inv(x: ArrayLike, /) -> Tensor:
    """The inverses of square matrices; for a product with an inverse, `solve` is faster and more accurate.

    Args:
        x: of shape (..., n, n).

    Raises:
        ShapeError: if the matrices are not square.
        LinearAlgebraError: if a matrix is singular; if its values are unknown, the result is NaN.

    >>> import tensorken as tk
    >>> tk.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    x = square("inv", x)
    y = applied("inv", x)
    check("inv", y, (x,), SINGULAR)
    return y


def det(x: ArrayLike, /) -> Tensor:
    """The determinants of square matrices.

    The first derivative, the matrix of cofactors, and the second are also correct for singular matrices.  Higher
    derivatives are correct up to size 3; for larger matrices they require distinct singular values.

    Args:
        x: of shape (..., n, n).

    Raises:
        ShapeError: if the matrices are not square.

    >>> import tensorken as tk
    >>> tk.linalg.det([[1.0, 2.0], [2.0, 4.0]]).item()
    0.0
    >>> tk.grad(tk.linalg.det)(tk.tensor([[1.0, 2.0], [2.0, 4.0]])).tolist()
    [[4.0, -2.0], [-2.0, 1.0]]
    """
    return applied("det", square("det", x))


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The sign of determinants and the logarithm of their absolute value, which does not overflow.

    Args:
        x: of shape (..., n, n).

    Returns:
        A SlogdetResult(sign, logabsdet): 0 and -inf for singular matrices, which have no derivative.

    >>> import tensorken as tk
    >>> sign, logarithm = tk.linalg.slogdet(-100.0 * tk.eye(31))
    >>> print(sign, f"{logarithm:.2f}")
    -1.0 142.76
    """
    return SlogdetResult(*apply(OPS["slogdet"], (square("slogdet", x),)))


def pinv(x: ArrayLike, rcond: ArrayLike | None = None, *, rtol: ArrayLike | None = None) -> Tensor:
    """The Moore-Penrose pseudoinverses.

    Args:
        x: of shape (..., m, n).
        rcond, rtol: singular values up to this multiple of the largest count as 0; a number, or a tensor that
            broadcasts to the batch. By default max(m, n) times the rounding error of the dtype.

    Returns:
        A tensor of shape (..., n, m). Its derivative exists where no singular value crosses the limit.

    >>> import tensorken as tk
    >>> tk.linalg.pinv([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]).tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    x = matrices("pinv", x)
    return applied("pinv", x, _limits("pinv", x, rcond if rtol is None else rtol))


def matrix_rank(x: ArrayLike, tol: ArrayLike | None = None, *, rtol: ArrayLike | None = None) -> Tensor:
    """The number of singular values that do not count as 0, in int32.

    Args:
        x: of shape (..., m, n); as in numpy a vector has rank 1 unless it is zero.
        tol: singular values up to this value count as 0.
        rtol: singular values up to this multiple of the largest count as 0; by default max(m, n) times the rounding
            error of the dtype.

    >>> import tensorken as tk
    >>> tk.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    1
    """
    y = floating_of(as_tensor(x))
    if y.ndim < 2:
        return (y != 0.0).astype("int32").sum().minimum(1)
    values = applied("svdvals", y)
    if values.shape[-1] == 0:
        return values.astype("int32").sum(-1)
    if tol is None:
        limit = _limits("matrix_rank", y, rtol) * values.max(-1)
    else:
        limit = _per_matrix("matrix_rank", y, tol)
    return (values > limit.reshape((*limit.shape, 1))).astype("int32").sum(-1)


def lstsq(a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None) -> LstsqResult:
    """The x that minimizes the norm of a @ x - b; if there are several, the x of smallest norm.

    Args:
        a: of shape (..., m, n).
        b: of shape (m,) for one vector, else (..., m, k) for k right-hand sides; batch axes broadcast.
        rcond: singular values up to this multiple of the largest count as 0; by default max(m, n) times the rounding
            error of the dtype.

    Returns:
        An LstsqResult(x, residuals, rank, singular_values). The residuals are the sums of squares of b - a @ x, one for
        each right-hand side, if m > n, and empty otherwise; numpy also omits them for rank-deficient matrices.

    >>> import tensorken as tk
    >>> print(f"{tk.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0]).x:.3f}")
    [2.000]
    """
    matrix, columns, shape = system("lstsq", a, b, matrices)
    m, n = matrix.shape[-2:]
    limits = _limits("lstsq", matrix, rcond)
    x = matmul(applied("pinv", matrix, limits), columns)
    residuals = square_of_modulus(columns - matmul(matrix, x)).sum(-2)
    if m <= n:
        residuals = residuals.crop((*[(0, size) for size in residuals.shape[:-1]], (0, 0)))
    rank = matrix_rank(matrix, rtol=limits)
    return LstsqResult(x.reshape(shape), residuals, rank, applied("svdvals", matrix))


# ---- shared code -------------------------------------------------------------------------------------------


def _limits(name: str, x: Tensor, rtol: Any) -> Tensor:
    """The fraction of the largest singular value up to which singular values count as 0, for each matrix."""
    return _per_matrix(name, x, max(x.shape[-2:]) * EPSILON.get(x.dtype, 0.0) if rtol is None else rtol)


def _per_matrix(name: str, x: Tensor, value: Any) -> Tensor:
    """A scalar, or one value for each matrix, in the real dtype of the matrices."""
    return as_operand(name, value, x.real).astype(real_dtype(x.dtype)).broadcast_to(x.shape[:-2])
