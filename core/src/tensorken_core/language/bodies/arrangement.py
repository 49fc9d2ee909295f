"""Bodies of the ops along axes: prod, min, argmax, cumsum, cumprod, sort, concatenate and their relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken_core.language.bodies.arithmetic import either, in_float32, is_nan
from tensorken_core.language.dtypes import bool_, int32, integer_bounds, minus_one, position_dtype
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes

Tensor = Any


def multiples(step: int, count: int) -> Sequence[int]:
    """0, step, 2 * step, ...; a range if possible, since backends may create a tensor from a range faster."""
    return range(0, step * count, step) if step else [0] * count


def iota(x: Tensor, axis: int) -> Tensor:
    """0, 1, 2, ... along the axis, with size 1 along the other axes, at the level of x."""
    n = x.shape[axis]
    shape = tuple([n if i == axis else 1 for i in range(x.ndim)])
    return x.constant(range(n), int32, (n,)).reshape(shape)


def min(x: Tensor, axes: Axes) -> Tensor:
    """-max(-x), for integers ~max(~x), which cannot overflow; ~x is -1 - x."""
    if x.dtype is bool_:
        return x.where(False, True).max(axes, keepdims=True).where(False, True)
    if x.dtype.kind == "int":
        ones = minus_one(x.dtype)
        return ones - (ones - x).max(axes, keepdims=True)
    return -(-x).max(axes, keepdims=True)


def argmax(x: Tensor, axis: int) -> Tensor:
    return _first_index(x, x.max((axis,), keepdims=True), axis)


def argmin(x: Tensor, axis: int) -> Tensor:
    return _first_index(x, x.min((axis,), keepdims=True), axis)


def _first_index(x: Tensor, value: Tensor, axis: int) -> Tensor:
    """The first index of the value, or of a NaN: n minus the largest n - i over the indices i of the hits."""
    n = x.shape[axis]
    hits = x.eq(value.expand(x.shape))
    if x.dtype.kind == "float":
        hits = either(hits, is_nan(x))
    from_end = (n - iota(x, axis)).expand(x.shape)
    return n - hits.where(from_end, 0).max((axis,), keepdims=True)


@in_float32
def cumsum(x: Tensor, axis: int) -> Tensor:
    """Sums of 1, 2, 4, ... neighbours: each step adds the array shifted by the number of summed neighbours."""
    step = 1
    while step < x.shape[axis]:
        x = x + _shifted(x, axis, step)
        step *= 2
    return x


# ---- products ----------------------------------------------------------------------------------------------


@in_float32
def prod(x: Tensor, axes: Axes) -> Tensor:
    """A tree of products of pairs, after padding with ones to a power of two."""
    for axis in axes:
        n = x.shape[axis]
        size = 1 << max(n - 1, 0).bit_length()
        if n < size:
            x = _padded(x, axis, 0, size - n)
            x = (iota(x, axis) < n).where(x, 1)
        while (half := x.shape[axis] // 2) > 0:
            x = slice_along(x, axis, 0, half) * slice_along(x, axis, half, 2 * half)
    return x


@in_float32
def cumprod(x: Tensor, axis: int) -> Tensor:
    """Products of 1, 2, 4, ... neighbours: each step multiplies by the array shifted by their number."""
    step, index = 1, iota(x, axis)
    while step < x.shape[axis]:
        x = (index < step).where(x, x * _shifted(x, axis, step))
        step *= 2
    return x


def preceding(x: Tensor, axis: int) -> Tensor:
    """For each element the previous element along the axis; 1 for the first."""
    if x.size == 0:
        return x
    return (
        slice_along(x, axis, 0, 1)
        .ones_like()
        .concatenate(slice_along(x, axis, 0, x.shape[axis] - 1), axis=axis)
    )


@in_float32
def product_of_others(x: Tensor, axes: Axes) -> Tensor:
    """For each element the product of all others over axes: the product before it times the product after it."""
    kept = tuple([i for i in range(x.ndim) if i not in axes])
    order = (*kept, *axes)
    lines = x.permute(order)
    rows = lines.reshape((*[x.shape[i] for i in kept], math.prod([x.shape[i] for i in axes])))
    axis, cumprod = len(kept), OPS["cumprod"]
    left = preceding(rows, axis).apply(cumprod, axis)
    right = preceding(rows.flip((axis,)), axis).apply(cumprod, axis).flip((axis,))
    return (left * right).reshape(lines.shape).permute(tuple(sorted(range(x.ndim), key=order.__getitem__)))


@in_float32
def recurrence(a: Tensor, b: Tensor, axis: int) -> Tensor:
    """The solution y of y[i] = a[i] * y[i - 1] + b[i] along the axis, from 0, in log2(n) steps.

    G. E. Blelloch, "Prefix sums and their applications", 1990, section 1.4.
    """
    n, step = a.shape[axis], 1
    while step < n:
        factors = slice_along(a, axis, step, n)
        sums = slice_along(b, axis, step, n) + factors * slice_along(b, axis, 0, n - step)
        b = slice_along(b, axis, 0, step).concatenate(sums, axis=axis)
        a = slice_along(a, axis, 0, step).concatenate(factors * slice_along(a, axis, 0, n - step), axis=axis)
        step *= 2
    return b


def slice_along(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    """The elements from start to stop along the axis."""
    return x.crop(tuple([(start, stop) if i == axis else (0, n) for i, n in enumerate(x.shape)]))


def _padded(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    return x.pad(tuple([(before, after) if i == axis else (0, 0) for i in range(x.ndim)]))


def _shifted(x: Tensor, axis: int, step: int) -> Tensor:
    """x shifted towards higher indices by `step`; the first elements are zeros."""
    return _padded(slice_along(x, axis, 0, x.shape[axis] - step), axis, step, 0)


# ---- joining -----------------------------------------------------------------------------------------------


def concatenate(*args: Any) -> Tensor:
    """Each operand is padded to the full size, and `where` selects it; a sum of the operands would lose -0.0."""
    *pieces, axis = args
    total, start, result = sum([x.shape[axis] for x in pieces]), 0, None
    for x in pieces:
        end = start + x.shape[axis]
        padded = _padded(x, axis, start, total - end)
        if result is None:
            result = padded
        else:
            index = iota(padded, axis).expand(padded.shape)
            result = (index < start).where(result, padded)
        start = end
    return result


# ---- sorting -----------------------------------------------------------------------------------------------


def sort(x: Tensor, axis: int) -> Tensor:
    return take_along(x, x.apply(OPS["argsort"], axis), axis)


def take_along(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The elements of x at indices in [0, size) along the axis; the other sizes of x and indices are equal.

    It is one gather from the flattened tensor, so the derivative rules of gather apply.
    """
    flat = x.reshape((x.size,)).gather(flat_indices(indices, x.shape[axis], axis), 0)
    return flat.reshape(indices.shape)


