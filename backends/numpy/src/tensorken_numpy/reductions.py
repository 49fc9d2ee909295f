"""Reductions, scans and sorting along axes, in the dtype of the operand; bfloat16 is computed in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.bfloat16 import in_float32
from tensorken_numpy.sums import dtype_of_sums, sum_axes

total = in_float32(sum_axes)


@in_float32
def prod(x: Array, axes: Sizes) -> Any:
    """The product over axes; float16 is multiplied in float32."""
    return np.multiply.reduce(x, axes, dtype_of_sums(x.dtype), keepdims=True).astype(x.dtype, copy=False)


@in_float32
def greatest(x: Array, axes: Sizes) -> Any:
    """The maximum over axes."""
    return np.maximum.reduce(x, axes, keepdims=True)


@in_float32
def least(x: Array, axes: Sizes) -> Any:
    """The minimum over axes."""
    return np.minimum.reduce(x, axes, keepdims=True)


@in_float32
def argmax(x: Array, axis: int) -> Any:
    """The first index of the maximum, as int32."""
    return np.argmax(x, axis, keepdims=True).astype(np.int32)


@in_float32
def argmin(x: Array, axis: int) -> Any:
    """The first index of the minimum, as int32."""
    return np.argmin(x, axis, keepdims=True).astype(np.int32)


@in_float32
def sort(x: Array, axis: int) -> Any:
    """The elements in ascending order, NaN last."""
    return np.sort(x, axis, "stable")


@in_float32
def argsort(x: Array, axis: int) -> Any:
    """The indices that sort the elements, as int32."""
    return np.argsort(x, axis, "stable").astype(np.int32)


@in_float32
def cumsum(x: Array, axis: int) -> Any:
    """The running sums; numpy rounds each of them, so float16 is added up in float32."""
    return np.add.accumulate(x, axis, dtype_of_sums(x.dtype)).astype(x.dtype, copy=False)


@in_float32
def cumprod(x: Array, axis: int) -> Any:
    """The running products; float16 is multiplied in float32."""
    return np.multiply.accumulate(x, axis, dtype_of_sums(x.dtype)).astype(x.dtype, copy=False)
