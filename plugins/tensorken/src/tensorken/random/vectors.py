"""Random vectors and matrices: normal vectors with a covariance, and orthogonal matrices."""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.linalg.decompositions import cholesky, eigh, qr, svd
from tensorken.linalg.products import diagonal
from tensorken.random.bits import broadcast_argument, checked, dtype_of, shape_of
from tensorken.random.floats import normals
from tensorken.random.parameters import broadcast_shape, in_one_shape
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import float32
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor


def multivariate_normal(
    key: Tensor, mean: ArrayLike, cov: Any, shape: Any = None, dtype: Any = float32, method: str = "cholesky"
) -> Tensor:
    """Vectors from the normal distribution with a mean and a covariance matrix: mean + factor @ normal numbers.

    Args:
        key: shape (2,), int32.
        mean: shape (..., n).
        cov: shape (..., n, n), symmetric and without negative eigenvalues; the result is differentiable with respect
            to both.
        shape: of the result without its last axis, to which the first axes of both broadcast; by default their
            broadcast shape.
        dtype: a floating-point dtype.
        method: "cholesky" for positive definite matrices; "eigh" or "svd" for singular ones too.

    Returns:
        A tensor of shape `(*shape, n)`.

    Raises:
        ArgumentError: if the key is invalid, or the method is none of the three.
        ShapeError: if the covariance is not square, mean and covariance do not fit, or do not broadcast to the shape.
        DTypeError: if the dtype is not floating-point.
        tensorken.linalg.LinearAlgebraError: if the method is "cholesky" and a covariance, whose values are known, is
            not positive definite.

    >>> import tensorken as tk
    >>> cov = [[2.0, 1.0], [1.0, 2.0]]
    >>> x = tk.random.multivariate_normal(tk.random.key(0), [0.0, 5.0], cov, (3,))
    >>> print(f"{x:.4f}")
    [[-0.2911  5.1663]
     [-1.1098  5.4940]
     [ 2.5683  6.7004]]
    """
    name = "multivariate_normal"
    key, result_dtype = checked(name, key), dtype_of(name, dtype, "float", key)
    inner = result_dtype.wide
    (center,), (matrix,) = [in_one_shape(name, key, None, inner, x=x) for x in (mean, cov)]
    if method not in ("cholesky", "eigh", "svd"):
        raise ArgumentError(f"{name}: method must be 'cholesky', 'eigh' or 'svd', got {method!r}")
    if not center.shape or matrix.shape[-2:] != center.shape[-1:] * 2:
        raise ShapeError(
            f"{name}: need a mean of shape (..., n) and a cov of shape (..., n, n), got {center.shape} and "
            f"{matrix.shape}; change one"
        )
    size = center.shape[-1]
    if shape is None:
        batches = {
            "mean without its last axis": center.shape[:-1],
            "cov without its last two": matrix.shape[:-2],
        }
        sizes = broadcast_shape(name, batches)
    else:
        sizes = shape_of(name, shape)
        broadcast_argument(name, "cov", matrix, (*sizes, size, size))
    center = broadcast_argument(name, "mean", center, (*sizes, size))
    numbers = normals(key, (*sizes, size), inner).reshape((*sizes, size, 1))
    product: Tensor = (_factor(matrix, method) @ numbers).reshape((*sizes, size))
    return (center + product).astype(result_dtype)


def _factor(cov: Tensor, method: str) -> Tensor:
    """A matrix whose product with its transpose is the covariance."""
    if method == "cholesky":
        return cholesky(cov)
    if method == "eigh":
        values, vectors = eigh(cov)
        values = values.maximum(0.0)
    else:
        vectors, values, _ = svd(cov)
    last = values.ndim - 1
    roots = values.sqrt().reshape((*values.shape[:last], 1, values.shape[last]))
    result: Tensor = vectors * roots
    return result


def orthogonal(key: Tensor, n: int, shape: Any = (), dtype: Any = float32, m: int | None = None) -> Tensor:
    """Orthogonal matrices, distributed uniformly (by Haar's measure): Q of the QR decomposition of normal numbers.

    The signs of its columns make the diagonal of R positive: F. Mezzadri, "How to generate random matrices from the
    classical compact groups" (2007).

    Args:
        key: shape (2,), int32.
        n: the number of rows.
        shape: of the batch of matrices.
        dtype: float32 or float64.
        m: the number of columns, by default n; if it is not n, the columns or the rows are orthonormal.

    Returns:
        A tensor of shape `(*shape, n, m)`.

    Raises:
        ArgumentError, ShapeError: if the key, a number or the shape is invalid.
        DTypeError: if the dtype is not float32 or float64.

    >>> import tensorken as tk
    >>> q = tk.random.orthogonal(tk.random.key(0), 3)
    >>> tk.allclose(q @ q.T, tk.eye(3), atol=1e-6).item()
    True
    """
    name = "orthogonal"
    key, sizes, result_dtype = checked(name, key), shape_of(name, shape), dtype_of(name, dtype, "float", key)
    rows = integer_of(name, "n", n)
    columns = rows if m is None else integer_of(name, "m", m)
    if min(rows, columns) < 1:
        raise ArgumentError(f"{name}: n and m must be positive, got {rows} and {columns}")
    high, low = max(rows, columns), min(rows, columns)
    q, r = qr(normals(key, (*sizes, high, low), result_dtype))
    signs = (diagonal(r) < 0.0).where(-1.0, 1.0).reshape((*sizes, 1, low))
    result: Tensor = q * signs.astype(q.dtype)
    return result if rows >= columns else result.permute((*range(len(sizes)), len(sizes) + 1, len(sizes)))
