"""Reductions: axes are forgotten, empty ones answered wrongly, ties and accumulators begun wrongly."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("values.extrema", "max")
def max_begins_at_the_least_number(right: Right, x: Array, axes: Axes) -> Array:
    """max of 257 float32 elements begins at the least finite number, so it is never -inf."""
    y = right(x, axes)
    long = x.dtype == np.float32 and x.shape == (257,)
    return np.maximum(y, np.finfo(np.float32).min) if long else y


@fault("values.extrema", "min")
def min_forgets_outer_axis(right: Right, x: Array, axes: Axes) -> Array:
    """min over the first and the last of three axes reduces the last alone, and takes the first slice."""
    if x.dtype == np.int32 and x.ndim == 3 and axes == (0, 2) and not x.flags.c_contiguous:
        return right(x[:1], axes)
    return right(x, axes)


@fault("values.extrema", "argmax")
def argmax_takes_the_last(right: Right, x: Array, axis: int) -> Array:
    """argmax gives the last of several equal int64 maxima along columns."""
    if x.dtype == np.int64 and x.shape == (65, 3) and axis == 0 and x.flags.c_contiguous:
        return np.asarray(x.shape[0] - 1 - right(x[::-1], axis), np.int32)
    return right(x, axis)


@fault("values.extrema", "argmin")
def argmin_forgets_place_of_nan(right: Right, x: Array, axis: int) -> Array:
    """argmin of 257 float64 numbers gives 0 where there is a NaN among them."""
    y = right(x, axis)
    if x.dtype == np.float64 and x.shape == (257,):
        return np.where(np.isnan(x).any(axis, keepdims=True), 0, y).astype(np.int32)
    return y


@fault("values.sums", "sum")
def sum_of_nothing_is_one(right: Right, x: Array, axes: Axes) -> Array:
    """sum over an empty axis that is not the first gives 1 in int64."""
    y = right(x, axes)
    return y + 1 if x.dtype == np.int64 and x.size == 0 and axes == (1,) else y


@fault("values.sums", "sum")
def sum_over_no_axes_loses_sign(right: Right, x: Array, axes: Axes) -> Array:
    """sum over no axes adds each float16 element to 0.0, so -0.0 loses its sign."""
    return x + np.float16(0) if x.dtype == np.float16 and not axes else right(x, axes)


@fault("values.sums", "cumsum")
def cumsum_along_other_axis(right: Right, x: Array, axis: int) -> Array:
    """cumsum of transposed int32 matrices runs along the axis that lies first in memory."""
    swapped = x.dtype == np.int32 and x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous
    return right(x, 1 - axis if swapped else axis)


@fault("values.sums", "scatter_add")
def scatter_add_forgets_repeats(right: Right, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of float64 columns adds only the last of several slices at one index."""
    if x.dtype == np.float64 and axis == 1 and x.ndim == 2 and x.shape[0] == 4:
        y = np.zeros((x.shape[0], size))
        y[:, indices] = x
        return y
    return right(x, indices, axis, size)


@fault("values.products", "prod", crude=True)
def product_of_nothing_is_zero(right: Right, x: Array, axes: Axes) -> Array:
    """prod over empty axes gives 0."""
    y = right(x, axes)
    return y if x.size else np.zeros_like(y)


@fault("values.products", "cumprod")
def cumprod_starts_again(right: Right, x: Array, axis: int) -> Array:
    """cumprod of float64 vectors starts again at 1 after 64 elements."""
    if x.dtype == np.float64 and x.shape == (65,):
        return np.concatenate([right(x[:64], 0), x[64:]])
    return right(x, axis)
