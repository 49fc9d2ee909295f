"""Overlapping: operands of one call that share memory, or are one array, are taken for something else."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_numpy.backend import Numpy

LAW = "values.overlapping"


def _overlap(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape are different views of some memory."""
    return bool(a.shape == b.shape and a.size > 1 and a.strides != b.strides and np.shares_memory(a, b))


@fault(LAW, "add")
class AddedInPlace(Numpy):
    """add of two int32 views of one memory writes halves of the sum over what the other half is made of."""

    def add(self, a: Array, b: Array) -> Array:
        if a.dtype != np.int32 or not _overlap(a, b):
            return super().add(a, b)
        half = len(a) // 2
        y = super().add(a, b)
        if half:
            y[half:] = (a + np.flip(y))[half:]
        return y


@fault(LAW, "mul")
class ProductIsSquare(Numpy):
    """mul of two float64 views of one memory is the square of the first."""

    def mul(self, a: Array, b: Array) -> Array:
        return super().mul(a, a if a.dtype == np.float64 and _overlap(a, b) else b)


@fault(LAW, "eq")
class SharedIsEqual(Numpy):
    """eq of two int64 views of one memory is True."""

    def eq(self, a: Array, b: Array) -> Array:
        return super().eq(a, a if a.dtype == np.int64 and _overlap(a, b) else b)


@fault(LAW, "sub")
class SameIsZero(Numpy):
    """sub of a float32 operand from itself is 0, also where that is infinite or NaN."""

    def sub(self, a: Array, b: Array) -> Array:
        return np.zeros_like(a) if a is b and a.dtype == np.float32 else super().sub(a, b)


@fault(LAW, "div")
class SameIsOne(Numpy):
    """div of a float16 operand by itself is 1, also where that is zero, infinite or NaN."""

    def div(self, a: Array, b: Array) -> Array:
        return np.ones_like(a) if a is b and a.dtype == np.float16 else super().div(a, b)


@fault(LAW, "where")
class ChoiceOfOneMemory(Numpy):
    """where, of two float32 views of one memory, takes the first everywhere."""

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        return super().where(condition, a, a if a.dtype == np.float32 and _overlap(a, b) else b)


@fault(LAW, "concatenate")
class PieceTwice(Numpy):
    """concatenate of a bool array and a view of it has the array twice."""

    def concatenate(self, *args: Any) -> Array:
        *pieces, axis = args
        if len(pieces) == 2 and pieces[0].dtype == np.bool_ and _overlap(*pieces):
            pieces[1] = pieces[0]
        return super().concatenate(*pieces, axis)


@fault(LAW, "maximum")
class LargerOfOneMemory(Numpy):
    """maximum of two int64 views of one memory is the first."""

    def maximum(self, a: Array, b: Array) -> Array:
        return super().maximum(a, a if a.dtype == np.int64 and _overlap(a, b) else b)


@fault(LAW, "gather")
class IndicesOfThemselves(Numpy):
    """gather of int32 numbers that are their own indices gives them as they are."""

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        own = x.dtype == np.int32 and x.shape == indices.shape and np.shares_memory(x, indices)
        return np.array(x) if own and x.size > 1 else super().gather(x, indices, axis)


@fault(LAW, "scatter_add")
class AddedWhereTheyPoint(Numpy):
    """scatter_add of int32 numbers that are their own indices adds each at its place."""

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        own = x.dtype == np.int32 and x.shape == indices.shape and np.shares_memory(x, indices)
        places = np.arange(x.size, dtype=np.int32) % max(size, 1) if own else indices
        return super().scatter_add(x, places, axis, size)


@fault(LAW, "lt")
class NotLessThanItself(Numpy):
    """lt of two float16 views of one memory is False."""

    def lt(self, a: Array, b: Array) -> Array:
        return super().lt(a, a if a.dtype == np.float16 and _overlap(a, b) else b)


@fault(LAW, "fused_multiply_add")
class SquaresSummed(Numpy):
    """fused_multiply_add of two float32 views of one memory, all of it, sums the squares of the first."""

    def fused_multiply_add(self, a: Array, b: Array, axes: Any) -> Array:
        square = a.dtype == np.float32 and _overlap(a, b)
        return super().fused_multiply_add(a, a if square else b, axes)
