"""Reductions: sums and products, means, minima and maxima and their indices, any and all, softmax.

`axis` is an int, a sequence of ints, or None for all axes; negative axes count from the end.  With `keepdims` a reduced
axis is kept with size 1.  `where` is a bool tensor that broadcasts to the shape of x: elements where it is False are
left out.  `initial` is the first value of the reduction, a number.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if `where` does not broadcast to the shape of x.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.operands import floating_of
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.bodies.arrangement import slice_along, take_along
from tensorken_core.language.dtypes import DType, bool_, float32, int32, int64, position_dtype, real_dtype
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.dispatch import binary, unary
from tensorken_core.tensor.normalization import Axis, axes_of, axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor, reduced_by_pieces, without_axes

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "softmax",
    "sum",
]


# ---- sums and products -------------------------------------------------------------------------------------


@with_numpys_names
def sum(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The sum over axes, all by default; 0 for no elements.

    Args:
        dtype: of the sum and the result; by default that of x, int32 or uint32 for bool and narrower
            integers.  Integers wrap.

    >>> import tensorken as tk
    >>> print(tk.sum([[1.0, 2.0], [3.0, 4.0]], axis=0), tk.sum([True, True]))
    [4. 6.] 2
    >>> tk.sum([1.0, 2.0, 3.0], where=[True, False, True], initial=10.0).item()
    14.0
    """
    total = selected("sum", as_tensor(x), where, 0).sum(axis, keepdims, dtype=dtype)
    return total if initial is None else total + initial


