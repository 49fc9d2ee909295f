"""Specials: NaN, infinities, zeros of either sign and subnormal numbers are lost or made up."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes
from tensorken_numpy.backend import Numpy


@fault("values.extrema", "max")
class MaxPassesOverNan(Numpy):
    """max of a float16 vector of 65 elements passes over NaN."""

    def max(self, x: Array, axes: Axes) -> Array:
        if x.dtype == np.float16 and x.shape == (65,):
            return np.asarray(np.fmax.reduce(x, axes, keepdims=True))
        return super().max(x, axes)


@fault("values.extrema", "argmin")
class ArgminPassesOverNan(Numpy):
    """argmin of flipped float32 vectors passes over NaN."""

    def argmin(self, x: Array, axis: int) -> Array:
        if x.dtype == np.float32 and x.ndim == 1 and x.strides[0] < 0:
            x = np.where(np.isnan(x), np.float32(np.inf), x)
        return super().argmin(x, axis)


@fault("values.arrangement", "sort")
class SortTellsZerosApart(Numpy):
    """sort puts -0.0 before 0.0, where equal elements should keep their order, in vectors of 256 float64 numbers."""

    def sort(self, x: Array, axis: int) -> Array:
        y = super().sort(x, axis)
        if x.dtype == np.float64 and x.shape == (256,):
            y[y == 0] = np.sort(np.where(np.signbit(y[y == 0]), -1, 1)) * 0.0
        return y


@fault("values.arrangement", "argsort")
class ArgsortPutsNanFirst(Numpy):
    """argsort puts NaN first in float16 columns."""

    def argsort(self, x: Array, axis: int) -> Array:
        if x.dtype == np.float16 and axis == 0 and x.ndim == 2 and x.shape[1] == 1:
            x = np.where(np.isnan(x), np.float16(-np.inf), x)
        return super().argsort(x, axis)


@fault("values.indexing", "gather")
class GatherLosesMinusZero(Numpy):
    """gather adds 0.0 to what it takes from float32 vectors of 64 elements, which turns -0.0 into 0.0."""

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        y = super().gather(x, indices, axis)
        return y + y.dtype.type(0) if x.dtype == np.float32 and x.shape == (64,) else y


@fault("values.movement", "pad")
class PadFlushesSubnormals(Numpy):
    """pad of float64 matrices makes subnormal numbers zero, as a processor in fast mode does."""

    def pad(self, x: Array, pads: Any) -> Array:
        small = (
            np.abs(x) < np.finfo(np.float64).tiny if x.dtype == np.float64 and x.shape == (65, 3) else False
        )
        return super().pad(replaced(x, small, 0.0), pads)


@fault("values.read-back", "full", crude=True)
class ZerosAreAlike(Numpy):
    """full keeps what it made in a cache, in which 0.0 and -0.0 are the same key."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def full(self, shape: Any, value: Any, dtype: Any) -> Array:
        return self.known.setdefault((shape, value, dtype), super().full(shape, value, dtype))


# ---- elementwise -------------------------------------------------------------------------------------------


@fault("values.elementwise", "maximum")
class MaximumPassesOverNan(Numpy):
    """maximum of 256 float32 pairs passes over a NaN on its right."""

    def maximum(self, a: Array, b: Array) -> Array:
        y = super().maximum(a, b)
        wrong = y.dtype == np.float32 and y.shape == (256,)
        return replaced(y, np.isnan(b), a) if wrong else y


@fault("values.elementwise", "sqrt")
class RootOfMinusZero(Numpy):
    """sqrt of -0.0 is 0.0, in flipped float64 matrices."""

    def sqrt(self, x: Array) -> Array:
        y = super().sqrt(x)
        return y + 0.0 if x.dtype == np.float64 and x.ndim == 2 and x.strides[0] < 0 else y


@fault("values.elementwise", "mul")
class ResultsFlushed(Numpy):
    """mul of 256 float32 pairs makes subnormal products zero, which the backend does not declare."""

    def mul(self, a: Array, b: Array) -> Array:
        y = super().mul(a, b)
        wrong = y.dtype == np.float32 and y.shape == (256,)
        return replaced(y, np.abs(y) < np.finfo(np.float32).tiny, y * 0) if wrong else y


@fault("values.elementwise", "pow")
class PowerZeroOfNan(Numpy):
    """pow of NaN to the power 0 is NaN in 257 float16 pairs, where IEEE 754 has 1."""

    def pow(self, a: Array, b: Array) -> Array:
        y = super().pow(a, b)
        wrong = y.dtype == np.float16 and y.shape == (257,)
        return replaced(y, np.isnan(a) & (b == 0), np.nan) if wrong else y


@fault("values.elementwise", "lt")
class NotGreaterOrEqual(Numpy):
    """lt of 257 float64 pairs is that the left is not greater or equal, which holds of NaN."""

    def lt(self, a: Array, b: Array) -> Array:
        y = super().lt(a, b)
        return ~np.asarray(a >= b) if a.dtype == np.float64 and a.shape == (257,) else y


@fault("values.elementwise", "eq")
class BitsCompared(Numpy):
    """eq of 65 float16 pairs compares their bits: zeros of different sign differ, NaN equals itself."""

    def eq(self, a: Array, b: Array) -> Array:
        if a.dtype == np.float16 and a.shape == (65,):
            a, b = a.view(np.int16), b.view(np.int16)
        return super().eq(a, b)


@fault("values.elementwise", "where")
class WhereMultiplies(Numpy):
    """where of cropped float32 matrices multiplies by the condition and adds, so that NaN comes through."""

    def where(self, condition: Array, a: Array, b: Array) -> Array:
        if a.dtype == np.float32 and a.shape == (3, 4) and not a.flags.c_contiguous and min(a.strides) > 0:
            with np.errstate(all="ignore"):
                return np.asarray(a * condition + b * ~condition)
        return super().where(condition, a, b)


@fault("values.elementwise", "round")
class RoundLosesMinusZero(Numpy):
    """round of padded float64 matrices turns -0.4 into 0.0."""

    def round(self, x: Array) -> Array:
        y = super().round(x)
        return y + 0.0 if x.dtype == np.float64 and x.shape == (4, 4) else y


@fault("values.elementwise", "sign")
class SignOfNan(Numpy):
    """sign of NaN is 0 in 257 float16 numbers."""

    def sign(self, x: Array) -> Array:
        y = super().sign(x)
        return replaced(y, np.isnan(x), 0) if x.dtype == np.float16 and x.shape == (257,) else y


@fault("values.elementwise", "log")
class LogOfZeroIsFinite(Numpy):
    """log of 0 is the least finite number, for 256 float32 numbers."""

    def log(self, x: Array) -> Array:
        y = super().log(x)
        wrong = x.dtype == np.float32 and x.shape == (256,)
        return replaced(y, np.isneginf(y), np.finfo(np.float32).min) if wrong else y
