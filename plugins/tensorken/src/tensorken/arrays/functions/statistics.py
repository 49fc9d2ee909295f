"""Statistics along axes: averages, spread, quantiles.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.operands import first_operand, floating_of
from tensorken.arrays.functions.reductions import mean
from tensorken.arrays.indexing.checks import bounds
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.dtypes import bool_, float16, float32, int32
from tensorken_core.language.shapes import Axes, Shape, short_repr
from tensorken_core.tensor.coercion import as_operand, pair_of_operands
from tensorken_core.tensor.normalization import Axis, axes_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

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
    """The weighted mean over axes, all by default.

    Args:
        weights: in the shape of x, or a vector along the single axis; equal weights by default.

    Raises:
        ShapeError: if the weights have another shape.

    >>> import tensorken as tk
    >>> tk.average([1.0, 2.0, 4.0], weights=[1.0, 1.0, 2.0]).item()
    2.75
    """
    y = first_operand("average", x, weights)
    if weights is None:
        return mean(y, axis, keepdims)
    w = as_operand("average", weights, y)
    axes = axes_of("average", y.shape, axis)
    if w.shape != y.shape:
        if len(axes) != 1 or w.shape != (y.shape[axes[0]],):
            raise ShapeError(
                f"average: weights need shape {y.shape}, or the size of the one averaged axis, "
                f"got {w.shape}; reshape them, or give axis="
            )
        w = w.reshape(tuple([n if i in axes else 1 for i, n in enumerate(y.shape)])).broadcast_to(y.shape)
    result: Tensor = (floating_of(y) * w).sum(axes, keepdims) / floating_of(w).sum(axes, keepdims)
    return result


@with_numpys_names
def var(
    x: Any,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
) -> Tensor:
    """The variance over axes, all by default: the mean of the squared deviation from the mean.

    Args:
        correction: the sum of squares is divided by the number of elements minus the correction; 1 makes the estimate
            from a sample unbiased.  `ddof` is the numpy name of this argument.

    Returns:
        A tensor, in float32 for ints and bools; NaN for no elements.

    Raises:
        ArgumentError: if both correction and ddof are given.

    >>> import tensorken as tk
    >>> tk.var([1.0, 2.0, 3.0, 4.0]).item(), tk.var([1.0, 2.0, 3.0], correction=1).item()
    (1.25, 1.0)
    """
    return _variance("var", as_tensor(x), axis, correction, keepdims, ddof)


@with_numpys_names
def std(
    x: Any,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
) -> Tensor:
    """The standard deviation over axes, all by default: the square root of `var`; its derivative is 0 at 0.

    Args:
        correction: see `var`; `ddof` is the numpy name of this argument.

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
        raise ArgumentError(
            f"{name}: correction={correction} and ddof={ddof} are two names of one argument; give one"
        )
    subtracted = correction if ddof is None else ddof
    y = floating_of(x)
    axes = axes_of(name, y.shape, axis)
    wide = y.astype(float32) if y.dtype is float16 else y
    distance: Any = wide - mean(wide, axes, keepdims=True)
    degrees = math.prod([y.shape[i] for i in axes]) - subtracted
    result: Tensor = (distance * distance).sum(axes, keepdims) / max(degrees, 0)
    return result.astype(y.dtype)


# ---- quantiles ---------------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


