"""Cumulative maxima and minima.

Raises:
    AxisError: if an axis is out of range.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.op import OPS, Op
from tensorken_core.tensor.dispatch import binary
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["cummax", "cummin"]


@with_numpys_names
def cummax(x: ArrayLike, axis: int = 0) -> Tensor:
    """The largest element up to each position along an axis; NaN propagates; ties share the derivative.

    >>> import tensorken as tk
    >>> tk.cummax([1, 3, 2, 4]).tolist()
    [1, 3, 3, 4]
    """
    return _accumulated("cummax", OPS["maximum"], as_tensor(x), axis)


@with_numpys_names
def cummin(x: ArrayLike, axis: int = 0) -> Tensor:
    """The smallest element up to each position along an axis; NaN propagates; ties share the derivative.

    >>> import tensorken as tk
    >>> tk.cummin([3, 1, 2, 0]).tolist()
    [3, 1, 1, 0]
    """
    return _accumulated("cummin", OPS["minimum"], as_tensor(x), axis)


def _accumulated(name: str, op: Op, x: Tensor, axis: int) -> Tensor:
    """Combine each element with that 1, 2, 4, ... before it (W. D. Hillis and G. L. Steele, 1986)."""
    along = axis_of(name, x.shape, axis)
    n, step = x.shape[along], 1

    while step < n:
        rest = binary(op, slice_along(x, along, step, n), slice_along(x, along, 0, n - step))
        x = slice_along(x, along, 0, step).concatenate(rest, axis=along)
        step *= 2
    return x
