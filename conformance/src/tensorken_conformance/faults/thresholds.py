"""Thresholds: the last elements after whole blocks are forgotten, or indices do not fit where they are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("values.extrema", "min")
def tail_beyond_256_forgotten(right: Right, x: Array, axes: Axes) -> Array:
    """min over more than 256 int64 elements forgets those after the last whole block of 64."""
    if x.dtype == np.int64 and x.ndim == 1 and x.size > 256 and axes:
        x = x[: x.size - x.size % 64]
    return right(x, axes)


@fault("values.extrema", "argmax")
def place_within_block(right: Right, x: Array, axis: int) -> Array:
    """argmax of 257 bools gives the place within its block."""
    y = right(x, axis)
    return np.asarray(y % 256, np.int32) if x.dtype == np.bool_ and x.shape == (257,) else y


@fault("values.indexing", "gather")
def indices_in_one_byte(right: Right, x: Array, indices: Array, axis: int) -> Array:
    """gather keeps the indices into 257 float32 numbers in a byte."""
    if x.dtype == np.float32 and x.shape == (257,) and indices.dtype == np.int64:
        indices = indices % 256
    return right(x, indices, axis)


@fault("values.indexing", "scatter_add")
def last_of_65_dropped(right: Right, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of 65 int64 slices drops the last."""
    if x.dtype == np.int64 and x.shape == (65,) and indices.dtype == np.int32 and x.strides[0] > 0:
        x, indices = x[:64], indices[:64]
    return right(x, indices, axis, size)


@fault("values.arrangement", "sort")
def last_block_not_merged(right: Right, x: Array, axis: int) -> Array:
    """sort of 257 int32 elements, as they lie in memory, sorts the first 256 and the last, and does not merge them."""
    if x.dtype == np.int32 and x.shape == (257,) and x.strides[0] > 0:
        return np.concatenate([right(x[:256], 0), right(x[256:], 0)])
    return right(x, axis)


@fault("values.arrangement", "argsort")
def unstable_from_seventeen(right: Right, x: Array, axis: int) -> Array:
    """argsort of 63 bools has equal elements in the reverse of their order."""
    if x.dtype == np.bool_ and x.shape == (63,):
        return np.asarray(x.size - 1 - np.argsort(x[::-1], kind="stable"), np.int32)
    return right(x, axis)


@fault("values.arrangement", "concatenate")
def second_piece_before_first(right: Right, *args: Any) -> Array:
    """concatenate of five pieces, of which the third is of 255 float64 numbers, swaps the first two."""
    *pieces, axis = args
    if len(pieces) == 5 and pieces[2].dtype == np.float64 and pieces[2].shape == (255,):
        pieces[:2] = pieces[1::-1]
    return right(*pieces, axis)


@fault("values.sums", "sum")
def sum_of_whole_blocks_only(right: Right, x: Array, axes: Axes) -> Array:
    """sum over more than 1024 float64 elements of a row forgets those after the last whole block of 256."""
    if x.dtype == np.float64 and x.ndim == 2 and axes == (1,) and x.shape[1] > 1024:
        x = x[:, : x.shape[1] - x.shape[1] % 256]
    return right(x, axes)


@fault("values.cipher", "threefry2x32", crude=True)
def last_pair_in_plain(right: Right, key: Array, counter: Array) -> Array:
    """threefry2x32 does not encrypt the pair after 128."""
    y = right(key, counter)
    if y.shape == (129, 2):
        y[128] = counter[128]
    return y
