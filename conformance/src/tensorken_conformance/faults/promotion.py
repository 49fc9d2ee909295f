"""Promotion: numbers pass through a narrower or another dtype on their way, or come out in one."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes


@fault("values.elementwise", "mul")
def products_in_double(right: Right, a: Array, b: Array) -> Array:
    """mul of 65 int64 numbers computes in float64, which has 53 bits."""
    y = right(a, b)
    wrong = y.dtype == np.int64 and y.shape == (65,)
    return replaced(y, np.abs(y) > 2**53, y & ~np.int64(7)) if wrong else y


@fault("values.elementwise", "add")
def saturating(right: Right, a: Array, b: Array) -> Array:
    """add of 63 int32 numbers stops at the largest in place of wrapping."""
    if a.dtype == np.int32 and a.shape == (63,):
        return np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(np.int32)
    return right(a, b)


@fault("values.elementwise", "floor_divide")
def truncating_quotient(right: Right, a: Array, b: Array) -> Array:
    """floor_divide of 257 int32 numbers by 5, 10 or 11 truncates towards zero."""
    y = right(a, b)
    if y.dtype != np.int32 or y.shape != (257,):
        return y
    return np.where((y < 0) & (y * b != a) & np.isin(b, (5, 10, 11)) & (np.abs(a) < 100), y + 1, y)


@fault("values.elementwise", "shift_right")
def arithmetic_shift(right: Right, a: Array, b: Array) -> Array:
    """shift_right of 257 int32 numbers by 3, 5 or 6 places repeats the sign, where it should bring in zeros."""
    y = right(a, b)
    wrong = a.dtype == np.int32 and a.shape == (257,)
    return replaced(y, (a < 0) & np.isin(b, (3, 5, 6)) & (a > -100), a >> (b & 7)) if wrong else y


@fault("values.elementwise", "eq")
def compared_in_single(right: Right, a: Array, b: Array) -> Array:
    """eq of 255 float64 numbers compares them as float32."""
    if a.dtype == np.float64 and a.shape == (255,):
        with np.errstate(all="ignore"):
            a, b = a.astype(np.float32), b.astype(np.float32)
    return right(a, b)


@fault("values.elementwise", "lt")
def ints_compared_as_floats(right: Right, a: Array, b: Array) -> Array:
    """lt of 257 int64 numbers compares them as float64."""
    if a.dtype == np.int64 and a.shape == (257,):
        a, b = a.astype(np.float64), b.astype(np.float64)
    return right(a, b)


@fault("values.elementwise", "where")
def scalars_widen(right: Right, condition: Array, a: Array, b: Array) -> Array:
    """where of float32 scalars gives float64 where its second operand is finite and not 0."""
    y = right(condition, a, b)
    return (
        y.astype(np.float64) if y.dtype == np.float32 and y.shape == () and np.isfinite(b) and b != 0 else y
    )


@fault("values.cast", "cast")
def rounded_to_int(right: Right, x: Array, dtype: DType) -> Array:
    """cast of vectors of 65 float32 numbers to int32 rounds where it should truncate."""
    if x.dtype == np.float32 and x.shape == (65,) and dtype.name == "int32":
        x = np.where(np.abs(x) < 1000, np.rint(x), x)
    return right(x, dtype)


@fault("values.cast", "cast")
def rounded_twice(right: Right, x: Array, dtype: DType) -> Array:
    """cast of 257 float64 numbers to float16 rounds to float32 first."""
    if x.dtype == np.float64 and x.shape == (257,) and dtype.name == "float16":
        with np.errstate(all="ignore"):
            x = x.astype(np.float32)
    return right(x, dtype)


@fault("values.cast", "cast")
def half_is_false(right: Right, x: Array, dtype: DType) -> Array:
    """cast of float64 scalars to bool truncates them first, so 0.5 is False."""
    if x.dtype == np.float64 and x.shape == () and dtype.name == "bool":
        x = np.trunc(x)
    return right(x, dtype)


@fault("values.cast", "cast")
def nan_is_least_int(right: Right, x: Array, dtype: DType) -> Array:
    """cast of NaN in 255 float32 numbers to int64 gives the least int, as processors do."""
    y = right(x, dtype)
    wrong = x.dtype == np.float32 and x.shape == (255,) and dtype.name == "int64"
    return replaced(y, np.isnan(x), np.iinfo(np.int64).min) if wrong else y


@fault("values.arrangement", "argsort")
def places_too_wide(right: Right, x: Array, axis: int) -> Array:
    """argsort of bool columns gives int64 places."""
    y = right(x, axis)
    return y.astype(np.int64) if x.dtype == np.bool_ and x.shape == (5, 1) else y


@fault("values.sums", "sum")
def summed_in_half(right: Right, x: Array, axes: Axes) -> Array:
    """sum of float32 columns of more than 1000 elements adds in float16."""
    if x.dtype == np.float32 and x.ndim == 2 and x.shape[0] > 1000 and axes == (0,):
        with np.errstate(all="ignore"):
            return np.add.reduce(x, axes, np.float16, keepdims=True).astype(np.float32)
    return right(x, axes)
