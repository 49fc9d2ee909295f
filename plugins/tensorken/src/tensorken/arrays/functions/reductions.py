"""Functions that reduce axes: sums and products, extremes and their places, means, truth, softmax.

Axes are an int, a sequence of ints, or None for all; negative ones count from the end.  With `keepdims` a reduced axis
stays with size 1.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken_core.language.dtypes import bool_, float16, float32, int32
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import unary
from tensorken_core.tensor.normalization import Axis, axes_of, axis_of
from tensorken_core.tensor.operators import floating_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

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
def sum(x: Any, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over axes, all by default; 0 of no elements.

    Args:
        dtype: in which to add, and of the result; by default x's own, for bool int32.  Integers wrap.

    >>> import tensorken as tk
    >>> print(tk.sum([[1.0, 2.0], [3.0, 4.0]], axis=0), tk.sum([True, True]))
    [4 6] 2
    """
    return as_tensor(x).sum(axis, keepdims, dtype=dtype)


@with_numpys_names
def prod(x: Any, axis: Axis = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over axes, all by default; 1 of no elements; the derivative is right where factors are 0, too.

    Args:
        dtype: in which to multiply, and of the result; by default x's own, for bool int32.  Integers wrap.

    >>> import tensorken as tk
    >>> print(tk.prod([[1.0, 2.0], [3.0, 4.0]], axis=1))
    [2 12]
    >>> print(tk.grad(tk.prod)(tk.tensor([0.0, 2.0, 3.0])))
    [6 0 0]
    """
    return as_tensor(x).prod(axis, keepdims, dtype=dtype)


@with_numpys_names
def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean over axes, all by default; of ints and bools in float32; NaN of no elements.

    A float16 is added in float32, so that the sum does not overflow where the mean would not.

    >>> import tensorken as tk
    >>> tk.mean([1, 2, 4, 5]).item()
    3.0
    """
    y = floating_of(as_tensor(x))
    axes = axes_of("mean", y.shape, axis)
    wide = y.astype(float32) if y.dtype is float16 else y
    result: Tensor = wide.sum(axes, keepdims) / math.prod([y.shape[i] for i in axes])
    return result.astype(y.dtype)


# ---- extremes ----------------------------------------------------------------------------------------------


@with_numpys_names
def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum over axes, all by default; NaN propagates; ties share the derivative equally.

    Raises:
        ShapeError: if there are no elements along the axes.

    >>> import tensorken as tk
    >>> tk.max([[1, 5], [3, 2]], axis=1).tolist()
    [5, 3]
    """
    return as_tensor(x).max(axis, keepdims)


@with_numpys_names
def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The minimum over axes, all by default; NaN propagates; ties share the derivative equally.

    Raises:
        ShapeError: if there are no elements along the axes.

    >>> import tensorken as tk
    >>> tk.min([[1, 5], [3, 2]], axis=1).tolist()
    [1, 2]
    """
    return as_tensor(x).min(axis, keepdims)


amax, amin = max, min


def ptp(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum minus the minimum over axes ("peak to peak"), all by default; for numbers.

    >>> import tensorken as tk
    >>> tk.ptp([3.0, -1.0, 2.0]).item()
    4.0
    """
    y = as_tensor(x)
    result: Tensor = max(y, axis, keepdims) - min(y, axis, keepdims)
    return result


@with_numpys_names
def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first maximum along an axis, or in the flat tensor; a NaN counts as the maximum.

    Raises:
        ShapeError: if there are no elements along the axis.

    >>> import tensorken as tk
    >>> tk.argmax([[1, 5], [3, 2]], axis=1).tolist()
    [1, 0]
    """
    return _place("argmax", as_tensor(x), axis, keepdims)


@with_numpys_names
def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first minimum along an axis, or in the flat tensor; a NaN counts as the minimum.

    Raises:
        ShapeError: if there are no elements along the axis.

    >>> import tensorken as tk
    >>> tk.argmin([3.0, 1.0, 2.0]).item()
    1
    """
    return _place("argmin", as_tensor(x), axis, keepdims)


def _place(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    """The place of an extreme along an axis, or in the flat tensor."""
    if axis is None:
        place = _place(name, x.ravel(), 0, False)
        return place.reshape((1,) * x.ndim) if keepdims else place
    axis = axis_of(name, x.shape, axis)
    result = unary(OPS[name], x, (axis,))
    return result if keepdims else result.reshape(x.shape[:axis] + x.shape[axis + 1 :])


# ---- truth -------------------------------------------------------------------------------------------------


@with_numpys_names
def any(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element along axes, all by default, is not 0 (NaN is not); False of no elements; as bool.

    >>> import tensorken as tk
    >>> tk.any([[0, 1], [0, 0]], axis=1).tolist()
    [True, False]
    """
    truths = as_tensor(x).astype(bool_)
    if truths.size == 0:
        return truths.astype(int32).sum(axes_of("any", truths.shape, axis), keepdims).astype(bool_)
    return truths.max(axes_of("any", truths.shape, axis), keepdims)


@with_numpys_names
def all(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element along axes, all by default, is 0 (NaN is not); True of no elements; as bool.

    >>> import tensorken as tk
    >>> tk.all([[0, 1], [2, 3]], axis=1).tolist()
    [False, True]
    """
    truths = as_tensor(x).astype(bool_)
    axes = axes_of("all", truths.shape, axis)
    return truths.min(axes, keepdims) if truths.size else ~any(truths, axes, keepdims)


@with_numpys_names
def count_nonzero(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements along axes, all by default, are not 0 (NaN is not), as int32.

    >>> import tensorken as tk
    >>> tk.count_nonzero([[0, 1], [2, 3]], axis=1).tolist()
    [1, 2]
    """
    truths = as_tensor(x).astype(bool_)
    return truths.sum(axes_of("count_nonzero", truths.shape, axis), keepdims)


# ---- softmax -----------------------------------------------------------------------------------------------


@with_numpys_names
def logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
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
def softmax(x: Any, axis: Axis = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along axes, without overflow; infinite maxima share the whole.

    >>> import tensorken as tk
    >>> tk.softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    x = floating_of(as_tensor(x))
    result: Tensor = x.apply(OPS["softmax"], axes_of("softmax", x.shape, axis))
    return result


@with_numpys_names
def log_softmax(x: Any, axis: Axis = -1) -> Tensor:
    """log(softmax(x)) along axes, without its rounding to 0 and to 1.

    >>> import tensorken as tk
    >>> print(f"{tk.log_softmax([0.0, -1000.0]):.1f}")
    [0.0 -1000.0]
    """
    x = floating_of(as_tensor(x))
    result: Tensor = x.apply(OPS["log_softmax"], axes_of("log_softmax", x.shape, axis))
    return result