def flat_indices(indices: Tensor, n: int, axis: int) -> Tensor:
    """Convert indices along an axis of size n to indices into the flattened tensor, as a vector."""
    shape = indices.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    dtype = position_dtype(outer * n * inner)
    offsets = indices.astype(dtype).reshape((outer, shape[axis], inner)) * inner
    starts = offsets.constant(multiples(n * inner, outer), dtype, (outer, 1, 1))
    return (offsets + starts + iota(offsets, 2).astype(dtype)).reshape((indices.size,))


def argsort(x: Tensor, axis: int) -> Tensor:
    """Batcher's bitonic sorting network, in about log2(n)**2 / 2 steps over all elements at once.

    Each key is sorted together with its index, which decides between equal keys, so the sort is stable.  NaN gets the
    greatest key and an index after all numbers; the padding to a power of two gets an index after NaN.

    K. E. Batcher, "Sorting networks and their applications", 1968, in the form in which all comparisons have the same
    direction and the first step of each merge compares with the mirror image.
    """
    n, order = x.shape[axis], (*[i for i in range(x.ndim) if i != axis], axis)
    if n < 2:
        return iota(x, axis).expand(x.shape)
    steps = (n - 1).bit_length()
    size = 2**steps
    lines = x.permute(order)
    rows = math.prod(lines.shape[:-1])
    key = lines.reshape((rows, n))
    if key.dtype is bool_:
        key = key.astype(int32)
    index = iota(key, 1).expand(key.shape)
    if key.dtype.kind == "float":
        top: Any = float("inf")
        nan = is_nan(key)
        key, index = nan.where(top, key), nan.where(index + size, index)
    else:
        _, top = integer_bounds(key.dtype)
    if size > n:
        key, index = key.pad(((0, 0), (0, size - n))), index.pad(((0, 0), (0, size - n)))
        column = iota(key, 1).expand(key.shape)
        key, index = (column < n).where(key, top), (column < n).where(index, column + 2 * size)
    first = x.constant([True, False], bool_, (2,)).reshape((1, 1, 2, 1))
    for merge in range(1, steps + 1):
        for step in range(merge, 0, -1):  # compare pairs of blocks of 2**(step - 1) elements
            shape = (rows, size >> step, 2, 2 ** (step - 1))
            key, index = key.reshape(shape), index.reshape(shape)
            mirrored = (2, 3) if step == merge else (2,)
            other_key, other_index = key.flip(mirrored), index.flip(mirrored)
            less = either(other_key < key, other_key.eq(key).where(other_index < index, False))
            swap = less.eq(first)
            key, index = swap.where(other_key, key), swap.where(other_index, index)
    index = index.reshape((rows, size)).crop(((0, rows), (0, n)))
    if x.dtype.kind == "float":
        index = (index < size).where(index, index - size)
    return index.reshape(lines.shape).permute(tuple(sorted(range(x.ndim), key=order.__getitem__)))
