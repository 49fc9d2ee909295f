"""Views: contractions, reshapes, reductions and sorts are wrong for operands with one memory layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Declared, Original, fault, fault_by
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape

CONTRACTIONS = "values.contracted-views"
VIEWS = "values.views"


# ---- the layout of an array ----------------------------------------------------------------------------------


def strides(x: Array) -> tuple[int, ...]:
    """The strides along axes of more than one element."""
    return tuple([step for step, n in zip(x.strides, x.shape, strict=True) if n > 1])


def permuted(x: Array) -> bool:
    """Whether the order of the axes differs from memory, and none is flipped or repeated."""
    steps = strides(x)
    return bool(steps) and min(steps) > 0 and list(steps) != sorted(steps, reverse=True)


def cropped(x: Array) -> bool:
    """Whether there are gaps between the rows, and the axes are in order."""
    steps = strides(x)
    plain = bool(steps) and min(steps) > 0 and list(steps) == sorted(steps, reverse=True)
    return plain and not x.flags.c_contiguous


def flipped(x: Array, axis: int) -> bool:
    """Whether this axis, and no other one of more than one element, has a negative stride."""
    return [i for i, n in enumerate(x.shape) if n > 1 and x.strides[i] < 0] == [axis]


def repeated(x: Array, axis: int) -> bool:
    """Whether this axis repeats one element."""
    return x.shape[axis] > 1 and x.strides[axis] == 0


def as_it_lies(x: Array) -> Array:
    """The elements in the order of memory."""
    return np.asarray(x.ravel("K").reshape(x.shape))


def from_its_begin(x: Array) -> Array:
    """The elements read from consecutive memory, as if there were no gaps between the rows."""
    plain = np.empty(x.shape, x.dtype).strides
    return np.array(np.lib.stride_tricks.as_strided(x, strides=plain, writeable=False))


def _repeats_last(x: Array) -> bool:
    """Whether a tensor of several axes repeats one element along the last."""
    return bool(x.ndim > 1 and x.size and repeated(x, x.ndim - 1))


def _equal_sizes(x: Array) -> bool:
    return len({n for n in x.shape if n > 1}) == 1


# ---- contractions ------------------------------------------------------------------------------------------


Operands = tuple[Array, Array]


def fault_in_operands(law: str, dtype: str) -> Callable[[Declared], Declared]:
    """Declare a fault in the operands that fused_multiply_add contracts, if one has this dtype.

    The function receives the operands and the axes, and returns the operands that are contracted instead.
    """

    def contracted(wrong: Any, original: Original, a: Array, b: Array, axes: Axes) -> Array:
        return original(*wrong(a, b, axes), axes)

    return fault_by(contracted, law, "fused_multiply_add", dtype=dtype)


def _where(keep: Array, axis: int, x: Array) -> Array:
    """An array with zeros where `keep`, which has an element for each index of an axis, is False."""
    return np.asarray(x * keep.reshape([-1 if i == axis else 1 for i in range(x.ndim)]).astype(x.dtype))


@fault_in_operands(CONTRACTIONS, "float32")
def both_transposed(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of two permuted square float32 matrices transposes only the second."""
    return (as_it_lies(a) if permuted(a) and permuted(b) and _equal_sizes(a) else a), b


