"""Overlapping: operands of one call that share memory, or are one array, are mistaken for each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array

LAW = "values.overlapping"


def _overlap(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape are different views of the same memory."""
    return bool(a.shape == b.shape and a.size > 1 and a.strides != b.strides and np.shares_memory(a, b))


def _first_twice(original: Original, *operands: Any) -> Array:
    """The result with the first array in the place of the second, if they are different views of the same memory."""
    a, b, *params = operands
    return original(a, a if _overlap(a, b) else b, *params)


@fault(LAW, "add", dtype="int32")
def added_in_place(original: Original, a: Array, b: Array) -> Array:
    """add of two int32 views of one memory overwrites operands of the second half by the first half of the sum."""
    y = original(a, b)
    if _overlap(a, b) and (half := len(a) // 2):
        y[half:] = (a + np.flip(y))[half:]
    return y


@fault(LAW, "mul", dtype="float64")
def product_is_square(original: Original, a: Array, b: Array) -> Array:
    """mul of two float64 views of one memory is the square of the first."""
    return _first_twice(original, a, b)


@fault(LAW, "eq", dtype="int64")
def shared_is_equal(original: Original, a: Array, b: Array) -> Array:
    """eq of two int64 views of one memory is True."""
    return _first_twice(original, a, b)


@fault(LAW, "sub", dtype="float32")
def same_is_zero(original: Original, a: Array, b: Array) -> Array:
    """sub of a float32 operand from itself is 0, also where that is infinite or NaN."""
    return np.zeros_like(a) if a is b else original(a, b)


@fault(LAW, "div", dtype="float16")
def same_is_one(original: Original, a: Array, b: Array) -> Array:
    """div of a float16 operand by itself is 1, also where that is zero, infinite or NaN."""
    return np.ones_like(a) if a is b else original(a, b)


@fault(LAW, "where", dtype="float32")
def choice_of_one_memory(original: Original, condition: Array, a: Array, b: Array) -> Array:
    """where, of two float32 views of one memory, selects the first everywhere."""
    return original(condition, a, a if _overlap(a, b) else b)


@fault(LAW, "concatenate", dtype="bool")
def piece_twice(original: Original, *args: Any) -> Array:
    """concatenate of a bool array and a view of it has the array twice."""
    return _first_twice(original, *args) if len(args) == 3 else original(*args)


@fault(LAW, "maximum", dtype="int64")
def larger_of_one_memory(original: Original, a: Array, b: Array) -> Array:
    """maximum of two int64 views of one memory is the first."""
    return _first_twice(original, a, b)


@fault(LAW, "gather", dtype="int32")
def indices_of_themselves(original: Original, x: Array, indices: Array, axis: int) -> Array:
    """gather of int32 numbers that are their own indices returns them unchanged."""
    own = x.shape == indices.shape and np.shares_memory(x, indices)
    return np.array(x) if own and x.size > 1 else original(x, indices, axis)


@fault(LAW, "scatter_add", dtype="int32")
def added_where_they_point(original: Original, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of int32 numbers that are their own indices adds each at its own position."""
    own = x.shape == indices.shape and np.shares_memory(x, indices)
    return original(x, np.arange(x.size, dtype=np.int32) % max(size, 1) if own else indices, axis, size)


@fault(LAW, "lt", dtype="float16")
def not_less_than_itself(original: Original, a: Array, b: Array) -> Array:
    """lt of two float16 views of one memory is False."""
    return _first_twice(original, a, b)


@fault(LAW, "fused_multiply_add", dtype="float32")
def squares_summed(original: Original, a: Array, b: Array, axes: Any) -> Array:
    """fused_multiply_add of two float32 views of the same elements sums the squares of the first."""
    return _first_twice(original, a, b, axes)
