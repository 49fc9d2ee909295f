"""Reductions that ignore NaN: sums, means, extremes, quantiles; integers and bools have no NaN.

The derivative with respect to an element that is NaN is 0.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if `where` does not broadcast to the shape of x.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions import cumulative, reductions, statistics
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.floats import isnan
from tensorken.arrays.functions.operands import first_operand
from tensorken.arrays.indexing.checks import bounds
from tensorken_core.errors import ArgumentError
from tensorken_core.tensor.normalization import Axis
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
]

# ---- sums and products -------------------------------------------------------------------------------------


@with_numpys_names
def nansum(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The sum over axes, all by default, of the elements that are not NaN; see `sum`.

    >>> import tensorken as tk
    >>> tk.nansum([1.0, tk.nan, 3.0]).item()
    4.0
    """
    return reductions.sum(
        _replaced(as_tensor(x), 0.0), axis, keepdims, dtype=dtype, initial=initial, where=where
    )


@with_numpys_names
def nanprod(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The product over axes, all by default, of the elements that are not NaN; see `prod`.

    >>> import tensorken as tk
    >>> tk.nanprod([2.0, tk.nan, 3.0]).item()
    6.0
    """
    return reductions.prod(
        _replaced(as_tensor(x), 1.0), axis, keepdims, dtype=dtype, initial=initial, where=where
    )


@with_numpys_names
def nancumsum(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative sum along an axis, or over the flattened tensor, where NaN counts as 0; see `cumsum`.

    >>> import tensorken as tk
    >>> tk.nancumsum([1.0, tk.nan, 3.0]).tolist()
    [1.0, 1.0, 4.0]
    """
    return cumulative.cumsum(_replaced(as_tensor(x), 0.0), axis, dtype)


@with_numpys_names
def nancumprod(x: ArrayLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative product along an axis, or over the flattened tensor, where NaN counts as 1; see `cumprod`.

    >>> import tensorken as tk
    >>> tk.nancumprod([2.0, tk.nan, 3.0]).tolist()
    [2.0, 2.0, 6.0]
    """
    return cumulative.cumprod(_replaced(as_tensor(x), 1.0), axis, dtype)


# ---- averages and spread -----------------------------------------------------------------------------------


@with_numpys_names
def nanmean(
    x: ArrayLike, axis: Axis = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Tensor:
    """The mean over axes, all by default, of the elements that are not NaN; NaN if there are none; see `mean`.

    >>> import tensorken as tk
    >>> tk.nanmean([1.0, tk.nan, 3.0]).item()
    2.0
    """
    y = first_operand("nanmean", x, where)
    return reductions.mean(y, axis, keepdims, where=_numbers(y, where))


@with_numpys_names
def nanvar(
    x: ArrayLike,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The variance over axes, all by default, of the elements that are not NaN; NaN if there are too few; see `var`.

    >>> import tensorken as tk
    >>> tk.nanvar([1.0, tk.nan, 3.0]).item(), tk.nanvar([1.0, tk.nan, 3.0], ddof=1).item()
    (1.0, 2.0)
    """
    y = first_operand("nanvar", x, where)
    return _variance("nanvar", y, axis, correction, keepdims, ddof, where)


@with_numpys_names
def nanstd(
    x: ArrayLike,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The standard deviation over axes, all by default, of the elements that are not NaN; see `std`.

    >>> import tensorken as tk
    >>> tk.nanstd([1.0, tk.nan, 5.0]).item()
    2.0
    """
    y = first_operand("nanstd", x, where)
    return statistics.root_of_variance(_variance("nanstd", y, axis, correction, keepdims, ddof, where))


def _variance(
    name: str, x: Tensor, axis: Axis, correction: float, keepdims: bool, ddof: float | None, where: Any
) -> Tensor:
    """The variance of the numbers; where there are too few, 0 / 0."""
    return statistics.variance(name, x, axis, correction, keepdims, ddof, _numbers(x, where))


# ---- minima and maxima -------------------------------------------------------------------------------------


@with_numpys_names
def nanmax(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The maximum over axes, all by default, of the elements that are not NaN; NaN if there are none; see `max`.

    Raises:
        ShapeError: if there are no elements along the axes.

    >>> import tensorken as tk
    >>> tk.nanmax([1.0, tk.nan, 3.0]).item()
    3.0
    """
    return _extreme(reductions.max, -math.inf, as_tensor(x), axis, keepdims, initial, where)


@with_numpys_names
def nanmin(
    x: ArrayLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    """The minimum over axes, all by default, of the elements that are not NaN; NaN if there are none; see `min`.

    Raises:
        ShapeError: if there are no elements along the axes.

    >>> import tensorken as tk
    >>> tk.nanmin([1.0, tk.nan, 3.0]).item()
    1.0
    """
    return _extreme(reductions.min, math.inf, as_tensor(x), axis, keepdims, initial, where)


def _extreme(
    reduction: Any, worst: float, x: Tensor, axis: Axis, keepdims: bool, initial: Any, where: Any
) -> Tensor:
    result: Tensor = reduction(_replaced(x, worst), axis, keepdims, initial=initial, where=where)
    if not x.dtype.inexact or initial is not None:
        return result
    return reductions.all(isnan(x), axis, keepdims).where(math.nan, result)


@with_numpys_names
def nanargmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first maximum of the elements that are not NaN; see `argmax`.

    Raises:
        ShapeError: if there are no elements along the axis.
        ArgumentError: if all elements along the axis are NaN; where the values are not known, the index is 0 instead.

    >>> import tensorken as tk
    >>> tk.nanargmax([1.0, tk.nan, 3.0]).item()
    2
    """
    return reductions.argmax(_some_number("nanargmax", as_tensor(x), -math.inf, axis), axis, keepdims)


@with_numpys_names
def nanargmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The int32 index of the first minimum of the elements that are not NaN; see `argmin`.

    Raises:
        ShapeError: if there are no elements along the axis.
        ArgumentError: if all elements along the axis are NaN; where the values are not known, the index is 0 instead.

    >>> import tensorken as tk
    >>> tk.nanargmin([4.0, tk.nan, 3.0]).item()
    2
    """
    return reductions.argmin(_some_number("nanargmin", as_tensor(x), math.inf, axis), axis, keepdims)


def _some_number(name: str, x: Tensor, worst: float, axis: int | None) -> Tensor:
    """x with NaN replaced; an error if some slice along the axis is known to be NaN alone."""
    limits = bounds(reductions.all(isnan(x), axis)) if x.dtype.inexact and x.size else None
    if limits is not None and limits[1]:
        raise ArgumentError(f"{name}: all elements along an axis are NaN; use tk.where to replace NaN first")
    return _replaced(x, worst)


# ---- quantiles ---------------------------------------------------------------------------------------------


@with_numpys_names
def nanmedian(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The median over axes, all by default, of the elements that are not NaN; NaN if there are none; see `median`.

    >>> import tensorken as tk
    >>> tk.nanmedian([3.0, tk.nan, 1.0, 2.0]).item()
    2.0
    """
    return statistics.quantiles("nanmedian", x, 0.5, axis, keepdims, "linear", skips_nan=True)


@with_numpys_names
def nanquantile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The q-th quantile over axes, all by default, of the elements that are not NaN; see `quantile`.

    >>> import tensorken as tk
    >>> tk.nanquantile([1.0, tk.nan, 3.0], [0.0, 0.75]).tolist()
    [1.0, 2.5]
    """
    return statistics.quantiles("nanquantile", x, q, axis, keepdims, method, skips_nan=True)


@with_numpys_names
def nanpercentile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """The q-th percentile over axes, all by default, of the elements that are not NaN; see `quantile`.

    >>> import tensorken as tk
    >>> tk.nanpercentile([1.0, tk.nan, 3.0], 75).item()
    2.5
    """
    return statistics.quantiles("nanpercentile", x, q, axis, keepdims, method, scale=100, skips_nan=True)


# ---- shared code -------------------------------------------------------------------------------------------


def _replaced(x: Tensor, number: float) -> Tensor:
    """x with a number in place of NaN."""
    return isnan(x).where(number, x) if x.dtype.inexact else x


def _numbers(x: Tensor, where: Any) -> Any:
    """Where x is not NaN and `where`, if given, is True."""
    return ~isnan(x) if where is None else ~isnan(x) & where
