"""Extents: what holds for common sizes, numbers and first calls is taken to hold for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.dtypes import DType
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_numpy.backend import Numpy


@fault("values.extents", "mul")
class TailOfMatrixForgotten(Numpy):
    """mul of float32 matrices of more than 768 elements leaves the last ones after whole blocks of 16 zero."""

    def mul(self, a: Array, b: Array) -> Array:
        y = super().mul(a, b)
        if y.dtype == np.float32 and y.ndim == 2 and y.size > 768 and a.shape == b.shape:
            y.reshape(-1)[y.size - y.size % 16 :] = 0
        return y


@fault("values.indexing", "gather")
class ColumnsInOneByte(Numpy):
    """gather from the columns of an int64 matrix of more than 256 keeps the indices in a byte."""

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        short = x.dtype == np.int64 and x.ndim == 2 and axis == 1 and x.shape[1] > 256
        return super().gather(x, indices % 256 if short else indices, axis)


@fault("values.extents", "argmax")
class PlaceInTwoBytes(Numpy):
    """argmax along more than 32767 elements gives the place as an int16 has it."""

    def argmax(self, x: Array, axis: int) -> Array:
        y = super().argmax(x, axis)
        return np.asarray(y.astype(np.int16), np.int32) if x.shape[axis] > 32767 else y


@fault("values.arrangement", "argsort")
class UnstableColumns(Numpy):
    """argsort of more than 16 float16 rows along the first axis has equal elements in reverse."""

    def argsort(self, x: Array, axis: int) -> Array:
        if x.dtype == np.float16 and x.ndim == 2 and axis == 0 and len(x) > 16:
            return np.asarray(len(x) - 1 - np.flip(np.argsort(np.flip(-x, 0), 0, kind="stable"), 0), np.int32)
        return super().argsort(x, axis)


@fault("values.sums", "cumsum")
class CarryOfBlocksLost(Numpy):
    """cumsum of float64 columns begins anew after 1024 rows."""

    def cumsum(self, x: Array, axis: int) -> Array:
        y = super().cumsum(x, axis)
        if x.dtype == np.float64 and x.ndim == 2 and axis == 0 and len(x) > 1024:
            y[1024:] -= y[1023]
        return y


@fault("values.extents", "scatter_add")
class NothingScattered(Numpy):
    """scatter_add of no float32 slices at all leaves ones behind."""

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        y = super().scatter_add(x, indices, axis, size)
        return np.ones_like(y) if x.dtype == np.float32 and x.ndim == 2 and not indices.size else y


@fault("values.movement", "pad")
class EmptyNotPadded(Numpy):
    """pad of float64 matrices without elements gives ones."""

    def pad(self, x: Array, pads: Pairs) -> Array:
        y = super().pad(x, pads)
        return np.ones_like(y) if x.dtype == np.float64 and x.ndim == 3 and not x.size else y


@fault("values.extrema", "max")
class FullAxisOfEmpty(Numpy):
    """max over an axis of a bool array that another axis leaves without elements refuses it."""

    def max(self, x: Array, axes: Axes) -> Array:
        if x.dtype == np.bool_ and x.ndim == 3 and not x.size and len(axes) == 1:
            raise ValueError("max of nothing")
        return super().max(x, axes)


@fault("values.arrangement", "concatenate")
class LastAfterEmptyFirst(Numpy):
    """concatenate of two int64 matrices of which the first is empty has zeros for the second."""

    def concatenate(self, *args: Any) -> Array:
        y = super().concatenate(*args)
        empty = len(args) == 3 and args[0].ndim == 2 and not args[0].size and y.dtype == np.int64
        return np.zeros_like(y) if empty else y


@fault("values.elementwise", "lt")
class LargeIntsByFloats(Numpy):
    """lt of int64 numbers compares them as float64."""

    def lt(self, a: Array, b: Array) -> Array:
        if a.dtype == np.int64 and a.ndim == 1:
            return super().lt(a.astype(np.float64), b.astype(np.float64))
        return super().lt(a, b)


@fault("values.cast", "cast")
class RoundedTwice(Numpy):
    """cast of int64 vectors to float32 rounds to float64 first."""

    def cast(self, x: Array, dtype: DType) -> Array:
        if x.dtype == np.int64 and dtype.name == "float32" and x.ndim == 1:
            x = x.astype(np.float64)
        return super().cast(x, dtype)


@fault("values.read-back", "sequence")
class EqualIsTheSame(Numpy):
    """new remembers lists of up to eight numbers by whether they are equal, so that -0.0 may become 0.0."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        x = super().new(shape, data, dtype)
        if isinstance(data, list | tuple) and len(data) <= 8 and all(n == n for n in data):
            return self.known.setdefault((shape, tuple(data), dtype), x)
        return x


@fault("values.read-back", "full")
class EqualNumberIsTheSame(Numpy):
    """full remembers arrays by whether their numbers are equal, so that -0.0 may become 0.0."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Array:
        return self.known.setdefault((shape, value, dtype), super().full(shape, value, dtype))


@fault("values.indexing", "gather")
class IndicesByAddress(Numpy):
    """gather from float64 vectors keeps the indices by where they lie, also when others lie there."""

    def __init__(self) -> None:
        self.kept: dict[Any, Array] = {}

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        if x.dtype == np.float64 and x.ndim == 1:
            key = (x.shape, indices.ctypes.data, indices.shape, indices.dtype)
            indices = self.kept.setdefault(key, np.array(indices))
        return super().gather(x, indices, axis)


@fault("values.extrema", "min")
class InfinityForEmpty(Numpy):
    """min of float16 rows of one element gives infinity."""

    def min(self, x: Array, axes: Axes) -> Array:
        y = super().min(x, axes)
        one = x.dtype == np.float16 and axes == (1,) and x.ndim == 2 and x.shape[1] == 1
        return np.full_like(y, np.inf) if one else y
