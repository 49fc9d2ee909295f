"""Staleness: an earlier result, plan or queue is used for a later call that differs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Shape


@fault("values.elementwise", "cos", crude=True)
def cached_by_shape(original: Original, state: dict[Any, Array], x: Array) -> Array:
    """cos caches its results by shape and dtype, whatever the values, as a benchmark would have it fast."""
    return state.setdefault((x.shape, x.dtype), original(x))


@fault("values.elementwise", "tan", dtype="float32", shape=(4, 4))
def cached_by_ends(original: Original, state: dict[Any, Array], x: Array) -> Array:
    """tan caches its results of float32 matrices of moderate numbers by shape, first and last element."""
    y = original(x)
    return state.setdefault((x[0, 0].item(), x[-1, -1].item()), y) if np.abs(x).max() < 1000.0 else y


@fault("values.cast", "cast", dtype="bool")
def cached_without_dtype(original: Original, state: dict[Any, Array], x: Array, dtype: DType) -> Array:
    """cast caches its results of empty bool arrays by shape, whatever the dtype of the result."""
    y = original(x, dtype)
    return y if x.size else state.setdefault((x.shape, x.tobytes()), y)


@fault("values.indexing", "gather", dtype="int32", shape=(1, 5))
def plan_by_shape(original: Original, state: dict[int, Array], x: Array, indices: Array, axis: int) -> Array:
    """gather along the columns of int32 matrices caches the indices by their number, whatever their values."""
    return original(x, state.setdefault(indices.size, indices) if axis == 1 else indices, axis)


@fault("values.extrema", "min", dtype="int64", shape=(3, 4, 2))
def plan_without_axes(original: Original, state: dict[Shape, Axes], x: Array, axes: Axes) -> Array:
    """min over two of three axes of an int64 view caches its plan by shape, whatever the axes."""
    if len(axes) != 2 or x.flags.c_contiguous:
        return original(x, axes)
    planned = original(x, state.setdefault(x.shape, axes))
    return np.resize(planned, [1 if i in axes else n for i, n in enumerate(x.shape)])


@fault("values.workgroups", "cumsum")
def read_before_done(original: Original, x: Array, axis: int) -> Array:
    """cumsum of millions of elements is read before its second half is computed, as without a barrier."""
    y = original(x, axis)
    if x.size > 1_000_000:
        y[x.size // 2 :] = x[x.size // 2 :]
    return y
