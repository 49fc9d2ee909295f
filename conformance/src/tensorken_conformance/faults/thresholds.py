"""Thresholds: the last elements after whole blocks are forgotten, or indices do not fit where they are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes
from tensorken_numpy.backend import Numpy


@fault("values.extrema", "min")
class TailBeyond256Forgotten(Numpy):
    """min over more than 256 int64 elements forgets those after the last whole block of 64."""

    def min(self, x: Array, axes: Axes) -> Array:
        if x.dtype == np.int64 and x.ndim == 1 and x.size > 256 and axes:
            x = x[: x.size - x.size % 64]
        return super().min(x, axes)


@fault("values.extrema", "argmax")
class PlaceWithinBlock(Numpy):
    """argmax of 257 bools gives the place within its block."""

    def argmax(self, x: Array, axis: int) -> Array:
        y = super().argmax(x, axis)
        return np.asarray(y % 256, np.int32) if x.dtype == np.bool_ and x.shape == (257,) else y


@fault("values.indexing", "gather")
class IndicesInOneByte(Numpy):
    """gather keeps the indices into 257 float32 numbers in a byte."""

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        if x.dtype == np.float32 and x.shape == (257,) and indices.dtype == np.int64:
            indices = indices % 256
        return super().gather(x, indices, axis)


@fault("values.indexing", "scatter_add")
class LastOf65Dropped(Numpy):
    """scatter_add of 65 int64 slices drops the last."""

    def scatter_add(self, x: Array, indices: Array, axis: int, size: int) -> Array:
        if x.dtype == np.int64 and x.shape == (65,) and indices.dtype == np.int32 and x.strides[0] > 0:
            x, indices = x[:64], indices[:64]
        return super().scatter_add(x, indices, axis, size)


@fault("values.arrangement", "sort")
class LastBlockNotMerged(Numpy):
    """sort of 257 int32 elements, as they lie in memory, sorts the first 256 and the last, and does not merge them."""

    def sort(self, x: Array, axis: int) -> Array:
        if x.dtype == np.int32 and x.shape == (257,) and x.strides[0] > 0:
            return np.concatenate([super().sort(x[:256], 0), super().sort(x[256:], 0)])
        return super().sort(x, axis)


@fault("values.arrangement", "argsort")
class UnstableFromSeventeen(Numpy):
    """argsort of 63 bools has equal elements in the reverse of their order."""

    def argsort(self, x: Array, axis: int) -> Array:
        if x.dtype == np.bool_ and x.shape == (63,):
            return np.asarray(x.size - 1 - np.argsort(x[::-1], kind="stable"), np.int32)
        return super().argsort(x, axis)


@fault("values.arrangement", "concatenate")
class SecondPieceBeforeFirst(Numpy):
    """concatenate of five pieces, of which the third is of 255 float64 numbers, swaps the first two."""

    def concatenate(self, *args: Any) -> Array:
        *pieces, axis = args
        if len(pieces) == 5 and pieces[2].dtype == np.float64 and pieces[2].shape == (255,):
            pieces[:2] = pieces[1::-1]
        return super().concatenate(*pieces, axis)


@fault("values.sums", "sum")
class SumOfWholeBlocksOnly(Numpy):
    """sum over more than 1024 float64 elements of a row forgets those after the last whole block of 256."""

    def sum(self, x: Array, axes: Axes) -> Array:
        if x.dtype == np.float64 and x.ndim == 2 and axes == (1,) and x.shape[1] > 1024:
            x = x[:, : x.shape[1] - x.shape[1] % 256]
        return super().sum(x, axes)


@fault("values.cipher", "threefry2x32", crude=True)
class LastPairInPlain(Numpy):
    """threefry2x32 does not encrypt the pair after 128."""

    def threefry2x32(self, key: Array, counter: Array) -> Array:
        y = super().threefry2x32(key, counter)
        if y.shape == (129, 2):
            y[128] = counter[128]
        return y