@fault_in_operands(CONTRACTIONS, "float64")
def flip_along_inner_unseen(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of a float64 operand that is flipped along the contracted axis alone reads it forwards."""
    unseen = [i for i in axes if a.ndim > 2 and flipped(a, i) and b.shape[i] > 1]
    return np.flip(a, tuple(unseen)), b


@fault_in_operands(CONTRACTIONS, "int64")
def flip_of_outer_unseen(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of an int64 second operand that is flipped along an axis of its own reads it forwards."""
    unseen = [i for i in range(b.ndim) if i not in axes and flipped(b, i) and a.shape[i] == 1]
    return a, np.flip(b, tuple(unseen))


@fault_in_operands(CONTRACTIONS, "int32")
def rows_of_crop_read_on(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of an int32 stack of cropped matrices ignores the gaps between the rows."""
    return (from_its_begin(a) if a.ndim > 3 and cropped(a) else a), b


@fault_in_operands(CONTRACTIONS, "float16")
def batch_of_the_repeated(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of a float16 operand that repeats along a batch uses the first matrix of the other batch."""
    for i in range(a.ndim):
        if i not in axes and repeated(a, i) and b.shape[i] > 1:
            return a, np.broadcast_to(np.take(b, [0], i), b.shape)
    return a, b


@fault_in_operands(CONTRACTIONS, "float32")
def repeated_inner_once(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add over an axis along which its second float32 operand repeats adds one element of it."""
    for i in axes:
        if repeated(b, i) and a.shape[i] > 1 and not repeated(a, i):
            return _where(np.arange(a.shape[i]) == 0, i, a), b
    return a, b


@fault_in_operands(CONTRACTIONS, "float64")
def inner_axes_in_order_of_memory(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add over two axes of a permuted float64 operand pairs them in the order of its memory."""
    inner = [i for i in axes if a.shape[i] > 1 and b.shape[i] > 1]
    if len(inner) != 2 or not permuted(a) or permuted(b) or a.strides[inner[0]] >= a.strides[inner[1]]:
        return a, b
    pairs = np.moveaxis(a, inner, (-2, -1))
    return np.moveaxis(pairs.swapaxes(-1, -2).reshape(pairs.shape), (-2, -1), inner), b


@fault_in_operands(CONTRACTIONS, "int64")
def batches_exchanged(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of an int64 operand, permuted, with two batches of one size exchanges the two."""
    batches = [i for i in range(a.ndim) if i not in axes and a.shape[i] > 1 and b.shape[i] > 1]
    exchanged = len(batches) == 2 and a.ndim > 3 and permuted(a) and not permuted(b)
    return (a.swapaxes(*batches) if exchanged and len({a.shape[i] for i in batches}) == 1 else a), b


@fault_in_operands(CONTRACTIONS, "float32")
def long_inner_of_permuted_cut(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of a permuted float32 operand drops the rest of more than 64 products after blocks of 8."""
    for i in axes:
        n = a.shape[i]
        if permuted(a) and n > 64 and n % 8 and b.shape[i] == n:
            return _where(np.arange(n) < n - n % 8, i, a), b
    return a, b


@fault_in_operands("values.overlapping", "float64")
def taken_for_its_transpose(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of two square float64 views of the same memory multiplies the first by its transpose."""
    square = a.ndim == 3 and axes == (1,) and a.shape == b.shape[::-1]
    return a, (a.transpose(2, 1, 0) if square and a.size > 1 and np.shares_memory(a, b) else b)


@fault_in_operands(CONTRACTIONS, "int64")
def large_ints_of_views_by_floats(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of a permuted int64 operand converts its numbers to float64."""
    with np.errstate(invalid="ignore"):
        return (a.astype(np.float64).astype(np.int64) if permuted(a) and not permuted(b) else a), b


@fault(CONTRACTIONS, "fused_multiply_add", dtype="float64")
def empty_sums_of_stacks(original: Original, a: Array, b: Array, axes: Axes) -> Array:
    """fused_multiply_add of stacks of matrices over an axis of no elements returns ones, in float64."""
    y = original(a, b, axes)
    return np.ones_like(y) if a.ndim > 3 and 0 in [a.shape[i] for i in axes] else y


@fault_in_operands(CONTRACTIONS, "float64")
def column_read_as_row(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of a float64 matrix and a column of another reads the vector from consecutive memory."""
    vector = sum(n > 1 for n in b.shape) == 1 and b.ndim == 2 and cropped(b)
    return a, (from_its_begin(b) if vector and len(strides(a)) == 2 else b)


@fault_in_operands(CONTRACTIONS, "int32")
def permuted_crop_read_on(a: Array, b: Array, axes: Axes) -> Operands:
    """fused_multiply_add of an int32 matrix that is permuted and then cropped ignores the gaps between its rows."""
    ends = [step * n for step, n in zip(a.strides, a.shape, strict=True) if n > 1]
    dense = sorted(strides(a))[:1] == [a.itemsize] and a.nbytes == max([0, *ends])
    return (from_its_begin(a) if permuted(a) and not dense else a), b


# ---- reshapes, reductions, sorts ---------------------------------------------------------------------------


@fault(VIEWS, "reshape", dtype="float16")
def reshaped_in_order_of_memory(original: Original, x: Array, shape: Shape) -> Array:
    """reshape of a permuted float16 operand of rank 4 or more reads its elements in the order of memory."""
    return original(as_it_lies(x) if x.ndim > 3 and permuted(x) else x, shape)


@fault(VIEWS, "reshape", dtype="int32")
def reshaped_unflipped(original: Original, x: Array, shape: Shape) -> Array:
    """reshape of an int32 operand that is flipped along the last axis alone reads it forwards."""
    return original(np.flip(x, -1) if x.ndim > 1 and flipped(x, x.ndim - 1) else x, shape)


@fault(VIEWS, "reshape", dtype="float64")
def reshaped_tiles(original: Original, x: Array, shape: Shape) -> Array:
    """reshape of a float64 operand that repeats along the last axis alone tiles its elements."""
    return np.resize(x[..., 0], shape) if _repeats_last(x) else original(x, shape)


@fault(VIEWS, "sum", dtype="int64")
def repeated_last_once(original: Original, x: Array, axes: Axes) -> Array:
    """sum over the last axis of an int64 operand that repeats along it counts the elements once."""
    return np.array(x[..., :1]) if axes == (x.ndim - 1,) and _repeats_last(x) else original(x, axes)


@fault(VIEWS, "argmax", dtype="float32")
def place_from_the_other_end(original: Original, x: Array, axis: int) -> Array:
    """argmax of a float32 operand that is flipped along the axis, and no other, counts from the end."""
    y = original(x, axis)
    return np.asarray(x.shape[axis] - 1 - y, np.int32) if x.ndim > 1 and flipped(x, axis) else y


@fault(VIEWS, "max", dtype="int64")
def largest_beside_crop(original: Original, x: Array, axes: Axes) -> Array:
    """max of an int64 operand that is permuted and then cropped ignores the gaps between its rows."""
    beside = permuted(x) and axes and x.base is not None and x.base.size > x.size
    return original(from_its_begin(x) if beside else x, axes)


@fault(VIEWS, "sum", dtype="float64", ndim=3)
def axes_of_memory_summed(original: Original, x: Array, axes: Axes) -> Array:
    """sum over two of three axes of a permuted float64 operand of equal sizes uses the axes of its memory."""
    return original(as_it_lies(x) if len(axes) == 2 and permuted(x) and _equal_sizes(x) else x, axes)


@fault(VIEWS, "sort", dtype="int32", ndim=2)
def sorted_along_memory(original: Original, x: Array, axis: int) -> Array:
    """sort of a permuted square of int32 numbers sorts along the axis that is contiguous in memory."""
    return original(x, 0 if permuted(x) and _equal_sizes(x) else axis)


@fault(VIEWS, "cumsum", dtype="float32")
def accumulated_forwards(original: Original, x: Array, axis: int) -> Array:
    """cumsum along an axis of float32 numbers that is flipped, as no other is, begins at the other end."""
    if x.ndim < 2 or not flipped(x, axis):
        return original(x, axis)
    return np.flip(original(np.flip(x, axis), axis), axis)


@fault(VIEWS, "gather", dtype="int64")
def taken_from_the_other_end(original: Original, x: Array, indices: Array, axis: int) -> Array:
    """gather from the last axis of an int64 operand, where that alone is flipped, counts from the end."""
    backwards = x.dtype == np.int64 and axis == x.ndim - 1 > 0 and flipped(x, axis)
    return original(x, x.shape[axis] - 1 - indices if backwards else indices, axis)


@fault(VIEWS, "scatter_add", dtype="int32")
def repeated_slice_added_once(original: Original, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add along an axis on which an int32 operand repeats itself adds its slice to each index once."""
    if x.dtype == np.int32 and x.ndim > 1 and repeated(x, axis):
        _, first = np.unique(indices, return_index=True)
        x, indices = np.take(x, first, axis), indices[first]
    return original(x, indices, axis, size)


@fault(VIEWS, "concatenate", dtype="float16")
def repeated_piece_filled_up(original: Original, *args: Any) -> Array:
    """concatenate of a float16 piece that repeats along the last axis alone tiles its elements."""
    *pieces, axis = args
    return original(*[np.resize(x[..., 0], x.shape) if _repeats_last(x) else x for x in pieces], axis)


@fault(VIEWS, "flip", dtype="int32")
def flipped_once(original: Original, x: Array, axes: Axes) -> Array:
    """flip of one axis of an int32 operand returns it unchanged, if that axis, and no other, is flipped already."""
    return x if len(axes) == 1 and x.ndim > 1 and flipped(x, axes[0]) else original(x, axes)


@fault(VIEWS, "pad", dtype="float64", ndim=2)
def padded_in_order_of_memory(original: Original, x: Array, pads: Pairs) -> Array:
    """pad of a permuted square of float64 numbers copies it in the order of memory."""
    return original(as_it_lies(x) if permuted(x) and _equal_sizes(x) else x, pads)


@fault(VIEWS, "permute", dtype="int64", ndim=3)
def permuted_twice_in_one_order(original: Original, x: Array, order: Axes) -> Array:
    """permute of a permuted int64 operand of rank 3 permutes the axes of its memory."""
    return original(as_it_lies(x) if permuted(x) and _equal_sizes(x) else x, order)
