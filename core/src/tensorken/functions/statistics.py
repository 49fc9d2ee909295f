"""Statistics along axes: averages, spread, quantiles.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken.creation import as_operand, as_tensor
from tensorken.errors import ArgumentError, ShapeError
from tensorken.functions.operands import first
from tensorken.functions.reductions import mean
from tensorken.normalization import Axis, axes_of
from tensorken.operators import floating_of
from tensorken.spec.dtypes import float16, float32
from tensorken.spec.shapes import Axes, Shape, shown
from tensorken.tensor import Tensor

__all__ = [
    "average",
    "median",
    "percentile",
    "quantile",
    "std",
    "var",
]


# ---- averages and spread -----------------------------------------------------------------------------------


def average(x: Any, axis: Axis = None, weights: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes, all by default, in which each element counts as much as its weight.

    Args:
        weights: of x's shape, or one for each element along the one axis; equal ones by default.

    Raises:
        ShapeError: if the weights have another shape.

    >>> import tensorken as tk
    >>> tk.average([1.0, 2.0, 4.0], weights=[1.0, 1.0, 2.0]).item()
    2.75
    """
    y = first("average", x, weights)
    if weights is None:
        return mean(y, axis, keepdims)
    w = as_operand("average", weights, y)
    axes = axes_of("average", y.shape, axis)
    if w.shape != y.shape:
        if len(axes) != 1 or w.shape != (y.shape[axes[0]],):
            raise ShapeError(
                f"average: weights need shape {y.shape}, or one axis as long as the one axis averaged over, "
                f"got {w.shape}; reshape them, or name the axis"
            )
        w = w.reshape(tuple([n if i in axes else 1 for i, n in enumerate(y.shape)])).broadcast_to(y.shape)
    result: Tensor = (floating_of(y) * w).sum(axes, keepdims) / floating_of(w).sum(axes, keepdims)
    return result


def var(
    x: Any,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
) -> Tensor:
    """The variance over axes, all by default: the mean square of the distance from the mean.

    Args:
        correction: what is taken off the number of elements by which the sum of squares is divided; 1 gives the
            unbiased estimate from a sample.  `ddof` is numpy's name for it.

    Returns:
        A float32 for ints and bools; NaN of no elements.

    Raises:
        ArgumentError: if both correction and ddof are given.

    >>> import tensorken as tk
    >>> tk.var([1.0, 2.0, 3.0, 4.0]).item(), tk.var([1.0, 2.0, 3.0], correction=1).item()
    (1.25, 1.0)
    """
    return _variance("var", as_tensor(x), axis, correction, keepdims, ddof)


def std(
    x: Any,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
) -> Tensor:
    """The standard deviation over axes, all by default: the square root of `var`; its derivative is 0 where it is 0.

    Args:
        correction: see `var`; `ddof` is numpy's name for it.

    >>> import tensorken as tk
    >>> tk.std([1.0, 1.0, 5.0, 5.0]).item()
    2.0
    """
    variance = _variance("std", as_tensor(x), axis, correction, keepdims, ddof)
    flat = variance.eq(0.0)
    return flat.where(0.0, flat.where(1.0, variance).sqrt())


def _variance(
    name: str, x: Tensor, axis: Axis, correction: float, keepdims: bool, ddof: float | None
) -> Tensor:
    if correction and ddof is not None:
        raise ArgumentError(f"{name}: correction={correction} and ddof={ddof} are one thing; give one")
    taken_off = correction if ddof is None else ddof
    y = floating_of(x)
    axes = axes_of(name, y.shape, axis)
    wide = y.astype(float32) if y.dtype is float16 else y
    distance: Any = wide - mean(wide, axes, keepdims=True)
    degrees = math.prod([y.shape[i] for i in axes]) - taken_off
    result: Tensor = (distance * distance).sum(axes, keepdims) / max(degrees, 0)
    return result.astype(y.dtype)


