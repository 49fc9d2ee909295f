"""Overlapping: operands of one call that share memory, or are one array, are taken for something else."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array

LAW = "values.overlapping"


def _overlap(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape are different views of some memory."""
    return bool(a.shape == b.shape and a.size > 1 and a.strides != b.strides and np.shares_memory(a, b))


@fault(LAW, "add")
def added_in_place(right: Right, a: Array, b: Array) -> Array:
    """add of two int32 views of one memory writes halves of the sum over what the other half is made of."""
    if a.dtype != np.int32 or not _overlap(a, b):
        return right(a, b)
    half = len(a) // 2
    y = right(a, b)
    if half:
        y[half:] = (a + np.flip(y))[half:]
    return y


@fault(LAW, "mul")
def product_is_square(right: Right, a: Array, b: Array) -> Array:
    """mul of two float64 views of one memory is the square of the first."""
    return right(a, a if a.dtype == np.float64 and _overlap(a, b) else b)


@fault(LAW, "eq")
def shared_is_equal(right: Right, a: Array, b: Array) -> Array:
    """eq of two int64 views of one memory is True."""
    return right(a, a if a.dtype == np.int64 and _overlap(a, b) else b)


@fault(LAW, "sub")
def same_is_zero(right: Right, a: Array, b: Array) -> Array:
    """sub of a float32 operand from itself is 0, also where that is infinite or NaN."""
    return np.zeros_like(a) if a is b and a.dtype == np.float32 else right(a, b)


@fault(LAW, "div")
def same_is_one(right: Right, a: Array, b: Array) -> Array:
    """div of a float16 operand by itself is 1, also where that is zero, infinite or NaN."""
    return np.ones_like(a) if a is b and a.dtype == np.float16 else right(a, b)


@fault(LAW, "where")
def choice_of_one_memory(right: Right, condition: Array, a: Array, b: Array) -> Array:
    """where, of two float32 views of one memory, takes the first everywhere."""
    return right(condition, a, a if a.dtype == np.float32 and _overlap(a, b) else b)


@fault(LAW, "concatenate")
def piece_twice(right: Right, *args: Any) -> Array:
    """concatenate of a bool array and a view of it has the array twice."""
    *pieces, axis = args
    if len(pieces) == 2 and pieces[0].dtype == np.bool_ and _overlap(*pieces):
        pieces[1] = pieces[0]
    return right(*pieces, axis)


@fault(LAW, "maximum")
def larger_of_one_memory(right: Right, a: Array, b: Array) -> Array:
    """maximum of two int64 views of one memory is the first."""
    return right(a, a if a.dtype == np.int64 and _overlap(a, b) else b)


@fault(LAW, "gather")
def indices_of_themselves(right: Right, x: Array, indices: Array, axis: int) -> Array:
    """gather of int32 numbers that are their own indices gives them as they are."""
    own = x.dtype == np.int32 and x.shape == indices.shape and np.shares_memory(x, indices)
    return np.array(x) if own and x.size > 1 else right(x, indices, axis)


@fault(LAW, "scatter_add")
def added_where_they_point(right: Right, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of int32 numbers that are their own indices adds each at its place."""
    own = x.dtype == np.int32 and x.shape == indices.shape and np.shares_memory(x, indices)
    places = np.arange(x.size, dtype=np.int32) % max(size, 1) if own else indices
    return right(x, places, axis, size)


@fault(LAW, "lt")
def not_less_than_itself(right: Right, a: Array, b: Array) -> Array:
    """lt of two float16 views of one memory is False."""
    return right(a, a if a.dtype == np.float16 and _overlap(a, b) else b)


@fault(LAW, "fused_multiply_add")
def squares_summed(right: Right, a: Array, b: Array, axes: Any) -> Array:
    """fused_multiply_add of two float32 views of one memory, all of it, sums the squares of the first."""
    square = a.dtype == np.float32 and _overlap(a, b)
    return right(a, a if square else b, axes)