@with_numpys_names
def prod(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The product over axes, all by default; 1 for no elements; its derivative is correct at zeros, too.

    Args:
        dtype: of the product and the result; by default that of x, int32 or uint32 for bool and narrower
            integers.  Integers wrap.

    >>> import tensorken as tk
    >>> print(tk.prod([[1.0, 2.0], [3.0, 4.0]], axis=1))
    [ 2. 12.]
    >>> print(tk.grad(tk.prod)(tk.tensor([0.0, 2.0, 3.0])))
    [6. 0. 0.]
    """
    product = selected("prod", as_tensor(x), where, 1).prod(axis, keepdims, dtype=dtype)
    return product if initial is None else product * initial


@with_numpys_names
def mean(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Tensor:
    """The arithmetic mean over axes, all by default; float32 for ints and bools; NaN for no elements.

    Narrower floats are added and divided in float32, so that the sum overflows only if the mean does.

    >>> import tensorken as tk
    >>> tk.mean([1, 2, 4, 5]).item()
    3.0
    """
    y = as_tensor(x)
    dtype = y.dtype if y.dtype.inexact else float32
    axes = axes_of("mean", y.shape, axis)
    count: Any = math.prod([y.shape[i] for i in axes])
    if where is not None:
        count = counted("mean", y, where, axes, keepdims, dtype.wide)
        y = selected("mean", y, where, 0)
    result: Tensor = y.sum(axes, keepdims, dtype=dtype.wide) / count
    return result.astype(dtype)


def selected(name: str, x: Tensor, where: Any, other: Any) -> Tensor:
    """x, with another number where `where` is False; the condition must broadcast to the shape of x."""
    return x if where is None else _condition(name, x, where).where(x, other)


def counted(name: str, x: Tensor, where: Any, axes: Axes, keepdims: bool, dtype: DType) -> Tensor:
    """The number of elements of x for which `where` is True, in a dtype, of a complex one in that of its parts."""
    return _condition(name, x, where).astype(real_dtype(dtype)).sum(axes, keepdims)


def _condition(name: str, x: Tensor, where: Any) -> Tensor:
    condition: Tensor = as_operand(name, where, x).astype(bool_)
    try:
        return condition.broadcast_to(x.shape)
    except ShapeError:
        raise ShapeError(
            f"{name}: where of shape {condition.shape} does not broadcast to the shape {x.shape} of x; reshape it"
        ) from None


# ---- minima and maxima -------------------------------------------------------------------------------------


@with_numpys_names
def max(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The maximum over axes, all by default; NaN propagates; ties share the derivative equally.

    Raises:
        ShapeError: if there are no elements along the axes and no initial value.
        ArgumentError: if `where` is given without an initial value.

    >>> import tensorken as tk
    >>> tk.max([[1, 5], [3, 2]], axis=1).tolist()
    [5, 3]
    """
    y = as_tensor(x)
    return (
        y.max(axis, keepdims)
        if initial is None and where is None
        else _extreme_from("max", y, axis, keepdims, initial, where)
    )


@with_numpys_names
def min(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The minimum over axes, all by default; NaN propagates; ties share the derivative equally.

    Raises:
        ShapeError: if there are no elements along the axes and no initial value.
        ArgumentError: if `where` is given without an initial value.

    >>> import tensorken as tk
    >>> tk.min([[1, 5], [3, 2]], axis=1).tolist()
    [1, 2]
    """
    y = as_tensor(x)
    return (
        y.min(axis, keepdims)
        if initial is None and where is None
        else _extreme_from("min", y, axis, keepdims, initial, where)
    )


amax, amin = max, min


def _extreme_from(name: str, x: Tensor, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Tensor:
    """The maximum or minimum of an initial value and the elements of x for which `where` is True."""
    if initial is None:
        raise ArgumentError(
            f"{name}: where= needs initial=, the result for no elements; "
            f"give initial={'-inf' if name == 'max' else 'inf'}, for example"
        )
    axes = axes_of(name, x.shape, axis)
    first = as_operand(name, initial, x).astype(x.dtype)
    kept = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    y = selected(name, x, where, first)
    result = first.broadcast_to(kept)
    if y.size:
        result = binary(OPS[f"{name}imum"], getattr(y, name)(axes, True), result)
    return result if keepdims else result.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def ptp(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum minus the minimum over axes ("peak to peak"), all by default; not defined for bools.

    >>> import tensorken as tk
    >>> tk.ptp([3.0, -1.0, 2.0]).item()
    4.0
    """
    y = as_tensor(x)
    result: Tensor = max(y, axis, keepdims) - min(y, axis, keepdims)
    return result


@with_numpys_names
def argmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first maximum along an axis, or in the flattened tensor; a NaN counts as the maximum.

    It is int32, and int64 along an axis of 2**31 elements or more.

    Raises:
        ShapeError: if there are no elements along the axis.

    >>> import tensorken as tk
    >>> tk.argmax([[1, 5], [3, 2]], axis=1).tolist()
    [1, 0]
    """
    return _extreme_index("argmax", as_tensor(x), axis, keepdims)


@with_numpys_names
def argmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first minimum along an axis, or in the flattened tensor; a NaN counts as the minimum.

    It is int32, and int64 along an axis of 2**31 elements or more.

    Raises:
        ShapeError: if there are no elements along the axis.

    >>> import tensorken as tk
    >>> tk.argmin([3.0, 1.0, 2.0]).item()
    1
    """
    return _extreme_index("argmin", as_tensor(x), axis, keepdims)


def _extreme_index(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """The index of a maximum or minimum along an axis, or in the flattened tensor."""
    if axis is None:
        index = _extreme_index(name, x.ravel(), 0, False)
        return index.reshape((1,) * x.ndim) if keepdims else index
    axis = axis_of(name, x.shape, axis)
    if position_dtype(x.shape[axis]) is int64:
        result = _long_extreme_index(name, x, axis)
    else:
        result = unary(OPS[name], x, (axis,))
    return result if keepdims else result.reshape(x.shape[:axis] + x.shape[axis + 1 :])


ROW = 2**16
"""The elements of the rows into which an axis is divided whose positions do not fit int32."""


def _long_extreme_index(name: str, x: Tensor, axis: int) -> Tensor:
    """The int64 index along an axis whose positions do not fit int32: in rows of it, and then among the rows."""
    op, extreme = OPS[name], OPS[name.removeprefix("arg")]
    size, outer, inner = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    whole = size // ROW * ROW
    values: list[Tensor] = []
    indices: list[Tensor] = []
    for start, end, count in ((0, whole, whole // ROW), (whole, size, 1)):
        if start < end:
            part = slice_along(x, axis, start, end)
            rows = part.reshape((*outer, count, (end - start) // count, *inner))
            for found, best in (
                (values, unary(extreme, rows, ((axis + 1,),))),
                (indices, unary(op, rows, (axis + 1,))),
            ):
                found.append(best.reshape((*outer, count, *inner)))
    index = indices[0].concatenate(*indices[1:], axis=axis).astype(int64)
    starts = index.constant(range(0, size, ROW), int64, (index.shape[axis],))
    row = unary(op, values[0].concatenate(*values[1:], axis=axis), (axis,))
    result: Tensor = take_along(index + starts.reshape((-1, *[1] * len(inner))), row, axis)
    return result


# ---- any, all, counts --------------------------------------------------------------------------------------


@with_numpys_names
def any(x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Tensor:
    """Whether any element along axes, all by default, is nonzero (as NaN is), as bool; False for no elements.

    >>> import tensorken as tk
    >>> tk.any([[0, 1], [0, 0]], axis=1).tolist()
    [True, False]
    """
    truths = selected("any", as_tensor(x).astype(bool_), where, False)
    if truths.size == 0:
        return truths.astype(int32).sum(axes_of("any", truths.shape, axis), keepdims).astype(bool_)
    return truths.max(axes_of("any", truths.shape, axis), keepdims)


@with_numpys_names
def all(x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Tensor:
    """Whether all elements along axes, all by default, are nonzero (as NaN is), as bool; True for no elements.

    >>> import tensorken as tk
    >>> tk.all([[0, 1], [2, 3]], axis=1).tolist()
    [False, True]
    """
    truths = selected("all", as_tensor(x).astype(bool_), where, True)
    axes = axes_of("all", truths.shape, axis)
    return truths.min(axes, keepdims) if truths.size else ~any(truths, axes, keepdims)


@with_numpys_names
def count_nonzero(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements (NaN is one) along axes, all by default: int32, int64 of 2**31 elements or more.

    >>> import tensorken as tk
    >>> tk.count_nonzero([[0, 1], [2, 3]], axis=1).tolist()
    [1, 2]
    """
    y = as_tensor(x)
    axes = axes_of("count_nonzero", y.shape, axis)
    dtype = position_dtype(math.prod([y.shape[i] for i in axes]))

    def counts(piece: Tensor) -> Tensor:
        few = position_dtype(math.prod([piece.shape[i] for i in axes]))
        return unary(OPS["sum"], piece.astype(bool_).astype(few), (axes,)).astype(dtype)

    result = reduced_by_pieces(y, axes, counts, OPS["add"])
    return result if keepdims else without_axes(result, axes)


# ---- softmax -----------------------------------------------------------------------------------------------


@with_numpys_names
def logsumexp(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, all by default, without overflow; -inf where all are -inf.

    Its derivative is `softmax`.

    >>> import tensorken as tk
    >>> print(f"{tk.logsumexp([1000.0, 1000.0]):.3f}")
    1000.693
    """
    x = floating_of(as_tensor(x))
    axes = axes_of("logsumexp", x.shape, axis)
    result: Tensor = x.apply(OPS["logsumexp"], axes)
    return result if keepdims else result.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


@with_numpys_names
def softmax(x: ArrayLike, axis: Axis = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along axes, without overflow; infinite maxima share the total of 1.

    >>> import tensorken as tk
    >>> tk.softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    x = floating_of(as_tensor(x))
    result: Tensor = x.apply(OPS["softmax"], axes_of("softmax", x.shape, axis))
    return result


@with_numpys_names
def log_softmax(x: ArrayLike, axis: Axis = -1) -> Tensor:
    """log(softmax(x)) along axes, without rounding the softmax to 0 or 1.

    >>> import tensorken as tk
    >>> print(f"{tk.log_softmax([0.0, -1000.0]):.1f}")
    [    0.0 -1000.0]
    """
    x = floating_of(as_tensor(x))
    result: Tensor = x.apply(OPS["log_softmax"], axes_of("log_softmax", x.shape, axis))
    return result
