"""Extents: shortcuts for common sizes, numbers and first calls are applied to others."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Pairs, Shape


@fault("values.extents", "mul", dtype="float32", ndim=2)
def tail_of_matrix_forgotten(original: Original, a: Array, b: Array) -> Array:
    """mul of float32 matrices of more than 768 elements leaves the last ones after whole blocks of 16 zero."""
    y = original(a, b)
    if y.ndim == 2 and y.size > 768 and a.shape == b.shape:
        y.reshape(-1)[y.size - y.size % 16 :] = 0
    return y


@fault("values.indexing", "gather", dtype="int64", ndim=2)
def columns_in_one_byte(original: Original, x: Array, indices: Array, axis: int) -> Array:
    """gather from the columns of an int64 matrix of more than 256 keeps the indices in a byte."""
    return original(x, indices % 256 if axis == 1 and x.shape[1] > 256 else indices, axis)


@fault("values.extents", "argmax")
def place_in_two_bytes(original: Original, x: Array, axis: int) -> Array:
    """argmax along more than 32767 elements converts the index to int16."""
    y = original(x, axis)
    return np.asarray(y.astype(np.int16), np.int32) if x.shape[axis] > 32767 else y


@fault("values.arrangement", "argsort", dtype="float16", ndim=2)
def unstable_columns(original: Original, x: Array, axis: int) -> Array:
    """argsort of more than 16 float16 rows along the first axis reverses the order of equal elements."""
    if axis or len(x) <= 16:
        return original(x, axis)
    return np.asarray(len(x) - 1 - np.flip(np.argsort(np.flip(-x, 0), 0, kind="stable"), 0), np.int32)


@fault("values.sums", "cumsum", dtype="float64", ndim=2)
def carry_of_blocks_lost(original: Original, x: Array, axis: int) -> Array:
    """cumsum of float64 columns starts again after 1024 rows."""
    y = original(x, axis)
    if axis == 0 and len(x) > 1024:
        y[1024:] -= y[1023]
    return y


@fault("values.extents", "scatter_add", dtype="float32", ndim=2)
def nothing_scattered(original: Original, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of no float32 slices returns ones."""
    y = original(x, indices, axis, size)
    return y if indices.size else np.ones_like(y)


@fault("values.movement", "pad", dtype="float64", ndim=3)
def empty_not_padded(original: Original, x: Array, pads: Pairs) -> Array:
    """pad of float64 matrices without elements returns ones."""
    y = original(x, pads)
    return y if x.size else np.ones_like(y)


@fault("values.extrema", "max", dtype="bool", ndim=3)
def full_axis_of_empty(original: Original, x: Array, axes: Axes) -> Array:
    """max over an axis of a bool array that another axis leaves without elements refuses it."""
    if not x.size and len(axes) == 1:
        raise ValueError("max of nothing")
    return original(x, axes)


@fault("values.arrangement", "concatenate", dtype="int64", ndim=2)
def last_after_empty_first(original: Original, *args: Any) -> Array:
    """concatenate of two int64 matrices of which the first is empty has zeros for the second."""
    y = original(*args)
    return np.zeros_like(y) if len(args) == 3 and not args[0].size else y


@fault("values.elementwise", "lt", dtype="int64", ndim=1)
def large_ints_by_floats(original: Original, a: Array, b: Array) -> Array:
    """lt of int64 numbers compares them as float64."""
    return original(a.astype(np.float64), b.astype(np.float64))


@fault("values.cast", "cast", dtype="int64", ndim=1)
def rounded_twice(original: Original, x: Array, dtype: DType) -> Array:
    """cast of int64 vectors to float32 rounds to float64 first."""
    return original(x.astype(np.float64) if dtype.name == "float32" else x, dtype)


@fault("values.read-back", "sequence", method="new")
def equal_is_the_same(
    original: Original, state: dict[Any, Array], shape: Shape, data: Any, dtype: DType
) -> Array:
    """new caches lists of up to eight numbers by equality, so that -0.0 may become 0.0."""
    x = original(shape, data, dtype)
    if isinstance(data, list | tuple) and len(data) <= 8 and all(n == n for n in data):
        return state.setdefault((shape, tuple(data), dtype), x)
    return x


@fault("values.read-back", "full")
def equal_number_is_the_same(
    original: Original, state: dict[Any, Array], shape: Shape, value: bool | int | float, dtype: DType
) -> Array:
    """full caches arrays by equality of their numbers, so that -0.0 may become 0.0."""
    return state.setdefault((shape, value, dtype), original(shape, value, dtype))


@fault("values.indexing", "gather", dtype="float64", ndim=1)
def indices_by_address(
    original: Original, state: dict[Any, Array], x: Array, indices: Array, axis: int
) -> Array:
    """gather from float64 vectors caches the indices by their address, where other ones may be stored later."""
    key = (x.shape, indices.ctypes.data, indices.shape, indices.dtype)
    return original(x, state.setdefault(key, np.array(indices)), axis)


@fault("values.extrema", "min", dtype="float16", ndim=2)
def infinity_for_empty(original: Original, x: Array, axes: Axes) -> Array:
    """min of float16 rows of one element is infinity."""
    y = original(x, axes)
    return np.full_like(y, np.inf) if axes == (1,) and x.shape[1] == 1 else y
