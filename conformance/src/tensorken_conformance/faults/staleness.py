"""Staleness: what was computed, compiled or queued before is taken for what is asked now."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Shape
from tensorken_numpy.backend import Numpy


@fault("values.elementwise", "cos", crude=True)
class CachedByShape(Numpy):
    """cos keeps its results by shape and dtype, whatever the values, as a benchmark would have it fast."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def cos(self, x: Array) -> Array:
        return self.known.setdefault((x.shape, x.dtype), super().cos(x))


@fault("values.elementwise", "tan")
class CachedByEnds(Numpy):
    """tan keeps its results of float32 matrices of moderate numbers by shape, first and last element."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def tan(self, x: Array) -> Array:
        y = super().tan(x)
        if x.dtype != np.float32 or x.shape != (4, 4) or not np.abs(x).max() < 1000.0:
            return y
        return self.known.setdefault((x[0, 0].item(), x[-1, -1].item()), y)


@fault("values.cast", "cast")
class CachedWithoutDtype(Numpy):
    """cast keeps its results of bools by shape and bytes, whatever dtype is asked for, if they are none."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def cast(self, x: Array, dtype: DType) -> Array:
        y = super().cast(x, dtype)
        return self.known.setdefault((x.shape, x.tobytes()), y) if x.dtype == np.bool_ and not x.size else y


@fault("values.indexing", "gather")
class PlanByShape(Numpy):
    """gather along the columns of int32 matrices keeps the indices by their number, whatever they are."""

    def __init__(self) -> None:
        self.plans: dict[int, Array] = {}

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        if x.dtype == np.int32 and x.shape == (1, 5) and axis == 1:
            indices = self.plans.setdefault(indices.size, indices)
        return super().gather(x, indices, axis)


@fault("values.extrema", "min")
class PlanWithoutAxes(Numpy):
    """min over two of three axes of int64 keeps its plan by shape, whatever the axes."""

    def __init__(self) -> None:
        self.plans: dict[Shape, Axes] = {}

    def min(self, x: Array, axes: Axes) -> Array:
        if x.dtype != np.int64 or x.shape != (3, 4, 2) or len(axes) != 2 or x.flags.c_contiguous:
            return super().min(x, axes)
        planned = super().min(x, self.plans.setdefault(x.shape, axes))
        return np.resize(planned, [1 if i in axes else n for i, n in enumerate(x.shape)])


@fault("values.workgroups", "cumsum")
class ReadBeforeDone(Numpy):
    """cumsum of millions of elements is read while its second half is still to come, as without a barrier."""

    def cumsum(self, x: Array, axis: int) -> Array:
        y = super().cumsum(x, axis)
        if x.size > 1_000_000:
            y[x.size // 2 :] = x[x.size // 2 :]
        return y
