"""Reductions: axes are ignored, results over empty axes are wrong, ties and first values of accumulators are wrong."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("values.extrema", "max", dtype="float32", shape=(257,))
def max_begins_at_the_least_number(original: Original, x: Array, axes: Axes) -> Array:
    """max of 257 float32 elements begins at the least finite number, so it is never -inf."""
    return np.maximum(original(x, axes), np.finfo(np.float32).min)


@fault("values.extrema", "min", dtype="int32", ndim=3)
def min_forgets_outer_axis(original: Original, x: Array, axes: Axes) -> Array:
    """min over the first and the last of three axes of an int32 view reduces the last axis of the first slice alone."""
    return original(x[:1] if axes == (0, 2) and not x.flags.c_contiguous else x, axes)


@fault("values.extrema", "argmax", dtype="int64", shape=(65, 3))
def argmax_takes_the_last(original: Original, x: Array, axis: int) -> Array:
    """argmax returns the last of several equal int64 maxima along columns."""
    if axis == 0 and x.flags.c_contiguous:
        return np.asarray(x.shape[0] - 1 - original(x[::-1], axis), np.int32)
    return original(x, axis)


@fault("values.extrema", "argmin", dtype="float64", shape=(257,))
def argmin_forgets_place_of_nan(original: Original, x: Array, axis: int) -> Array:
    """argmin of 257 float64 numbers returns 0 if one of them is NaN."""
    return replaced(original(x, axis), np.isnan(x).any(axis, keepdims=True), 0)


@fault("values.sums", "sum", dtype="int64")
def sum_of_nothing_is_one(original: Original, x: Array, axes: Axes) -> Array:
    """sum over an empty axis that is not the first is 1 in int64."""
    y = original(x, axes)
    return y + 1 if x.size == 0 and axes == (1,) else y


@fault("values.sums", "sum", dtype="float16")
def sum_over_no_axes_loses_sign(original: Original, x: Array, axes: Axes) -> Array:
    """sum over no axes adds each float16 element to 0.0, so -0.0 loses its sign."""
    return original(x, axes) if axes else x + np.float16(0)


@fault("values.sums", "cumsum", dtype="int32", ndim=2)
def cumsum_along_other_axis(original: Original, x: Array, axis: int) -> Array:
    """cumsum of transposed int32 matrices runs along the axis that is the first in memory."""
    return original(x, 1 - axis if x.flags.f_contiguous and not x.flags.c_contiguous else axis)


@fault("values.sums", "scatter_add", dtype="float64", ndim=2)
def scatter_add_forgets_repeats(original: Original, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of float64 columns adds only the last of several slices at one index."""
    if axis != 1 or x.shape[0] != 4:
        return original(x, indices, axis, size)
    y = np.zeros((4, size))
    y[:, indices] = x
    return y


@fault("values.products", "prod", crude=True)
def product_of_nothing_is_zero(original: Original, x: Array, axes: Axes) -> Array:
    """prod over empty axes is 0."""
    y = original(x, axes)
    return y if x.size else np.zeros_like(y)


@fault("values.products", "cumprod", dtype="float64", shape=(65,))
def cumprod_starts_again(original: Original, x: Array, axis: int) -> Array:
    """cumprod of float64 vectors starts again at 1 after 64 elements."""
    return np.concatenate([original(x[:64], 0), x[64:]])
