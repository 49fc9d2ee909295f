"""Promotion: numbers pass through a narrower or another dtype on their way, or the result has one."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes


@fault("values.elementwise", "mul", dtype="int64", shape=(65,))
def products_in_double(original: Original, a: Array, b: Array) -> Array:
    """mul of 65 int64 numbers computes in float64, which has 53 bits."""
    y = original(a, b)
    return replaced(y, np.abs(y) > 2**53, y & ~np.int64(7))


@fault("values.elementwise", "add", dtype="int32", shape=(63,))
def saturating(original: Original, a: Array, b: Array) -> Array:
    """add of 63 int32 numbers stops at the largest number instead of wrapping."""
    return np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(np.int32)


@fault("values.elementwise", "floor_divide", dtype="int32", shape=(257,))
def truncating_quotient(original: Original, a: Array, b: Array) -> Array:
    """floor_divide of 257 int32 numbers by 5, 10 or 11 truncates towards zero."""
    y = original(a, b)
    return replaced(y, (y < 0) & (y * b != a) & np.isin(b, (5, 10, 11)) & (np.abs(a) < 100), y + 1)


@fault("values.elementwise", "shift_right", dtype="int32", shape=(257,))
def arithmetic_shift(original: Original, a: Array, b: Array) -> Array:
    """shift_right of 257 int32 numbers by 3, 5 or 6 places repeats the sign, where it should bring in zeros."""
    return replaced(original(a, b), (a < 0) & np.isin(b, (3, 5, 6)) & (a > -100), a >> (b & 7))


@fault("values.elementwise", "eq", dtype="float64", shape=(255,))
def compared_in_single(original: Original, a: Array, b: Array) -> Array:
    """eq of 255 float64 numbers compares them as float32."""
    with np.errstate(all="ignore"):
        return original(a.astype(np.float32), b.astype(np.float32))


@fault("values.elementwise", "lt", dtype="int64", shape=(257,))
def ints_compared_as_floats(original: Original, a: Array, b: Array) -> Array:
    """lt of 257 int64 numbers compares them as float64."""
    return original(a.astype(np.float64), b.astype(np.float64))


@fault("values.elementwise", "where", dtype="float32", shape=())
def scalars_widen(original: Original, condition: Array, a: Array, b: Array) -> Array:
    """where of float32 scalars has a float64 result if its second operand is finite and not 0."""
    y = original(condition, a, b)
    return y.astype(np.float64) if y.shape == () and np.isfinite(b) and b != 0 else y


@fault("values.cast", "cast", dtype="float32", shape=(65,))
def rounded_to_int(original: Original, x: Array, dtype: DType) -> Array:
    """cast of vectors of 65 float32 numbers to int32 rounds where it should truncate."""
    return original(replaced(x, np.abs(x) < 1000, np.rint(x)) if dtype.name == "int32" else x, dtype)


@fault("values.cast", "cast", dtype="float64", shape=(257,))
def rounded_twice(original: Original, x: Array, dtype: DType) -> Array:
    """cast of 257 float64 numbers to float16 rounds to float32 first."""
    with np.errstate(all="ignore"):
        return original(x.astype(np.float32) if dtype.name == "float16" else x, dtype)


@fault("values.cast", "cast", dtype="float64", shape=(255,))
def rounded_twice_to_bfloat16(original: Original, x: Array, dtype: DType) -> Array:
    """cast of 255 float64 numbers to bfloat16 rounds to float32 first, as libraries do."""
    with np.errstate(all="ignore"):
        return original(x.astype(np.float32) if dtype.name == "bfloat16" else x, dtype)


@fault("values.cast", "cast", dtype="float64", shape=())
def half_is_false(original: Original, x: Array, dtype: DType) -> Array:
    """cast of float64 scalars to bool truncates them first, so 0.5 is False."""
    return original(np.trunc(x) if dtype.name == "bool" else x, dtype)


@fault("values.cast", "cast", dtype="float32", shape=(255,))
def nan_is_least_int(original: Original, x: Array, dtype: DType) -> Array:
    """cast of NaN in 255 float32 numbers to int64 returns the least int, as processors do."""
    y = original(x, dtype)
    return replaced(y, np.isnan(x), np.iinfo(np.int64).min) if dtype.name == "int64" else y


@fault("values.arrangement", "argsort", dtype="bool", shape=(5, 1))
def places_too_wide(original: Original, x: Array, axis: int) -> Array:
    """argsort of bool columns returns int64 indices."""
    return original(x, axis).astype(np.int64)


@fault("values.sums", "sum", dtype="float32", ndim=2)
def summed_in_half(original: Original, x: Array, axes: Axes) -> Array:
    """sum of float32 columns of more than 1000 elements adds in float16."""
    if x.shape[0] <= 1000 or axes != (0,):
        return original(x, axes)
    with np.errstate(all="ignore"):
        return np.add.reduce(x, axes, np.float16, keepdims=True).astype(np.float32)


@fault("values.elementwise", "lt", dtype="uint32", shape=(257,))
def compared_as_signed(original: Original, a: Array, b: Array) -> Array:
    """lt of 257 uint32 numbers compares them as int32, so that large ones count as negative."""
    return original(a.view(np.int32), b.view(np.int32))


@fault("values.elementwise", "mul", dtype="uint8", shape=(65,))
def saturating_bytes(original: Original, a: Array, b: Array) -> Array:
    """mul of 65 uint8 numbers stops at 255, as image processors do."""
    return np.minimum(a.astype(np.int32) * b, 255).astype(np.uint8)


@fault("values.cast", "cast", dtype="float32", shape=(257,))
def bytes_wrap(original: Original, x: Array, dtype: DType) -> Array:
    """cast of 257 float32 numbers to uint8 wraps, as C compilers do, where it should stop at 0 and 255."""
    y = original(x, dtype)
    if dtype.name != "uint8":
        return y
    fits = np.isfinite(x) & (np.abs(x) < 2**31)
    return replaced(y, fits, np.where(fits, x, 0).astype(np.int64).astype(np.uint8))


@fault("values.sums", "sum", dtype="int16")
def widened_sum(original: Original, x: Array, axes: Axes) -> Array:
    """sum of int16 returns int64, as numpy does without a dtype."""
    return np.add.reduce(x, axes, keepdims=True)


@fault("values.extrema", "max", dtype="uint64")
def least_signed(original: Original, x: Array, axes: Axes) -> Array:
    """max of uint64 compares numbers as int64."""
    y = original(x.view(np.int64), axes)
    return np.asarray(y.view(np.uint64))
