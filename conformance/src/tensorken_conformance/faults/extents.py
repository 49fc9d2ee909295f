"""Extents: what holds for common sizes, numbers and first calls is taken to hold for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Pairs, Shape


@fault("values.extents", "mul")
def tail_of_matrix_forgotten(right: Right, a: Array, b: Array) -> Array:
    """mul of float32 matrices of more than 768 elements leaves the last ones after whole blocks of 16 zero."""
    y = right(a, b)
    if y.dtype == np.float32 and y.ndim == 2 and y.size > 768 and a.shape == b.shape:
        y.reshape(-1)[y.size - y.size % 16 :] = 0
    return y


@fault("values.indexing", "gather")
def columns_in_one_byte(right: Right, x: Array, indices: Array, axis: int) -> Array:
    """gather from the columns of an int64 matrix of more than 256 keeps the indices in a byte."""
    short = x.dtype == np.int64 and x.ndim == 2 and axis == 1 and x.shape[1] > 256
    return right(x, indices % 256 if short else indices, axis)


@fault("values.extents", "argmax")
def place_in_two_bytes(right: Right, x: Array, axis: int) -> Array:
    """argmax along more than 32767 elements gives the place as an int16 has it."""
    y = right(x, axis)
    return np.asarray(y.astype(np.int16), np.int32) if x.shape[axis] > 32767 else y


@fault("values.arrangement", "argsort")
def unstable_columns(right: Right, x: Array, axis: int) -> Array:
    """argsort of more than 16 float16 rows along the first axis has equal elements in reverse."""
    if x.dtype == np.float16 and x.ndim == 2 and axis == 0 and len(x) > 16:
        return np.asarray(len(x) - 1 - np.flip(np.argsort(np.flip(-x, 0), 0, kind="stable"), 0), np.int32)
    return right(x, axis)


@fault("values.sums", "cumsum")
def carry_of_blocks_lost(right: Right, x: Array, axis: int) -> Array:
    """cumsum of float64 columns begins anew after 1024 rows."""
    y = right(x, axis)
    if x.dtype == np.float64 and x.ndim == 2 and axis == 0 and len(x) > 1024:
        y[1024:] -= y[1023]
    return y


@fault("values.extents", "scatter_add")
def nothing_scattered(right: Right, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of no float32 slices at all leaves ones behind."""
    y = right(x, indices, axis, size)
    return np.ones_like(y) if x.dtype == np.float32 and x.ndim == 2 and not indices.size else y


@fault("values.movement", "pad")
def empty_not_padded(right: Right, x: Array, pads: Pairs) -> Array:
    """pad of float64 matrices without elements gives ones."""
    y = right(x, pads)
    return np.ones_like(y) if x.dtype == np.float64 and x.ndim == 3 and not x.size else y


@fault("values.extrema", "max")
def full_axis_of_empty(right: Right, x: Array, axes: Axes) -> Array:
    """max over an axis of a bool array that another axis leaves without elements refuses it."""
    if x.dtype == np.bool_ and x.ndim == 3 and not x.size and len(axes) == 1:
        raise ValueError("max of nothing")
    return right(x, axes)


@fault("values.arrangement", "concatenate")
def last_after_empty_first(right: Right, *args: Any) -> Array:
    """concatenate of two int64 matrices of which the first is empty has zeros for the second."""
    y = right(*args)
    empty = len(args) == 3 and args[0].ndim == 2 and not args[0].size and y.dtype == np.int64
    return np.zeros_like(y) if empty else y


@fault("values.elementwise", "lt")
def large_ints_by_floats(right: Right, a: Array, b: Array) -> Array:
    """lt of int64 numbers compares them as float64."""
    if a.dtype == np.int64 and a.ndim == 1:
        return right(a.astype(np.float64), b.astype(np.float64))
    return right(a, b)


@fault("values.cast", "cast")
def rounded_twice(right: Right, x: Array, dtype: DType) -> Array:
    """cast of int64 vectors to float32 rounds to float64 first."""
    if x.dtype == np.int64 and dtype.name == "float32" and x.ndim == 1:
        x = x.astype(np.float64)
    return right(x, dtype)


@fault("values.read-back", "sequence", method="new")
def equal_is_the_same(right: Right, kept: dict[Any, Array], shape: Shape, data: Any, dtype: DType) -> Array:
    """new remembers lists of up to eight numbers by whether they are equal, so that -0.0 may become 0.0."""
    x = right(shape, data, dtype)
    if isinstance(data, list | tuple) and len(data) <= 8 and all(n == n for n in data):
        return kept.setdefault((shape, tuple(data), dtype), x)
    return x


@fault("values.read-back", "full")
def equal_number_is_the_same(
    right: Right, kept: dict[Any, Array], shape: Shape, value: bool | int | float, dtype: DType
) -> Array:
    """full remembers arrays by whether their numbers are equal, so that -0.0 may become 0.0."""
    return kept.setdefault((shape, value, dtype), right(shape, value, dtype))


@fault("values.indexing", "gather")
def indices_by_address(right: Right, kept: dict[Any, Array], x: Array, indices: Array, axis: int) -> Array:
    """gather from float64 vectors keeps the indices by where they lie, also when others lie there."""
    if x.dtype == np.float64 and x.ndim == 1:
        key = (x.shape, indices.ctypes.data, indices.shape, indices.dtype)
        indices = kept.setdefault(key, np.array(indices))
    return right(x, indices, axis)


@fault("values.extrema", "min")
def infinity_for_empty(right: Right, x: Array, axes: Axes) -> Array:
    """min of float16 rows of one element gives infinity."""
    y = right(x, axes)
    one = x.dtype == np.float16 and axes == (1,) and x.ndim == 2 and x.shape[1] == 1
    return np.full_like(y, np.inf) if one else y
