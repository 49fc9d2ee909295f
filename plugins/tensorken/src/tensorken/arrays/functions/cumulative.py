"""Cumulative functions along an axis: sums, products, differences.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.operands import first_operand, promoted_tensors
from tensorken_core.errors import ArgumentError, AxisError, ShapeError
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.dtypes import bool_
from tensorken_core.language.op import OPS
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.dispatch import unary
from tensorken_core.tensor.normalization import axis_of, integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
]


@with_numpys_names
def cumsum(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative sum along an axis, or over the flattened tensor.

    Args:
        dtype: the dtype of the sum and the result; by default the dtype of x, int32 for bool.  Integers wrap.

    >>> import tensorken as tk
    >>> print(tk.cumsum([1.0, 2.0, 3.0]))
    [1. 3. 6.]
    """
    return _accumulated("cumsum", as_tensor(x), axis, dtype)


@with_numpys_names
def cumprod(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative product along an axis, or over the flattened tensor; its derivative is correct at zeros, too.

    Args:
        dtype: the dtype of the product and the result; by default the dtype of x, int32 for bool.  Integers wrap.

    >>> import tensorken as tk
    >>> print(tk.cumprod([1.0, 2.0, 3.0]))
    [1. 2. 6.]
    """
    return _accumulated("cumprod", as_tensor(x), axis, dtype)


def cumulative_sum(
    x: ArrayLike, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The cumulative sum along an axis, which may be omitted if x has only one.

    Args:
        dtype: the dtype of the sum and the result; by default the dtype of x, int32 for bool.  Integers wrap.
        include_initial: whether the result begins with the empty sum, 0, so that the axis is longer by one.

    Raises:
        AxisError: if no axis is given, and x does not have exactly one.

    >>> import tensorken as tk
    >>> print(tk.cumulative_sum([1.0, 2.0, 3.0], include_initial=True))
    [0. 1. 3. 6.]
    """
    return _cumulative("cumulative_sum", "cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """The cumulative product along an axis, which may be omitted if x has only one.

    Args:
        dtype: the dtype of the product and the result; by default the dtype of x, int32 for bool.  Integers wrap.
        include_initial: whether the result begins with the empty product, 1, so that the axis is longer by one.

    Raises:
        AxisError: if no axis is given, and x does not have exactly one.

    >>> import tensorken as tk
    >>> print(tk.cumulative_prod([1.0, 2.0, 3.0], include_initial=True))
    [1. 1. 2. 6.]
    """
    return _cumulative("cumulative_prod", "cumprod", 1, x, axis, dtype, include_initial)


def _accumulated(name: str, x: Tensor, axis: int | None, dtype: Any) -> Tensor:
    y = x.in_sum_dtype(dtype)
    if axis is None:
        return unary(OPS[name], y.ravel(), (0,))
    return unary(OPS[name], y, (axis_of(name, y.shape, axis),))


def _cumulative(
    name: str, op: str, initial: int, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Tensor:
    y = as_tensor(x).in_sum_dtype(dtype)
    if axis is None and y.ndim != 1:
        raise AxisError(f"{name}: shape {y.shape} has {y.ndim} axes; give axis=")
    along = axis_of(name, y.shape, 0 if axis is None else axis)
    result = unary(OPS[op], y, (along,))
    if not include_initial:
        return result
    row = tuple([1 if i == along else n for i, n in enumerate(y.shape)])
    return y.constant([initial], y.dtype, (1,)).broadcast_to(row).concatenate(result, axis=along)


@with_numpys_names
def diff(
    x: ArrayLike,
    n: int = 1,
    axis: int = -1,
    *,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Tensor:
    """The n-th difference of neighbouring elements along an axis; for bools, whether they differ.

    Args:
        n: the number of times to take differences; each time shortens the axis by one; 0 returns x.
        prepend, append: values to put before and after x along the axis first: a number, or a tensor with as many
            axes as x.

    Raises:
        ArgumentError: if n is negative.
        ShapeError: if the shape of `prepend` or `append` does not fit the shape of x.

    >>> import tensorken as tk
    >>> print(tk.diff([1.0, 4.0, 9.0, 16.0]), tk.diff([1.0, 4.0, 9.0, 16.0], n=2))
    [3. 5. 7.] [2. 2.]
    """
    y = first_operand("diff", x, append if prepend is None else prepend)
    count = integer_of("diff", "n", n)
    if count < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}; tk.cumulative_sum is the inverse")
    along = axis_of("diff", y.shape, axis)
    if count == 0:
        return y
    pieces = [_row(y, prepend, along), y, _row(y, append, along)]
    operands = promoted_tensors("diff", [piece for piece in pieces if piece is not None])
    y = operands[0].concatenate(*operands[1:], axis=along) if len(operands) > 1 else y
    for _ in range(count):
        size = y.shape[along]
        upper, lower = slice_along(y, along, min(size, 1), size), slice_along(y, along, 0, max(size - 1, 0))
        y = upper ^ lower if y.dtype is bool_ else upper - lower
    return y


def _row(x: Tensor, values: Any, axis: int) -> Tensor | None:
    """The values to put before or after x along the axis; a number fills one row."""
    if values is None:
        return None
    row = as_operand("diff", values, x)
    if row.ndim == 0:
        return row.broadcast_to(tuple([1 if i == axis else n for i, n in enumerate(x.shape)]))
    if row.ndim != x.ndim:
        raise ShapeError(
            f"diff: prepend and append must have 0 or {x.ndim} axes for shape {x.shape}, got shape {row.shape}; reshape"
        )
    return row
