"""Factors of matrices: cholesky, qr, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tensorken.array_like import ArrayLike
from tensorken.complex_numbers import eigenvalues
from tensorken.linalg.operands import applied, check, matrices, square, symmetric
from tensorken.ops.matrices import adjoint, from_lower
from tensorken_core.errors import ArgumentError
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
]


class QRResult(NamedTuple):
    """The result of `qr`.

    >>> import tensorken as tk
    >>> tk.linalg.qr(tk.eye(3, 2))._fields
    ('Q', 'R')
    """

    Q: Tensor
    R: Tensor


class EigResult(NamedTuple):
    """The result of `eig`.

    >>> import tensorken as tk
    >>> tk.linalg.eig(tk.eye(2)).eigenvalues.tolist()
    [(1+0j), (1+0j)]
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of `eigh`.

    >>> import tensorken as tk
    >>> tk.linalg.eigh(tk.eye(2)).eigenvalues.tolist()
    [1.0, 1.0]
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`.

    >>> import tensorken as tk
    >>> tk.linalg.svd(tk.eye(2))._fields
    ('U', 'S', 'Vh')
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L with L @ L.mT = x, for symmetric or Hermitian positive definite x.

    Args:
        x: of shape (..., n, n). The symmetric part (x + x.mT) / 2 is factored, so that derivatives are symmetric; numpy
            reads only one triangle. For complex x all transposes are conjugate transposes.
        upper: return the upper triangular L.mT instead.

    Raises:
        ShapeError: if the matrices are not square.
        LinearAlgebraError: if a matrix is not positive definite; if its values are unknown, the result is NaN.

    >>> import tensorken as tk
    >>> tk.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = symmetric("cholesky", x)
    factor = applied("cholesky", x)
    check("cholesky", factor, (x,), "is not positive definite; add to its diagonal, or use eigh")
    return adjoint(factor) if upper else factor


def qr(x: ArrayLike, /, *, mode: Literal["reduced", "complete", "r"] = "reduced") -> Any:
    """The Q with orthonormal columns and the upper triangular R with Q @ R = x.

    Args:
        x: of shape (..., m, n).
        mode: `"reduced"`: Q has min(m, n) columns; `"complete"`: m columns; `"r"`: only R of the reduced form.

    Returns:
        A QRResult(Q, R); for mode `"r"` the tensor R.

    The derivative exists if the first min(m, n) columns are independent, except for the columns that complete Q.

    >>> import tensorken as tk
    >>> q, r = tk.linalg.qr(tk.tensor([[3.0, 1.0], [4.0, 2.0]], "float64"))
    >>> print(f"{abs(q @ r - tk.tensor([[3.0, 1.0], [4.0, 2.0]])).max().item():.1f}", r.shape)
    0.0 (2, 2)
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode must be 'reduced', 'complete' or 'r', got {short_repr(mode)}")
    factors = QRResult(*apply(OPS["qr"], (matrices("qr", x),), (mode == "complete",)))
    return factors.R if mode == "r" else factors


def eig(x: ArrayLike, /) -> EigResult:
    """The eigenvalues of square matrices, in no order, and the eigenvectors, as columns of length 1.

    Args:
        x: of shape (..., n, n), real or complex; eigh is faster and more accurate for symmetric and Hermitian matrices.

    Returns:
        An EigResult(eigenvalues, eigenvectors) of shapes (..., n) and (..., n, n), always complex: x @ v = v * w.

    Raises:
        ShapeError: if the matrices are not square.
        LinearAlgebraError: if the iteration does not converge; if the values are unknown, the result is NaN.

    The largest component of an eigenvector is real. The derivative keeps that, as JAX's; it is not finite where two
    eigenvalues coincide, and does not exist where two components are the largest. Backends without LAPACK compute the
    result in Python, also for compiled functions.

    >>> import tensorken as tk
    >>> values, vectors = tk.linalg.eig([[0.0, 2.0], [-2.0, 0.0]])
    >>> print(values)
    [0.+2.j 0.-2.j]
    """
    x = square("eig", x)
    result = EigResult(*eigenvalues.eig(x))
    check("eig", result.eigenvectors, (x,), "has no eigenvalues that could be found; scale it")
    return result


def eigvals(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of square matrices, in no order, always complex; see `eig`.

    Where values coincide, the derivative exists for functions that are symmetric in the equal values, if there are as
    many independent eigenvectors.

    >>> import tensorken as tk
    >>> print(tk.linalg.eigvals([[1.0, 5.0], [0.0, 3.0]]))
    [1.+0.j 3.+0.j]
    """
    x = square("eigvals", x)
    result = eigenvalues.eigvals(x)
    check(
        "eigvals",
        result.reshape((*result.shape, 1)),
        (x,),
        "has no eigenvalues that could be found; scale it",
    )
    return result


def eigh(x: ArrayLike, /, UPLO: Literal["L", "U"] | None = None) -> EighResult:
    """The eigenvalues of symmetric or Hermitian matrices, ascending, and the eigenvectors, as columns of length 1.

    Args:
        x: of shape (..., n, n).
        UPLO: `"L"` or `"U"` to read only the lower or upper triangle, as numpy does; by default the symmetric part
            (x + x.mT) / 2 is used, so that derivatives are symmetric.

    Returns:
        An EighResult(eigenvalues, eigenvectors) of shapes (..., n) and (..., n, n).

    Raises:
        ShapeError: if the matrices are not square.

    The sign or phase of an eigenvector is arbitrary, and so is the basis for equal eigenvalues: where two eigenvalues
    coincide, the derivative of eigenvectors does not exist and is not finite; the derivative of the eigenvalues is
    finite, and so is the gradient of a function of the eigenvectors alone that does not depend on the basis.

    >>> import tensorken as tk
    >>> values, vectors = tk.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])
    >>> print(values, abs(vectors).tolist())
    [1. 2.] [[0.0, 1.0], [1.0, 0.0]]
    """
    x = _symmetric("eigh", x, UPLO)
    result = EighResult(*apply(OPS["eigh"], (x,)))
    check("eigh", result.eigenvectors, (x,), "has no eigenvalues that could be found; scale it")
    return result


def eigvalsh(x: ArrayLike, /, UPLO: Literal["L", "U"] | None = None) -> Tensor:
    """The eigenvalues of symmetric matrices, ascending; see `eigh`.

    Where values coincide, the derivative exists for functions that are symmetric in the equal values.

    >>> import tensorken as tk
    >>> print(tk.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]))
    [1. 3.]
    """
    return applied("eigvalsh", _symmetric("eigvalsh", x, UPLO))


def svd(x: ArrayLike, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition (U * S[..., None, :]) @ Vh = x.

    Args:
        x: of shape (..., m, n).
        full_matrices: whether U and Vh are square, of sizes m and n; else they have min(m, n) columns, or rows.
        compute_uv: if False, return only the singular values, as `svdvals` does.

    Returns:
        An SVDResult(U, S, Vh): orthonormal columns, descending singular values, orthonormal rows.

    The derivative of singular vectors exists only for full_matrices=False, since vectors that complete a basis are
    arbitrary, and if the singular values differ, and are not zero unless x is square; otherwise it is not finite.
    Only the gradient of a function of U @ Vh may exist, and then is right, where singular values are equal.

    >>> import tensorken as tk
    >>> print(tk.linalg.svd([[0.0, 2.0], [1.0, 0.0]]).S)
    [2. 1.]
    """
    if not compute_uv:
        return svdvals(x)
    x = matrices("svd", x)
    result = SVDResult(*apply(OPS["svd"], (x,), (bool(full_matrices),)))
    check("svd", result.Vh, (x,), "has no singular values that could be found; scale it")
    return result


def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values of matrices, descending.

    Where values coincide, the derivative exists for functions that are symmetric in the equal values.

    >>> import tensorken as tk
    >>> print(tk.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]))
    [4. 3.]
    """
    return applied("svdvals", matrices("svdvals", x))


def _symmetric(name: str, x: Any, triangle: Any) -> Tensor:
    if triangle is None:
        return symmetric(name, x)
    if triangle not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO must be 'L', 'U' or None, got {short_repr(triangle)}")
    x = square(name, as_tensor(x))
    return from_lower(x if triangle == "L" else adjoint(x))  # type: ignore[no-any-return]