@with_numpys_names
def median(x: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The median over axes, all by default: the middle element in sorted order, or the mean of the two middle elements.

    Returns:
        A tensor, in float32 for ints and bools; NaN where an element is NaN, and for no elements.

    >>> import tensorken as tk
    >>> tk.median([3.0, 1.0, 10.0, 2.0]).item()
    2.5
    """
    return _quantiles("median", x, 0.5, axis, keepdims, "linear")


@with_numpys_names
def quantile(x: Any, q: Any, axis: Axis = None, keepdims: bool = False, method: str = "linear") -> Tensor:
    """The q-quantile over axes, all by default: a fraction q of the elements is below it.

    The derivative with respect to x goes to the selected elements; for ties, to the elements that `sort` selects.

    Args:
        q: a number from 0 to 1; or a sequence of numbers, a tensor or an array, whose axes become the first axes of
            the result.  The result is differentiable with respect to a tensor q.  Where the values of q are not
            known, as under `jit`, the result is NaN for values outside [0, 1].
        method: the value between two elements: `linear` interpolation, the `lower`, `higher` or `nearest` of the two,
            or their `midpoint`.

    Returns:
        A tensor, in float32 for ints and bools; NaN where an element is NaN, and for no elements.

    Raises:
        ArgumentError: if q is not a number from 0 to 1, or the method is unknown.

    >>> import tensorken as tk
    >>> tk.quantile([1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 0.75]).tolist()
    [1.0, 2.5, 3.25]
    >>> tk.grad(lambda q: tk.quantile([1.0, 2.0, 4.0], q))(tk.tensor(0.75)).item()
    4.0
    """
    return _quantiles("quantile", x, q, axis, keepdims, method)


def percentile(x: Any, q: Any, axis: Axis = None, keepdims: bool = False, method: str = "linear") -> Tensor:
    """The q-th percentile over axes, all by default; see `quantile`.

    >>> import tensorken as tk
    >>> tk.percentile([1.0, 2.0, 3.0, 4.0], 50).item()
    2.5
    """
    return _quantiles("percentile", x, q, axis, keepdims, method, scale=100)


def _quantiles(name: str, x: Any, q: Any, axis: Axis, keepdims: bool, method: str, scale: int = 1) -> Tensor:
    if method not in _METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(_METHODS)}, got {short_repr(method)}")
    y = floating_of(first_operand(name, x, q))
    fractions: Any = None
    if hasattr(q, "__array__") and not isinstance(q, float):  # numpy's float64 is a Python float
        y, fractions = _fractions(name, y, as_operand(name, q, y), scale)
    else:
        _check_numbers(name, q, scale)
    axes = axes_of(name, y.shape, axis)
    kept = tuple([1 if i in axes else n for i, n in enumerate(y.shape)])
    shape = kept if keepdims else tuple([n for i, n in enumerate(y.shape) if i not in axes])
    ordered = _as_rows(y, axes).sort(1)
    if fractions is not None:
        rows = _interpolated_at_each(ordered, fractions.reshape((1, fractions.size)), method)
        return rows.permute((1, 0)).reshape((*fractions.shape, *shape))
    if not isinstance(q, Sequence):
        return _interpolated_at(ordered, float(q) / scale, method).reshape(shape)
    results = [_interpolated_at(ordered, float(number) / scale, method).reshape((1, *shape)) for number in q]
    return results[0].concatenate(*results[1:], axis=0) if results else y.constant([], y.dtype, (0, *shape))


def _check_numbers(name: str, q: Any, scale: int) -> None:
    for number in q if isinstance(q, Sequence) else [q]:
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= scale:
            raise ArgumentError(
                f"{name}: q must be a number from 0 to {scale}, or a sequence of them, got {short_repr(q)}"
            )


def _fractions(name: str, x: Tensor, q: Tensor, scale: int) -> tuple[Tensor, Tensor]:
    """Convert x and the fractions q / whole to one dtype; unknown fractions outside [0, 1] become NaN."""
    if q.dtype is bool_:
        raise DTypeError(f"{name}: q must be numbers, got bool; cast it (q.astype)")
    y, fraction = pair_of_operands(name, x, q, x)
    in_range: Tensor = (fraction >= 0) & (fraction <= scale)
    limits = bounds(in_range)
    if limits is not None and not limits[0]:
        raise ArgumentError(f"{name}: q must be from 0 to {scale}, got {short_repr(q)}")
    return y, in_range.where(fraction, math.nan) / scale


def _as_rows(x: Tensor, axes: Axes) -> Tensor:
    """Reshape to two axes: the second axis for the elements along `axes`, the first for all other axes."""
    kept = [i for i in range(x.ndim) if i not in axes]
    count: Shape = (math.prod([x.shape[i] for i in kept]), math.prod([x.shape[i] for i in axes]))
    return x.permute((*kept, *axes)).reshape(count)


def _interpolated_at(ordered: Tensor, fraction: float, method: str) -> Tensor:
    """Interpolate between two elements of each sorted row at a fraction of the row; NaN if its last element is NaN."""
    rows, size = ordered.shape
    if size == 0:
        return mean(ordered, 1)
    position = fraction * (size - 1)
    below = math.floor(position)
    above = min(below + 1, size - 1)
    low, high, last = (
        ordered.crop(((0, rows), (i, i + 1))).reshape((rows,)) for i in (below, above, size - 1)
    )
    weight = position - below
    if method != "linear" and weight:
        weight = {"lower": 0.0, "higher": 1.0, "midpoint": 0.5, "nearest": float(round(position) - below)}[
            method
        ]
    value: Any = low
    if weight == 1.0:
        value = high
    elif weight:
        value = _between(low, high, weight)
    return last.eq(last).where(value, last)


def _interpolated_at_each(ordered: Tensor, fractions: Tensor, method: str) -> Tensor:
    """`_interpolated_at` for fractions of shape (1, m), which may be unknown: the result has shape (rows, m)."""
    rows, size = ordered.shape
    if size == 0:
        return mean(ordered, 1, keepdims=True) + fractions
    wide = fractions.astype(float32) if fractions.dtype is float16 else fractions
    position: Any = wide.eq(wide).where(wide, 0.0) * (size - 1)
    below = position.floor()
    weight = position - below
    if method != "linear":
        weights: dict[str, Any] = {
            "lower": lambda: weight * 0.0,
            "higher": lambda: weight.sign(),
            "midpoint": lambda: weight.sign() * 0.5,
            "nearest": lambda: position.round() - below,
        }
        weight = weights[method]()
    index = below.astype(int32).reshape((fractions.size,))
    above = (index + 1).minimum(size - 1)
    low: Any = ordered.gather(index, 1)
    high: Any = ordered.gather(above, 1)
    last: Any = ordered.crop(((0, rows), (size - 1, size)))
    weight = weight.astype(ordered.dtype)
    at_low, at_high = weight.eq(0.0), weight.eq(1.0)
    inside = ~(at_low | at_high)
    value = _between(inside.where(low, 0.0), inside.where(high, 0.0), weight)
    value = at_low.where(low, at_high.where(high, value))
    result: Tensor = (last.eq(last) & fractions.eq(fractions)).where(value, last + fractions)
    return result


def _between(low: Any, high: Any, weight: Any) -> Any:
    """low * (1 - weight) + high * weight for 0 < weight < 1, as high - low may overflow; exactly low if they are equal.

    The derivatives with respect to low and high are 1 - weight and weight in either case, so equal values need no
    separate case.
    """
    exact = low.eq(high) & (low.abs() < math.inf)
    difference = exact.where(low, 0.0) - exact.where(high, 0.0)
    return exact.where(low - difference * weight, low * (1.0 - weight) + high * weight)
