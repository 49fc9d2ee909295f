"""Diagonals and triangles of matrices, identity matrices, traces."""

from __future__ import annotations

import operator
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.constants import full
from tensorken_core.errors import ArgumentError, AxisError, ConcretizationError, ShapeError
from tensorken_core.language.bodies.arrangement import iota
from tensorken_core.language.dtypes import as_dtype, float32, position_dtype
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "diag",
    "diagflat",
    "diagonal",
    "eye",
    "identity",
    "tri",
    "tril",
    "triu",
]


def eye(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: Any = None,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """An n × m matrix (m = n by default) with ones on a diagonal and zeros elsewhere.

    Args:
        n, m: the numbers of rows and columns.
        k: the diagonal: 0 is the main diagonal, positive k is above it, negative k below it.
        dtype: the dtype of the result; float32 if None.
        backend, device: as in `tk.tensor`.

    Raises:
        ShapeError: if n or m is negative.

    >>> import tensorken as tk
    >>> tk.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = _sizes("eye", n, n if m is None else m)
    k, dtype = _offset("eye", k), as_dtype(float32 if dtype is None else dtype)
    top, left = max(-k, 0), max(k, 0)
    height, width = rows - top, columns - left
    if height <= 0 or width <= 0:
        return full((rows, columns), 0, dtype, backend=backend, device=device)
    count = min(height, width)
    # Rows of a one and `width` zeros, reshaped to rows that are shorter by one: the ones are then on a diagonal.
    row = full((1,), 1, dtype, backend=backend, device=device).pad(((0, width),))
    ones = row.reshape((1, width + 1)).expand((count, width + 1)).reshape((count * (width + 1),))
    square = ones.crop(((0, count * width),)).reshape((count, width))
    return square.pad(((top, height - count), (left, 0)))


def identity(n: int, dtype: Any = float32, *, backend: Any = None, device: str | None = None) -> Tensor:
    """The n × n matrix with ones on the diagonal.

    Raises:
        ShapeError: if n is negative.

    >>> import tensorken as tk
    >>> tk.identity(2, "int32").tolist()
    [[1, 0], [0, 1]]
    """
    return eye(n, dtype=dtype, backend=backend, device=device)


def tri(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: Any = float32,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Tensor:
    """An n × m matrix (m = n by default) with ones on and below the k-th diagonal and zeros above it.

    Raises:
        ShapeError: if n or m is negative.

    >>> import tensorken as tk
    >>> tk.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    shape = _sizes("tri", n, n if m is None else m)
    dtype = float32 if dtype is None else dtype
    return tril(full(shape, 1, as_dtype(dtype), backend=backend, device=device), _offset("tri", k))


def tril(x: ArrayLike, k: int = 0) -> Tensor:
    """The elements on and below the k-th diagonal of the last two axes, zeros above it.

    Raises:
        ShapeError: if x has fewer than two axes.

    >>> import tensorken as tk
    >>> tk.tril([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    """
    x = _matrices("tril", x)
    return _above(x, _offset("tril", k)).where(x.zeros_like(), x)


def triu(x: ArrayLike, k: int = 0) -> Tensor:
    """The elements on and above the k-th diagonal of the last two axes, zeros below it.

    Raises:
        ShapeError: if x has fewer than two axes.

    >>> import tensorken as tk
    >>> tk.triu([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[1.0, 2.0], [0.0, 4.0]]
    """
    x = _matrices("triu", x)
    return _above(x, _offset("triu", k) - 1).where(x, x.zeros_like())


def diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonals over axis1 and axis2 at an offset: the elements (i, i + offset), along the last axis of the result.

    Raises:
        ShapeError: if x has fewer than two axes.
        AxisError: if the two axes are the same.

    >>> import tensorken as tk
    >>> tk.diagonal([[1.0, 2.0], [3.0, 4.0]], 1).tolist()
    [2.0]
    """
    x = _matrices("diagonal", x)
    return _diagonal("diagonal", x, offset, axis1, axis2)


def diag(x: ArrayLike, k: int = 0) -> Tensor:
    """A square matrix with a vector on its k-th diagonal and zeros elsewhere; for a matrix, its k-th diagonal.

    Raises:
        ShapeError: if x has neither one nor two axes.

    >>> import tensorken as tk
    >>> tk.diag([1.0, 2.0]).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    v, k = as_tensor(x), _offset("diag", k)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(f"diag: need 1 or 2 axes, got shape {v.shape}; use tk.diagflat or tk.diagonal")
    (n,) = v.shape
    # A column of x and n columns of zeros, reshaped to rows that are shorter by one: x is then on a diagonal.
    rows = v.reshape((n, 1)).pad(((0, 0), (0, n))).reshape((n * (n + 1),)).crop(((0, n * n),)).reshape((n, n))
    return rows.pad(((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0)))) if k else rows