# ---- quantiles ---------------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def median(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The value in the middle of the order over axes, all by default, or the mean of the two there.

    Returns:
        A float32 for ints and bools; NaN where an element is NaN, and of no elements.

    >>> import tensorken as tk
    >>> tk.median([3.0, 1.0, 10.0, 2.0]).item()
    2.5
    """
    return _quantiles("median", x, 0.5, axis, keepdims, "linear")


def quantile(x: Any, q: Any, axis: Axis = None, keepdims: bool = False, method: str = "linear") -> Tensor:
    """The value below which the share q of the elements over axes, all by default, lies.

    Args:
        q: a number from 0 to 1, or a sequence of them, for which the result has a first axis.
        method: what is taken between two elements: `linear` interpolation, the `lower`, `higher` or `nearest` of them,
            or the `midpoint`.

    Returns:
        A float32 for ints and bools; NaN where an element is NaN, and of no elements.

    Raises:
        ArgumentError: if q is no number from 0 to 1, or the method is unknown.

    >>> import tensorken as tk
    >>> tk.quantile([1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 0.75]).tolist()
    [1.0, 2.5, 3.25]
    """
    return _quantiles("quantile", x, q, axis, keepdims, method)


def percentile(x: Any, q: Any, axis: Axis = None, keepdims: bool = False, method: str = "linear") -> Tensor:
    """The value below which q percent of the elements over axes, all by default, lie; see `quantile`.

    >>> import tensorken as tk
    >>> tk.percentile([1.0, 2.0, 3.0, 4.0], 50).item()
    2.5
    """
    return _quantiles("percentile", x, q, axis, keepdims, method, whole=100)


def _quantiles(name: str, x: Any, q: Any, axis: Axis, keepdims: bool, method: str, whole: int = 1) -> Tensor:
    shares = list(q) if isinstance(q, Sequence) else [q]
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= whole:
            raise ArgumentError(
                f"{name}: q must be a number from 0 to {whole}, or a sequence of them, got {shown(q)}"
            )
    if method not in _METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(_METHODS)}, got {shown(method)}")
    y = floating_of(as_tensor(x))
    axes = axes_of(name, y.shape, axis)
    kept = tuple([1 if i in axes else n for i, n in enumerate(y.shape)])
    shape = kept if keepdims else tuple([n for i, n in enumerate(y.shape) if i not in axes])
    ordered = _as_rows(y, axes).sort(1)
    results = [_at_share(ordered, share / whole, method).reshape(shape) for share in shares]
    if not isinstance(q, Sequence):
        return results[0]
    rows = [result.reshape((1, *shape)) for result in results]
    return rows[0].concatenate(*rows[1:], axis=0) if rows else y.constant([], y.dtype, (0, *shape))


def _as_rows(x: Tensor, axes: Axes) -> Tensor:
    """Two axes: the second runs over all elements along `axes`, the first over all else."""
    kept = [i for i in range(x.ndim) if i not in axes]
    count: Shape = (math.prod([x.shape[i] for i in kept]), math.prod([x.shape[i] for i in axes]))
    return x.permute((*kept, *axes)).reshape(count)


def _at_share(ordered: Tensor, share: float, method: str) -> Tensor:
    """Between the two elements of each ordered row where a share of it ends; NaN, which comes last, is all there is."""
    rows, size = ordered.shape
    if size == 0:
        return mean(ordered, 1)
    place = share * (size - 1)
    below = math.floor(place)
    above = min(below + 1, size - 1)
    low, high, last = (
        ordered.crop(((0, rows), (i, i + 1))).reshape((rows,)) for i in (below, above, size - 1)
    )
    part = place - below
    if method != "linear" and part:
        part = {"lower": 0.0, "higher": 1.0, "midpoint": 0.5, "nearest": float(round(place) - below)}[method]
    value: Any = low
    if part == 1.0:
        value = high
    elif part:
        value = low.eq(high).where(low, low * (1.0 - part) + high * part)  # high - low may overflow
    return last.eq(last).where(value, last)
