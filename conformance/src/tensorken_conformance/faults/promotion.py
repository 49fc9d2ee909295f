"""Promotion: numbers pass through a narrower or another dtype on their way, or come out in one."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes
from tensorken_numpy.backend import Numpy


@fault("values.elementwise", "mul")
class ProductsInDouble(Numpy):
    """mul of 65 int64 numbers computes in float64, which has 53 bits."""

    def mul(self, a: Array, b: Array) -> Array:
        y = super().mul(a, b)
        wrong = y.dtype == np.int64 and y.shape == (65,)
        return replaced(y, np.abs(y) > 2**53, y & ~np.int64(7)) if wrong else y


@fault("values.elementwise", "add")
class Saturating(Numpy):
    """add of 63 int32 numbers stops at the largest in place of wrapping."""

    def add(self, a: Array, b: Array) -> Array:
        if a.dtype == np.int32 and a.shape == (63,):
            return np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(np.int32)
        return super().add(a, b)


@fault("values.elementwise", "floor_divide")
class TruncatingQuotient(Numpy):
    """floor_divide of 257 int32 numbers by 5, 10 or 11 truncates towards zero."""

    def floor_divide(self, a: Array, b: Array) -> Array:
        y = super().floor_divide(a, b)
        if y.dtype != np.int32 or y.shape != (257,):
            return y
        return np.where((y < 0) & (y * b != a) & np.isin(b, (5, 10, 11)) & (np.abs(a) < 100), y + 1, y)


@fault("values.elementwise", "shift_right")
class ArithmeticShift(Numpy):
    """shift_right of 257 int32 numbers by 3, 5 or 6 places repeats the sign, where it should bring in zeros."""

    def shift_right(self, a: Array, b: Array) -> Array:
        y = super().shift_right(a, b)
        wrong = a.dtype == np.int32 and a.shape == (257,)
        return replaced(y, (a < 0) & np.isin(b, (3, 5, 6)) & (a > -100), a >> (b & 7)) if wrong else y


@fault("values.elementwise", "eq")
class ComparedInSingle(Numpy):
    """eq of 255 float64 numbers compares them as float32."""

    def eq(self, a: Array, b: Array) -> Array:
        if a.dtype == np.float64 and a.shape == (255,):
            with np.errstate(all="ignore"):
                a, b = a.astype(np.float32), b.astype(np.float32)
        return super().eq(a, b)


@fault("values.elementwise", "lt")
class IntsComparedAsFloats(Numpy):
    """lt of 257 int64 numbers compares them as float64."""

    def lt(self, a: Array, b: Array) -> Array:
        if a.dtype == np.int64 and a.shape == (257,):
            a, b = a.astype(np.float64), b.astype(np.float64)
        return super().lt(a, b)


@fault("values.elementwise", "where")
class ScalarsWiden(Numpy):
    """where of float32 scalars gives float64 where its second operand is finite and not 0."""

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        y = super().where(condition, a, b)
        return (
            y.astype(np.float64)
            if y.dtype == np.float32 and y.shape == () and np.isfinite(b) and b != 0
            else y
        )


@fault("values.cast", "cast")
class RoundedToInt(Numpy):
    """cast of vectors of 65 float32 numbers to int32 rounds where it should truncate."""

    def cast(self, x: Array, dtype: DType) -> Array:
        if x.dtype == np.float32 and x.shape == (65,) and dtype.name == "int32":
            x = np.where(np.abs(x) < 1000, np.rint(x), x)
        return super().cast(x, dtype)


@fault("values.cast", "cast")
class RoundedTwice(Numpy):
    """cast of 257 float64 numbers to float16 rounds to float32 first."""

    def cast(self, x: Array, dtype: DType) -> Array:
        if x.dtype == np.float64 and x.shape == (257,) and dtype.name == "float16":
            with np.errstate(all="ignore"):
                x = x.astype(np.float32)
        return super().cast(x, dtype)


@fault("values.cast", "cast")
class HalfIsFalse(Numpy):
    """cast of float64 scalars to bool truncates them first, so 0.5 is False."""

    def cast(self, x: Array, dtype: DType) -> Array:
        if x.dtype == np.float64 and x.shape == () and dtype.name == "bool":
            x = np.trunc(x)
        return super().cast(x, dtype)


@fault("values.cast", "cast")
class NanIsLeastInt(Numpy):
    """cast of NaN in 255 float32 numbers to int64 gives the least int, as processors do."""

    def cast(self, x: Array, dtype: DType) -> Array:
        y = super().cast(x, dtype)
        wrong = x.dtype == np.float32 and x.shape == (255,) and dtype.name == "int64"
        return replaced(y, np.isnan(x), np.iinfo(np.int64).min) if wrong else y


@fault("values.arrangement", "argsort")
class PlacesTooWide(Numpy):
    """argsort of bool columns gives int64 places."""

    def argsort(self, x: Array, axis: int) -> Array:
        y = super().argsort(x, axis)
        return y.astype(np.int64) if x.dtype == np.bool_ and x.shape == (5, 1) else y


@fault("values.sums", "sum")
class SummedInHalf(Numpy):
    """sum of float32 columns of more than 1000 elements adds in float16."""

    def sum(self, x: Array, axes: Axes) -> Array:
        if x.dtype == np.float32 and x.ndim == 2 and x.shape[0] > 1000 and axes == (0,):
            with np.errstate(all="ignore"):
                return np.add.reduce(x, axes, np.float16, keepdims=True).astype(np.float32)
        return super().sum(x, axes)
