"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.stop_gradient import stop_gradient
from tensorken.linalg.operands import applied, matrices, square
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.bodies.norms import scale_of
from tensorken_core.language.dtypes import real_dtype
from tensorken_core.language.shapes import Axes, short_repr
from tensorken_core.tensor.normalization import Axis, axes_of, axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "cond",
    "matrix_norm",
    "norm",
    "vector_norm",
]

INF = math.inf


@with_numpys_names
def norm(x: ArrayLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors or matrices, as in numpy.

    Args:
        x: of any shape; integers become float32.
        ord: the order of the norm; None is the root of the sum of squares. For vectors see `vector_norm`, for matrices
            `matrix_norm`.
        axis: an int for vectors along that axis, a pair for matrices in those two axes. If None, x is flattened to one
            vector if ord is None; otherwise x must be a vector or a matrix.
        keepdims: whether the reduced axes are kept with size 1.

    Raises:
        ArgumentError: if ord is not a norm.
        ShapeError: if axis is not one or two axes, or if axis is None, ord is given, and x is not a vector or a matrix.

    >>> import tensorken as tk
    >>> tk.linalg.norm([3.0, 4.0]).item()
    5.0
    >>> tk.grad(tk.linalg.norm)(tk.zeros(2)).tolist()
    [0.0, 0.0]
    """
    x = floating_of(as_tensor(x))
    if axis is None:
        if ord is None:
            return vector_norm(x, keepdims=keepdims)
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"norm: ord={ord!r} needs a vector or a matrix, got shape {x.shape}; give one or two axes as axis="
            )
        axis = tuple(range(x.ndim))
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(
            f"norm: axis must be one axis or two, got {short_repr(axis)}; use vector_norm for more axes"
        )
    return _matrix_norm("norm", x, axes, keepdims, "fro" if ord is None else ord)


def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm of the vectors along axes, all of x by default.

    Args:
        x: of any shape; integers become float32.
        axis: one axis, or several, which count as one vector.
        keepdims: whether the reduced axes are kept with size 1.
        ord: p, for sum(abs(x)**p)**(1/p); `inf` and `-inf` for the largest and smallest absolute value; 0 for the
            number of elements that are not 0.

    No intermediate result overflows or underflows, since elements are divided by the largest.  The derivative for an
    element that is 0 is 0; of the orders 1, `inf` and `-inf` it is that of `tk.abs`, which is 1.

    >>> import tensorken as tk
    >>> print(f"{tk.linalg.vector_norm([3e30, 4e30]):.2e}")
    5.00e+30
    """
    x = floating_of(as_tensor(x))
    axes = axes_of("vector_norm", x.shape, axis)
    if not isinstance(ord, int | float):
        raise ArgumentError(f"vector_norm: ord of a vector norm must be a number, got {short_repr(ord)}")
    if ord == 2:
        y = applied("norm", x, axes)
    elif ord == 1:
        y = x.abs().sum(axes, keepdims=True)
    elif ord == 0:
        y = (x != 0.0).astype(real_dtype(x.dtype)).sum(axes, keepdims=True)
    elif ord == INF:
        y = _largest(x.abs(), axes)
    elif ord == -INF:
        y = x.abs().min(axes, keepdims=True)
    else:
        y = _power_norm(x, float(ord), axes)
    return y if keepdims else _without(y, axes)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices.

    Args:
        x: of shape (..., m, n); integers become float32.
        keepdims: whether the last two axes are kept with size 1.
        ord: `"fro"`: the root of the sum of squares; `"nuc"`: the sum of the singular values; 2, -2: the largest, the
            smallest singular value; 1, -1: the largest, the smallest sum of absolute values of a column; `inf`, `-inf`:
            of a row.

    Raises:
        ArgumentError: if ord is not one of these orders.

    >>> import tensorken as tk
    >>> tk.linalg.matrix_norm([[1.0, 2.0], [3.0, 4.0]], ord=1).item()
    6.0
    """
    x = matrices("matrix_norm", x)
    return _matrix_norm("matrix_norm", x, (-2, -1), keepdims, ord)


def cond(x: ArrayLike, p: Any = None) -> Tensor:
    """The condition number norm(x, p) * norm(inv(x), p), infinite for singular matrices.

    Args:
        x: of shape (..., n, n); (..., m, n) if p is None, 2 or -2, which need only singular values.
        p: the order of the norm, as in `matrix_norm`; None is 2.

    >>> import tensorken as tk
    >>> tk.linalg.cond([[2.0, 0.0], [0.0, 0.5]]).item()
    4.0
    """
    if p in (None, 2, -2):
        x = matrices("cond", x)
        values = applied("svdvals", x)
        largest, smallest = values.max(-1), values.min(-1)
        y = smallest / largest if p == -2 else largest / smallest
    else:
        x = square("cond", x)
        scaled: Tensor = x / scale_of(stop_gradient(x), (-2, -1))  # the inverse of small numbers may overflow
        inverse = applied("inv", scaled)
        y = matrix_norm(scaled, ord=p) * matrix_norm(inverse, ord=p)
    return (y.eq(y) | _has_nan(x)).where(y, INF)


# ---- shared code -------------------------------------------------------------------------------------------


def _has_nan(x: Tensor) -> Tensor:
    """Whether an element is NaN, for each matrix."""
    return x.eq(x).astype("int32").min((-2, -1)).eq(0)


def _without(y: Tensor, axes: Axes) -> Tensor:
    return y.reshape(tuple([n for i, n in enumerate(y.shape) if i not in axes]))


def _power_norm(x: Tensor, p: float, axes: Axes) -> Tensor:
    """The p-norm over axes, which are kept; zeros are masked, since their powers may have infinite derivatives."""
    sizes = x.abs()
    if p > 0 and _is_empty_along(x, axes):
        return sizes.sum(axes, keepdims=True)
    zero = sizes.eq(0.0)
    still = stop_gradient(sizes)
    scale: Tensor = scale_of(still, axes) if p > 0 else _smallest_scale(still, axes)
    powers = zero.where(1.0, sizes / scale) ** p
    total = zero.where(0.0 if p > 0 else INF, powers).sum(axes, keepdims=True)
    is_zero = total.eq(0.0)
    return is_zero.where(0.0 if p > 0 else INF, is_zero.where(1.0, total) ** (1.0 / p) * scale)


def _is_empty_along(x: Tensor, axes: Axes) -> bool:
    """Whether there are no elements to reduce along axes."""
    return math.prod([x.shape[axis] for axis in axes]) == 0


def _largest(sizes: Tensor, axes: Axes) -> Tensor:
    """The largest absolute value; 0 if there are no elements, the norm of an empty vector."""
    return (sizes.sum if _is_empty_along(sizes, axes) else sizes.max)(axes, keepdims=True)


def _smallest_scale(sizes: Tensor, axes: Axes) -> Tensor:
    """The divisor: the smallest absolute value, or 1 if that value is 0 or infinite."""
    smallest = sizes.min(axes, keepdims=True)
    return ((smallest > 0.0) & (smallest < INF)).where(smallest, 1.0)


def _matrix_norm(name: str, x: Tensor, axes: Any, keepdims: bool, ord: Any) -> Tensor:
    row, column = (axis_of(name, x.shape, axis) for axis in axes)
    if row == column:
        raise ShapeError(f"{name}: axes {tuple(axes)} name an axis twice for shape {x.shape}; name two")
    both = tuple(sorted((row, column)))
    if ord == "fro":
        y = applied("norm", x, both)
    elif ord in (1, -1, INF, -INF) and not isinstance(ord, str):
        summed, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = x.abs().sum(summed, keepdims=True)
        y = _largest(sums, (other,)) if ord > 0 else sums.min(other, keepdims=True)
    elif ord in ("nuc", 2, -2):
        rest = tuple([i for i in range(x.ndim) if i not in both])
        values = applied("svdvals", x.permute((*rest, row, column)))
        # The derivative of a singular value that is 0 is set to 0, since its singular vectors are arbitrary.
        values = values.eq(0.0).where(0.0, values)
        last = (values.ndim - 1,)
        y = values.sum(-1) if ord == "nuc" else _largest(values, last) if ord == 2 else values.min(-1)
        y = y.reshape(tuple([1 if i in both else n for i, n in enumerate(x.shape)]))
    else:
        raise ArgumentError(
            f"{name}: ord of a matrix norm must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, "
            f"got {short_repr(ord)}"
        )
    return y if keepdims else _without(y, both)