def diagflat(x: ArrayLike, k: int = 0) -> Tensor:
    """A square matrix with the elements of the flattened x on its k-th diagonal and zeros elsewhere.

    Raises:
        ArgumentError: if k is not an int.

    >>> import tensorken as tk
    >>> tk.diagflat([[1.0], [2.0]]).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    return diag(as_tensor(x).ravel(), k)


def trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal, see `tk.diagonal`; int32 for bool.

    Raises:
        ShapeError: if x has fewer than two axes.

    >>> import tensorken as tk
    >>> tk.tensor([[1.0, 2.0], [3.0, 4.0]]).trace().item()
    5.0
    """
    x = _matrices("trace", x)
    return _diagonal("trace", x, offset, axis1, axis2).sum(-1)


# ---- shared code -------------------------------------------------------------------------------------------


def _diagonal(name: str, x: Tensor, offset: Any, axis1: int, axis2: int) -> Tensor:
    """Gather along the two axes as one axis; no product with a mask, so NaN off the diagonal does not propagate."""
    k = _offset(name, offset)
    first, second = axis_of(name, x.shape, axis1), axis_of(name, x.shape, axis2)
    if first == second:
        raise AxisError(f"{name}: axis1 and axis2 are both axis {first} of shape {x.shape}; name two axes")
    others = [i for i in range(x.ndim) if i not in (first, second)]
    n, m = x.shape[first], x.shape[second]
    row, column = max(-k, 0), max(k, 0)
    count = max(min(n - row, m - column), 0)
    positions = [(row + i) * m + column + i for i in range(count)]
    indices = x.constant(positions, position_dtype(n * m), (count,))
    flat = x.permute((*others, first, second)).reshape((*[x.shape[i] for i in others], n * m))
    return flat.gather(indices, -1)


def _above(x: Tensor, k: int) -> Tensor:
    """The bool mask of the elements above the k-th diagonal of the last two axes."""
    rows, columns = iota(x, x.ndim - 2), iota(x, x.ndim - 1)
    n, m = x.shape[-2:]
    k = max(min(k, m), -n - 1)  # a diagonal further away is empty, and k may not fit an int32
    above: Tensor = (rows + k) < columns
    return above.reshape((n, m))


def _matrices(name: str, x: Any) -> Tensor:
    y = as_tensor(x)
    if y.ndim < 2:
        raise ShapeError(f"{name}: need at least 2 axes, got shape {y.shape}; reshape first")
    return y


def _offset(name: str, k: Any) -> int:
    try:
        return operator.index(k)
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(
            f"{name}: the offset of the diagonal must be an int, got {short_repr(k)}; 0 is the main diagonal"
        ) from None


def _sizes(name: str, n: Any, m: Any) -> tuple[int, int]:
    try:
        sizes = operator.index(n), operator.index(m)
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(
            f"{name}: the numbers of rows and columns must be ints, got {short_repr((n, m))}"
        ) from None
    if min(sizes) < 0:
        raise ShapeError(f"{name}: sizes must not be negative, got {sizes}; give each axis at least 0")
    return sizes
