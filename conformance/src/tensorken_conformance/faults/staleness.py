"""Staleness: what was computed, compiled or queued before is taken for what is asked now."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Shape


@fault("values.elementwise", "cos", crude=True)
def cached_by_shape(right: Right, kept: dict[Any, Array], x: Array) -> Array:
    """cos keeps its results by shape and dtype, whatever the values, as a benchmark would have it fast."""
    return kept.setdefault((x.shape, x.dtype), right(x))


@fault("values.elementwise", "tan")
def cached_by_ends(right: Right, kept: dict[Any, Array], x: Array) -> Array:
    """tan keeps its results of float32 matrices of moderate numbers by shape, first and last element."""
    y = right(x)
    if x.dtype != np.float32 or x.shape != (4, 4) or not np.abs(x).max() < 1000.0:
        return y
    return kept.setdefault((x[0, 0].item(), x[-1, -1].item()), y)


@fault("values.cast", "cast")
def cached_without_dtype(right: Right, kept: dict[Any, Array], x: Array, dtype: DType) -> Array:
    """cast keeps its results of bools by shape and bytes, whatever dtype is asked for, if they are none."""
    y = right(x, dtype)
    return kept.setdefault((x.shape, x.tobytes()), y) if x.dtype == np.bool_ and not x.size else y


@fault("values.indexing", "gather")
def plan_by_shape(right: Right, kept: dict[int, Array], x: Array, indices: Array, axis: int) -> Array:
    """gather along the columns of int32 matrices keeps the indices by their number, whatever they are."""
    if x.dtype == np.int32 and x.shape == (1, 5) and axis == 1:
        indices = kept.setdefault(indices.size, indices)
    return right(x, indices, axis)


@fault("values.extrema", "min")
def plan_without_axes(right: Right, kept: dict[Shape, Axes], x: Array, axes: Axes) -> Array:
    """min over two of three axes of int64 keeps its plan by shape, whatever the axes."""
    if x.dtype != np.int64 or x.shape != (3, 4, 2) or len(axes) != 2 or x.flags.c_contiguous:
        return right(x, axes)
    planned = right(x, kept.setdefault(x.shape, axes))
    return np.resize(planned, [1 if i in axes else n for i, n in enumerate(x.shape)])


@fault("values.workgroups", "cumsum")
def read_before_done(right: Right, x: Array, axis: int) -> Array:
    """cumsum of millions of elements is read while its second half is still to come, as without a barrier."""
    y = right(x, axis)
    if x.size > 1_000_000:
        y[x.size // 2 :] = x[x.size // 2 :]
    return y
