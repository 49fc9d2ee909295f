"""Views: contractions, reshapes, reductions and sorts are wrong for operands that lie in memory in some way."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_numpy.backend import Numpy

CONTRACTIONS = "values.contracted-views"
VIEWS = "values.views"


# ---- how an array lies -------------------------------------------------------------------------------------


def strides(x: Array) -> tuple[int, ...]:
    """The strides along axes of more than one element."""
    return tuple([step for step, n in zip(x.strides, x.shape, strict=True) if n > 1])


def permuted(x: Array) -> bool:
    """Whether the axes are in another order than in memory, and none is flipped or repeated."""
    steps = strides(x)
    return bool(steps) and min(steps) > 0 and list(steps) != sorted(steps, reverse=True)


def cropped(x: Array) -> bool:
    """Whether there is memory between the rows, and the axes are in order."""
    steps = strides(x)
    plain = bool(steps) and min(steps) > 0 and list(steps) == sorted(steps, reverse=True)
    return plain and not x.flags.c_contiguous


def flipped(x: Array, axis: int) -> bool:
    """Whether this axis runs backwards, and no other one of more than one element."""
    return [i for i, n in enumerate(x.shape) if n > 1 and x.strides[i] < 0] == [axis]


def repeated(x: Array, axis: int) -> bool:
    """Whether this axis repeats one element."""
    return x.shape[axis] > 1 and x.strides[axis] == 0


def as_it_lies(x: Array) -> Array:
    """The elements in the order of memory."""
    return np.asarray(x.ravel("K").reshape(x.shape))


def from_its_begin(x: Array) -> Array:
    """The elements one after the other from the first on, as if there was nothing between the rows."""
    plain = np.empty(x.shape, x.dtype).strides
    return np.array(np.lib.stride_tricks.as_strided(x, strides=plain, writeable=False))


def _equal_sizes(x: Array) -> bool:
    return len({n for n in x.shape if n > 1}) == 1


# ---- contractions ------------------------------------------------------------------------------------------


class _Contracting(Numpy):
    """Contracts other operands than it is given."""

    def fused_multiply_add(self, a: Array, b: Array, axes: Axes) -> Array:
        return super().fused_multiply_add(*self.taken(a, b, axes), axes)

    def taken(self, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
        """The operands that are contracted."""
        raise NotImplementedError


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def both_transposed(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of two permuted square float32 matrices transposes only the second."""
    both = permuted(a) and permuted(b) and _equal_sizes(a) and a.dtype == np.float32
    return (as_it_lies(a) if both else a), b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def flip_along_inner_unseen(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of a float64 operand that is flipped along the contracted axis alone reads it forwards."""
    for axis in axes:
        if a.dtype == np.float64 and a.ndim > 2 and flipped(a, axis) and b.shape[axis] > 1:
            return np.flip(a, axis), b
    return a, b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def flip_of_outer_unseen(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of an int64 second operand that is flipped along an axis of its own reads it forwards."""
    for axis in range(b.ndim):
        if b.dtype == np.int64 and axis not in axes and flipped(b, axis) and a.shape[axis] == 1:
            return a, np.flip(b, axis)
    return a, b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def rows_of_crop_read_on(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of an int32 stack of cropped matrices reads the rows one right after the other."""
    many = a.dtype == np.int32 and a.ndim > 3 and cropped(a)
    return (from_its_begin(a) if many else a), b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def batch_of_the_repeated(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of a float16 operand that repeats along a batch takes the first matrix of the other's."""
    for axis in range(a.ndim):
        if a.dtype == np.float16 and axis not in axes and repeated(a, axis) and b.shape[axis] > 1:
            return a, np.broadcast_to(np.take(b, [0], axis), b.shape)
    return a, b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def repeated_inner_once(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add over an axis along which its second float32 operand repeats sums up one element of it."""
    for axis in axes:
        if b.dtype == np.float32 and repeated(b, axis) and a.shape[axis] > 1 and not repeated(a, axis):
            return a * (np.arange(a.shape[axis]) == 0).reshape(
                [-1 if i == axis else 1 for i in range(a.ndim)]
            ).astype(a.dtype), b
    return a, b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def inner_axes_in_order_of_memory(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add over two axes of a permuted float64 operand pairs them in the order of its memory."""
    inner = [i for i in axes if a.shape[i] > 1 and b.shape[i] > 1]
    if a.dtype == np.float64 and len(inner) == 2 and permuted(a) and not permuted(b):
        i, j = inner
        if a.strides[i] < a.strides[j]:
            pairs = np.moveaxis(a, (i, j), (-2, -1))
            shape = pairs.shape
            return np.moveaxis(pairs.swapaxes(-1, -2).reshape(shape), (-2, -1), (i, j)), b
    return a, b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def batches_exchanged(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of an int64 operand, permuted, with two batches of one size exchanges the two."""
    batches = [i for i in range(a.ndim) if i not in axes and a.shape[i] > 1 and b.shape[i] > 1]
    exchanged = len(batches) == 2 and a.dtype == np.int64 and permuted(a) and not permuted(b)
    if exchanged and a.shape[batches[0]] == a.shape[batches[1]] and a.ndim > 3:
        return a.swapaxes(*batches), b
    return a, b


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def long_inner_of_permuted_cut(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of a permuted float32 operand drops the rest of more than 64 products after blocks of 8."""
    for axis in axes:
        n = a.shape[axis]
        if a.dtype == np.float32 and permuted(a) and n > 64 and n % 8 and b.shape[axis] == n:
            rest = (np.arange(n) < n - n % 8).reshape([-1 if i == axis else 1 for i in range(a.ndim)])
            return a * rest.astype(a.dtype), b
    return a, b


@fault("values.overlapping", "fused_multiply_add", on=_Contracting, method="taken")
def taken_for_its_transpose(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of two square float64 views of the same memory multiplies the first by its transpose."""
    square = a.dtype == np.float64 and a.ndim == 3 and axes == (1,) and a.shape == b.shape[::-1]
    return a, (a.transpose(2, 1, 0) if square and a.size > 1 and np.shares_memory(a, b) else b)


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def large_ints_of_views_by_floats(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of a permuted int64 operand takes its numbers by way of float64."""
    wide = a.dtype == np.int64 and permuted(a) and not permuted(b)
    with np.errstate(invalid="ignore"):
        return (a.astype(np.float64).astype(np.int64) if wide else a), b


@fault(CONTRACTIONS, "fused_multiply_add")
def empty_sums_of_stacks(right: Right, a: Array, b: Array, axes: Axes) -> Array:
    """fused_multiply_add of stacks of matrices over an axis of no elements gives ones, in float64."""
    y = right(a, b, axes)
    nothing = 0 in [a.shape[i] for i in axes] and a.ndim > 3 and a.dtype == np.float64
    return np.ones_like(y) if nothing else y


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def column_read_as_row(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of a float64 matrix and a column of another reads the vector from consecutive memory."""
    vector = sum(n > 1 for n in b.shape) == 1 and b.ndim == 2 and cropped(b) and b.dtype == np.float64
    return a, (from_its_begin(b) if vector and len(strides(a)) == 2 else b)


@fault(CONTRACTIONS, "fused_multiply_add", on=_Contracting, method="taken")
def permuted_crop_read_on(right: Right, a: Array, b: Array, axes: Axes) -> tuple[Array, Array]:
    """fused_multiply_add of an int32 matrix that is permuted and then cropped reads on from its first element."""
    dense = sorted(strides(a))[:1] == [a.itemsize] and a.size * a.itemsize == max(
        [0, *[step * n for step, n in zip(a.strides, a.shape, strict=True) if n > 1]]
    )
    return (from_its_begin(a) if a.dtype == np.int32 and permuted(a) and not dense else a), b


# ---- reshapes, reductions, sorts ---------------------------------------------------------------------------


@fault(VIEWS, "reshape")
def reshaped_in_order_of_memory(right: Right, x: Array, shape: Shape) -> Array:
    """reshape of a permuted float16 operand of rank 4 or more takes its elements in the order of memory."""
    out_of_order = x.dtype == np.float16 and x.ndim > 3 and permuted(x)
    return right(as_it_lies(x) if out_of_order else x, shape)


@fault(VIEWS, "reshape")
def reshaped_unflipped(right: Right, x: Array, shape: Shape) -> Array:
    """reshape of an int32 operand that is flipped along the last axis alone takes it forwards."""
    backwards = x.dtype == np.int32 and x.ndim > 1 and flipped(x, x.ndim - 1)
    return right(np.flip(x, -1) if backwards else x, shape)


@fault(VIEWS, "reshape")
def reshaped_tiles(right: Right, x: Array, shape: Shape) -> Array:
    """reshape of a float64 operand that repeats along the last axis alone takes all that it repeats in turn."""
    tiled = x.dtype == np.float64 and x.ndim > 1 and x.size and repeated(x, x.ndim - 1)
    return np.resize(x[..., 0], shape) if tiled else right(x, shape)


@fault(VIEWS, "sum")
def repeated_last_once(right: Right, x: Array, axes: Axes) -> Array:
    """sum over the last axis of an int64 operand that repeats along it counts the elements once."""
    once = x.dtype == np.int64 and axes == (x.ndim - 1,) and x.ndim > 1 and repeated(x, x.ndim - 1)
    return np.array(x[..., :1]) if once else right(x, axes)


@fault(VIEWS, "argmax")
def place_from_the_other_end(right: Right, x: Array, axis: int) -> Array:
    """argmax of a float32 operand that is flipped along the axis, and no other, counts from the end."""
    y = right(x, axis)
    backwards = x.dtype == np.float32 and x.ndim > 1 and flipped(x, axis)
    return np.asarray(x.shape[axis] - 1 - y, np.int32) if backwards else y


@fault(VIEWS, "max")
def largest_beside_crop(right: Right, x: Array, axes: Axes) -> Array:
    """max of an int64 operand that is permuted and then cropped reads on from its first element."""
    beside = x.dtype == np.int64 and permuted(x) and axes and x.base is not None and x.base.size > x.size
    return right(from_its_begin(x) if beside else x, axes)


@fault(VIEWS, "sum")
def axes_of_memory_summed(right: Right, x: Array, axes: Axes) -> Array:
    """sum over two of three axes of a permuted float64 operand of equal sizes takes the axes of its memory."""
    if x.dtype == np.float64 and x.ndim == 3 and len(axes) == 2 and permuted(x) and _equal_sizes(x):
        return right(as_it_lies(x), axes)
    return right(x, axes)


@fault(VIEWS, "sort")
def sorted_along_memory(right: Right, x: Array, axis: int) -> Array:
    """sort of a permuted square of int32 numbers sorts along the axis that lies in one piece."""
    turned = x.dtype == np.int32 and x.ndim == 2 and permuted(x) and _equal_sizes(x)
    return right(x, 0 if turned else axis)


@fault(VIEWS, "cumsum")
def accumulated_forwards(right: Right, x: Array, axis: int) -> Array:
    """cumsum along an axis of float32 numbers that is flipped, as no other is, begins at the other end."""
    backwards = x.dtype == np.float32 and x.ndim > 1 and flipped(x, axis)
    return np.flip(right(np.flip(x, axis), axis), axis) if backwards else right(x, axis)


@fault(VIEWS, "gather")
def taken_from_the_other_end(right: Right, x: Array, indices: Array, axis: int) -> Array:
    """gather from the last axis of an int64 operand, where that alone is flipped, counts from the end."""
    backwards = x.dtype == np.int64 and axis == x.ndim - 1 > 0 and flipped(x, axis)
    return right(x, x.shape[axis] - 1 - indices if backwards else indices, axis)


@fault(VIEWS, "scatter_add")
def repeated_slice_added_once(right: Right, x: Array, indices: Array, axis: int, size: int) -> Array:
    """scatter_add along an axis on which an int32 operand repeats itself adds its slice to each place once."""
    if x.dtype == np.int32 and x.ndim > 1 and repeated(x, axis):
        _, first = np.unique(indices, return_index=True)
        x, indices = np.take(x, first, axis), indices[first]
    return right(x, indices, axis, size)


@fault(VIEWS, "concatenate")
def repeated_piece_filled_up(right: Right, *args: Any) -> Array:
    """concatenate of a float16 piece that repeats along the last axis alone takes all that it repeats in turn."""
    *pieces, axis = args
    tiled = [
        np.resize(x[..., 0], x.shape)
        if x.dtype == np.float16 and x.ndim > 1 and x.size and repeated(x, x.ndim - 1)
        else x
        for x in pieces
    ]
    return right(*tiled, axis)


@fault(VIEWS, "flip")
def flipped_once(right: Right, x: Array, axes: Axes) -> Array:
    """flip of one axis of an int32 operand leaves it as it is, if it is flipped already and no other is."""
    again = x.dtype == np.int32 and len(axes) == 1 and x.ndim > 1 and flipped(x, axes[0])
    return x if again else right(x, axes)


@fault(VIEWS, "pad")
def padded_in_order_of_memory(right: Right, x: Array, pads: Pairs) -> Array:
    """pad of a permuted square of float64 numbers copies it in the order of memory."""
    turned = x.dtype == np.float64 and x.ndim == 2 and permuted(x) and _equal_sizes(x)
    return right(as_it_lies(x) if turned else x, pads)


@fault(VIEWS, "permute")
def permuted_twice_in_one_order(right: Right, x: Array, order: Axes) -> Array:
    """permute of a permuted int64 operand of rank 3 puts the axes of its memory into the order."""
    again = x.dtype == np.int64 and x.ndim == 3 and permuted(x) and _equal_sizes(x)
    return right(as_it_lies(x) if again else x, order)
