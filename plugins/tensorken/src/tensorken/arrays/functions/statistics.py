"""Statistics along axes: averages, spread, quantiles.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.arithmetic import floor, round as round_
from tensorken.arrays.functions.operands import first_operand, floating_of
from tensorken.arrays.functions.reductions import counted, mean, selected
from tensorken.arrays.indexing.checks import bounds, require
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.bodies.arrangement import take_along
from tensorken_core.language.dtypes import bool_, int32, promote, real_dtype
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


@with_numpys_names
def average(
    x: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, keepdims: bool = False
) -> Tensor:
    """The weighted mean over axes, all by default.

    Args:
        weights: in the shape of x, or a vector along the single axis; equal weights by default.

    Raises:
        ArgumentError: if a sum of weights is known to be 0.
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
    values = floating_of(y)
    dtype = promote(values.dtype, w.dtype)
    values, w = values.astype(dtype.wide), w.astype(dtype.wide)  # the sums may exceed the range of float16
    total: Any = w.sum(axes, keepdims)
    require("average", "the sum of the weights", total != 0, "other than 0")
    result: Tensor = (values * w).sum(axes, keepdims) / total
    return result.astype(dtype)


@with_numpys_names
def var(
    x: ArrayLike,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The variance over axes, all by default: the mean of the squared deviation from the mean.

    Args:
        correction: the sum of squares is divided by the number of elements minus the correction; 1 makes the estimate
            from a sample unbiased.  `ddof` is the numpy name of this argument.
        where: a bool tensor that broadcasts to the shape of x; elements where it is False are left out.

    Returns:
        A tensor, in float32 for ints and bools; NaN for no elements.

    Raises:
        ArgumentError: if both correction and ddof are given.
        ShapeError: if `where` does not broadcast to the shape of x.

    >>> import tensorken as tk
    >>> tk.var([1.0, 2.0, 3.0, 4.0]).item(), tk.var([1.0, 2.0, 3.0], correction=1).item()
    (1.25, 1.0)
    """
    return variance("var", as_tensor(x), axis, correction, keepdims, ddof, where)


@with_numpys_names
def std(
    x: ArrayLike,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The standard deviation over axes, all by default: the square root of `var`; its derivative is 0 at 0.

    Args:
        correction: see `var`; `ddof` is the numpy name of this argument.
        where: see `var`.

    Raises:
        ShapeError: if `where` does not broadcast to the shape of x.

    >>> import tensorken as tk
    >>> tk.std([1.0, 1.0, 5.0, 5.0]).item()
    2.0
    """
    return root_of_variance(variance("std", as_tensor(x), axis, correction, keepdims, ddof, where))


def root_of_variance(x: Tensor) -> Tensor:
    """The square root; its derivative at 0 is 0."""
    flat = x.eq(0.0)
    return flat.where(0.0, flat.where(1.0, x).sqrt())


def variance(
    name: str,
    x: Tensor,
    axis: Axis,
    correction: float,
    keepdims: bool,
    ddof: float | None,
    where: Any = None,
) -> Tensor:
    """The variance of the elements for which `where` is True; NaN if there are too few, as for numpy's nanvar."""
    if correction and ddof is not None:
        raise ArgumentError(
            f"{name}: correction={correction} and ddof={ddof} are two names of one argument; give one"
        )
    subtracted = correction if ddof is None else ddof
    if not isinstance(subtracted, int | float | Tensor):
        raise ArgumentError(f"{name}: the correction (ddof) must be a number, got {short_repr(subtracted)}")
    y = floating_of(x)
    axes = axes_of(name, y.shape, axis)
    wide = y.astype(y.dtype.wide)
    degrees: Any = max(math.prod([y.shape[i] for i in axes]) - subtracted, 0)
    if where is not None:
        degrees = (counted(name, wide, where, axes, keepdims, wide.dtype) - subtracted).maximum(0.0)
    distance: Any = selected(name, wide - mean(wide, axes, keepdims=True, where=where), where, 0.0)
    squared = distance.real**2 + distance.imag**2 if y.dtype.kind == "complex" else distance * distance
    result: Tensor = squared.sum(axes, keepdims) / degrees
    return result.astype(real_dtype(y.dtype))


# ---- quantiles ---------------------------------------------------------------------------------------------


class Method(NamedTuple):
    """A rule for the position of the quantile q of n sorted elements, which is clipped to those of the elements."""

    alpha: float
    """The position is q * (n + 1 - alpha - beta) + alpha - 1, counted from 0."""
    beta: float
    rounded: Callable[[Any, Any, Any], Any] = lambda position, floor, nearest: position
    """The position between elements, of the position and two functions: floor, and rounding to even."""


METHODS = {
    "linear": Method(1.0, 1.0),
    "lower": Method(1.0, 1.0, lambda p, floor, nearest: floor(p)),
    "higher": Method(1.0, 1.0, lambda p, floor, nearest: -floor(-p)),
    "nearest": Method(1.0, 1.0, lambda p, floor, nearest: nearest(p)),
    "midpoint": Method(1.0, 1.0, lambda p, floor, nearest: (floor(p) - floor(-p)) * 0.5),
    "inverted_cdf": Method(0.0, 1.0, lambda p, floor, nearest: -floor(-p)),
    "averaged_inverted_cdf": Method(0.0, 1.0, lambda p, floor, nearest: (floor(p + 1.0) - floor(-p)) * 0.5),
    "closest_observation": Method(0.0, 1.0, lambda p, floor, nearest: nearest(p + 1.0) - 1.0),
    "interpolated_inverted_cdf": Method(0.0, 1.0),
    "hazen": Method(0.5, 0.5),
    "weibull": Method(0.0, 0.0),
    "median_unbiased": Method(1.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": Method(3.0 / 8.0, 3.0 / 8.0),
}
"""The methods of numpy (R. J. Hyndman, Y. Fan: Sample quantiles in statistical packages, 1996)."""


@with_numpys_names
def median(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The median over axes, all by default: the middle element in sorted order, or the mean of the two middle elements.

    Returns:
        A tensor, in float32 for ints and bools; NaN where an element is NaN, and for no elements.

    >>> import tensorken as tk
    >>> tk.median([3.0, 1.0, 10.0, 2.0]).item()
    2.5
    """
    return quantiles("median", x, 0.5, axis, keepdims, "linear")


@with_numpys_names
def quantile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The q-quantile over axes, all by default: a fraction q of the elements is below it.

    The derivative with respect to x goes to the selected elements; for ties, to the elements that `sort` selects.

    Args:
        q: a number from 0 to 1; or a sequence of numbers, a tensor or an array, whose axes become the first axes of
            the result.  The result is differentiable with respect to a tensor q.  Where the values of q are not
            known, as under `jit`, the result is NaN for values outside [0, 1].
        method: the value between two elements: `linear` interpolation, the `lower`, `higher` or `nearest` of the two,
            or their `midpoint`; or another method of numpy, such as `hazen`, `weibull` or `median_unbiased`.

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
    return quantiles("quantile", x, q, axis, keepdims, method)


@with_numpys_names
def percentile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The q-th percentile over axes, all by default; see `quantile`.

    >>> import tensorken as tk
    >>> tk.percentile([1.0, 2.0, 3.0, 4.0], 50).item()
    2.5
    """
    return quantiles("percentile", x, q, axis, keepdims, method, scale=100)


def quantiles(
    name: str,
    x: Any,
    q: Any,
    axis: Axis,
    keepdims: bool,
    method: str,
    scale: int = 1,
    skips_nan: bool = False,
) -> Tensor:
    """The quantiles at q / scale; with `skips_nan` those of the elements that are not NaN."""
    if method not in METHODS:
        raise ArgumentError(f"{name}: method must be one of {', '.join(METHODS)}, got {short_repr(method)}")
    y = floating_of(first_operand(name, x, q))
    fractions: Any = None
    if hasattr(q, "__array__") and not isinstance(q, float):  # numpy's float64 is a Python float
        y, fractions = _fractions(name, y, as_operand(name, q, y), scale)
    else:
        _check_numbers(name, q, scale)
    if y.dtype.kind == "complex" and "median" not in name:  # as in numpy, which sorts for a median alone
        raise DTypeError(f"{name}: not defined for {y.dtype}; take x.real, x.imag or abs(x)")
    axes = axes_of(name, y.shape, axis)
    kept = tuple([1 if i in axes else n for i, n in enumerate(y.shape)])
    shape = kept if keepdims else tuple([n for i, n in enumerate(y.shape) if i not in axes])
    ordered = _as_rows(y, axes).sort(1)
    if skips_nan and fractions is None:
        numbers = [float(number) / scale for number in (q if isinstance(q, Sequence) else [q])]
        fractions = y.constant(
            numbers, real_dtype(y.dtype), (len(numbers),) if isinstance(q, Sequence) else ()
        )
    if fractions is not None:
        rows = _interpolated_at_each(
            ordered, fractions.reshape((1, fractions.size)), METHODS[method], skips_nan
        )
        return rows.permute((1, 0)).reshape((*fractions.shape, *shape))
    if not isinstance(q, Sequence):
        return _interpolated_at(ordered, float(q) / scale, METHODS[method]).reshape(shape)
    results = [
        _interpolated_at(ordered, float(number) / scale, METHODS[method]).reshape((1, *shape)) for number in q
    ]
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


def _interpolated_at(ordered: Tensor, fraction: float, method: Method) -> Tensor:
    """Interpolate between two elements of each sorted row at a fraction of the row; NaN if its last element is NaN."""
    rows, size = ordered.shape
    if size == 0:
        return mean(ordered, 1)
    position = fraction * (size + 1 - method.alpha - method.beta) + (method.alpha - 1.0)
    position = min(max(method.rounded(position, math.floor, round), 0), size - 1)
    below = math.floor(position)
    above = min(below + 1, size - 1)
    low, high, last = (
        ordered.crop(((0, rows), (i, i + 1))).reshape((rows,)) for i in (below, above, size - 1)
    )
    weight = position - below
    value: Any = low
    if weight:
        value = _between(low, high, weight)
    return last.eq(last).where(value, last)


def _interpolated_at_each(ordered: Tensor, fractions: Tensor, method: Method, skips_nan: bool) -> Tensor:
    """`_interpolated_at` for fractions of shape (1, m), which may be unknown: the result has shape (rows, m).

    With `skips_nan` a row has as many elements as it has numbers, which are its first; without numbers it gives NaN.
    """
    rows, size = ordered.shape
    if size == 0:
        return mean(ordered, 1, keepdims=True) + fractions
    wide = fractions.astype(fractions.dtype.wide)
    count: Any = ordered.eq(ordered).astype(wide.dtype).sum(1, True) if skips_nan else size
    position: Any = wide.eq(wide).where(wide, 0.0) * (count + (1.0 - method.alpha - method.beta))
    position = method.rounded(position + (method.alpha - 1.0), floor, round_)
    position = position.minimum(count - 1).maximum(0.0)
    below = position.floor()
    weight = (position - below).astype(ordered.dtype)
    index = below.astype(int32)
    above = (index + 1).minimum(size - 1)
    if skips_nan:
        low, high = take_along(ordered, index, 1), take_along(ordered, above, 1)
        unknown = low
    else:
        low, high = (ordered.gather(i.reshape((fractions.size,)), 1) for i in (index, above))
        unknown = ordered.crop(((0, rows), (size - 1, size)))
    inside = ~weight.eq(0.0)
    value = inside.where(_between(inside.where(low, 0.0), inside.where(high, 0.0), weight), low)
    result: Tensor = (unknown.eq(unknown) & fractions.eq(fractions)).where(value, unknown + fractions)
    return result


def _between(low: Any, high: Any, weight: Any) -> Any:
    """low * (1 - weight) + high * weight for 0 < weight < 1, as high - low may overflow; exactly low if they are equal.

    The derivatives with respect to low and high are 1 - weight and weight in either case, so equal values need no
    separate case.
    """
    exact = low.eq(high) & (low.abs() < math.inf)
    difference = exact.where(low, 0.0) - exact.where(high, 0.0)
    return exact.where(low - difference * weight, low * (1.0 - weight) + high * weight)
