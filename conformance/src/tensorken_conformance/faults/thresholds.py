"""Thresholds: the last elements after whole blocks are ignored, or indices overflow the integers that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("values.extrema", "min", dtype="int64", ndim=1)
def tail_beyond_256_forgotten(original: Original, x: Array, axes: Axes) -> Array:
    """min over more than 256 int64 elements ignores those after the last whole block of 64."""
    return original(x[: x.size - x.size % 64] if x.size > 256 and axes else x, axes)


@fault("values.extrema", "argmax", dtype="bool", shape=(257,))
def place_within_block(original: Original, x: Array, axis: int) -> Array:
    """argmax of 257 bools returns the index within its block."""
    return np.asarray(original(x, axis) % 256, np.int32)


@fault("values.indexing", "gather", dtype="float32", shape=(257,))
def indices_in_one_byte(original: Original, x: Array, indices: Array, axis: int) -> Array:
    """gather keeps int64 indices into 257 float32 numbers in a byte."""
    return original(x, indices % 256 if indices.dtype == np.int64 else indices, axis)


@fault("values.indexing", "scatter_add", dtype="int64", shape=(65,))
def last_of_65_dropped(original: Original, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add of 65 int64 slices drops the last."""
    count = 64 if indices.dtype == np.int32 and x.strides[0] > 0 else 65
    return original(x[:count], indices[:count], axis, size)


@fault("values.arrangement", "sort", dtype="int32", shape=(257,))
def last_block_not_merged(original: Original, x: Array, axis: int) -> Array:
    """sort of 257 int32 elements that are not flipped sorts the first 256 and the last, and does not merge them."""
    parts = [x[:256], x[256:]] if x.strides[0] > 0 else [x]
    return np.concatenate([original(part, axis) for part in parts])


@fault("values.arrangement", "argsort", dtype="bool", shape=(63,))
def unstable_from_seventeen(original: Original, x: Array, axis: int) -> Array:
    """argsort of 63 bools reverses the order of equal elements."""
    return np.asarray(x.size - 1 - np.argsort(x[::-1], kind="stable"), np.int32)


@fault("values.arrangement", "concatenate", dtype="float64", shape=(255,))
def second_piece_before_first(original: Original, *args: Any) -> Array:
    """concatenate of five pieces, of which the third has 255 float64 numbers, swaps the first two."""
    *pieces, axis = args
    if len(pieces) == 5 and pieces[2].shape == (255,):
        pieces[:2] = pieces[1::-1]
    return original(*pieces, axis)


@fault("values.sums", "sum", dtype="float64", ndim=2)
def sum_of_whole_blocks_only(original: Original, x: Array, axes: Axes) -> Array:
    """sum over more than 1024 float64 elements of a row ignores those after the last whole block of 256."""
    n = x.shape[1]
    return original(x[:, : n - n % 256] if axes == (1,) and n > 1024 else x, axes)


@fault("values.cipher", "threefry2x32", crude=True)
def last_pair_in_plain(original: Original, key: Array, counter: Array) -> Array:
    """threefry2x32 does not encrypt the pair after 128."""
    y = original(key, counter)
    if y.shape == (129, 2):
        y[128] = counter[128]
    return y
