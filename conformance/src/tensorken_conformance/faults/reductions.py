"""Reductions: axes are forgotten, empty ones answered wrongly, ties and accumulators begun wrongly."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes
from tensorken_numpy.backend import Numpy


@fault("values.extrema", "max")
class MaxBeginsAtTheLeastNumber(Numpy):
    """max of 257 float32 elements begins at the least finite number, so it is never -inf."""

    def max(self, x: Array, axes: Axes) -> Array:
        y = super().max(x, axes)
        long = x.dtype == np.float32 and x.shape == (257,)
        return np.maximum(y, np.finfo(np.float32).min) if long else y


@fault("values.extrema", "min")
class MinForgetsOuterAxis(Numpy):
    """min over the first and the last of three axes reduces the last alone, and takes the first slice."""

    def min(self, x: Array, axes: Axes) -> Array:
        if x.dtype == np.int32 and x.ndim == 3 and axes == (0, 2) and not x.flags.c_contiguous:
            return super().min(x[:1], axes)
        return super().min(x, axes)


@fault("values.extrema", "argmax")
class ArgmaxTakesTheLast(Numpy):
    """argmax gives the last of several equal int64 maxima along columns."""

    def argmax(self, x: Array, axis: int) -> Array:
        if x.dtype == np.int64 and x.shape == (65, 3) and axis == 0 and x.flags.c_contiguous:
            return np.asarray(x.shape[0] - 1 - super().argmax(x[::-1], axis), np.int32)
        return super().argmax(x, axis)


@fault("values.extrema", "argmin")
class ArgminForgetsPlaceOfNan(Numpy):
    """argmin of 257 float64 numbers gives 0 where there is a NaN among them."""

    def argmin(self, x: Array, axis: int) -> Array:
        y = super().argmin(x, axis)
        if x.dtype == np.float64 and x.shape == (257,):
            return np.where(np.isnan(x).any(axis, keepdims=True), 0, y).astype(np.int32)
        return y


@fault("values.sums", "sum")
class SumOfNothingIsOne(Numpy):
    """sum over an empty axis that is not the first gives 1 in int64."""

    def sum(self, x: Array, axes: Axes) -> Array:
        y = super().sum(x, axes)
        return y + 1 if x.dtype == np.int64 and x.size == 0 and axes == (1,) else y


@fault("values.sums", "sum")
class SumOverNoAxesLosesSign(Numpy):
    """sum over no axes adds each float16 element to 0.0, so -0.0 loses its sign."""

    def sum(self, x: Array, axes: Axes) -> Array:
        return x + np.float16(0) if x.dtype == np.float16 and not axes else super().sum(x, axes)


@fault("values.sums", "cumsum")
class CumsumAlongOtherAxis(Numpy):
    """cumsum of transposed int32 matrices runs along the axis that lies first in memory."""

    def cumsum(self, x: Array, axis: int) -> Array:
        swapped = x.dtype == np.int32 and x.ndim == 2 and x.flags.f_contiguous and not x.flags.c_contiguous
        return super().cumsum(x, 1 - axis if swapped else axis)


@fault("values.sums", "scatter_add")
class ScatterAddForgetsRepeats(Numpy):
    """scatter_add of float64 columns adds only the last of several slices at one index."""

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        if x.dtype == np.float64 and axis == 1 and x.ndim == 2 and x.shape[0] == 4:
            y = np.zeros((x.shape[0], size))
            y[:, indices] = x
            return y
        return super().scatter_add(x, indices, axis, size)


@fault("values.products", "prod", crude=True)
class ProductOfNothingIsZero(Numpy):
    """prod over empty axes gives 0."""

    def prod(self, x: Array, axes: Axes) -> Array:
        y = super().prod(x, axes)
        return y if x.size else np.zeros_like(y)


@fault("values.products", "cumprod")
class CumprodStartsAgain(Numpy):
    """cumprod of float64 vectors starts again at 1 after 64 elements."""

    def cumprod(self, x: Array, axis: int) -> Array:
        if x.dtype == np.float64 and x.shape == (65,):
            return np.concatenate([super().cumprod(x[:64], 0), x[64:]])
        return super().cumprod(x, axis)
