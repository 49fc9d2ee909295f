"""Linear maps between tensors with several axes: their systems and inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorken.array_like import ArrayLike
from tensorken.linalg.systems import inv, solve
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["tensorinv", "tensorsolve"]


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """The x with `tk.tensordot(a, x, x.ndim)` equal to b.

    Args:
        a: of shape `(*b.shape, *x.shape)`, where both parts have equally many elements.
        b: the right-hand side.
        axes: axes of a that are moved to the end first.

    Raises:
        ShapeError: if the parts of the shape of a do not have the number of elements of b.
        LinearAlgebraError: if a is singular.

    >>> import tensorken as tk
    >>> tk.linalg.tensorsolve(2.0 * tk.eye(4).reshape(2, 2, 4), tk.ones((2, 2))).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    x, y = as_tensor(a), as_tensor(b)
    if axes is not None:
        moved = [axis_of("tensorsolve", x.shape, axis) for axis in axes]
        x = x.permute([i for i in range(x.ndim) if i not in moved] + moved)
    shape = x.shape[y.ndim :]
    if math.prod(shape) != y.size or x.size != y.size**2:
        raise ShapeError(
            f"tensorsolve: a of shape {x.shape} does not map {y.size} elements to b of shape {y.shape}; "
            f"the shape of a is the shape of b and then that of the solution, with as many elements"
        )
    return solve(x.reshape((y.size, y.size)), y.reshape((y.size,))).reshape(shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Tensor:
    """The inverse of the linear map from the last axes of a to the first `ind`.

    Args:
        a: the product of the first `ind` sizes and the product of the others are equal.
        ind: the number of the first axes, at least 1.

    Returns:
        A tensor of shape `(*a.shape[ind:], *a.shape[:ind])`.

    Raises:
        ArgumentError: if `ind` is not positive.
        ShapeError: if the products differ.
        LinearAlgebraError: if a is singular.

    >>> import tensorken as tk
    >>> tk.linalg.tensorinv(tk.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    x = as_tensor(a)
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind must be at least 1, got {ind}")
    first, rest = x.shape[:ind], x.shape[ind:]
    n = math.prod(first)
    if n != math.prod(rest):
        raise ShapeError(
            f"tensorinv: the first {ind} axes of shape {x.shape} have {n} elements, the others {math.prod(rest)}; "
            f"they must be equal"
        )
    return inv(x.reshape((n, n))).reshape((*rest, *first))
