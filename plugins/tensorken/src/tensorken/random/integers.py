"""Random integers in a range, from double-width products of words."""

from __future__ import annotations

import math
import operator
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.indexing.checks import require
from tensorken.random.bits import (
    broadcast_argument,
    checked,
    dtype_of,
    logical_right_shift,
    pairs,
    shape_of,
    words,
)
from tensorken_core.errors import ArgumentError, DTypeError, ScalarRangeError
from tensorken_core.language.dtypes import DType, int32, int64, integer_bounds
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.tensor import Tensor


def randint(key: Tensor, shape: Any, minval: ArrayLike, maxval: ArrayLike, dtype: Any = int32) -> Tensor:
    """Integers from the uniform distribution on [minval, maxval).

    Each is minval + r * (maxval - minval) // 2**64 for 64 random bits r, for dtypes of 64 bits 128 bits and 2**128.
    So probabilities differ by at most 2**-64, or 2**-128.

    Args:
        key: shape (2,), int32.
        shape: of the result.
        minval, maxval: ints or integer tensors that broadcast to the shape.  As an int, maxval may be one above the
            largest number of the dtype.  In traced functions, where maxval <= minval, the result is minval.
        dtype: an integer dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid, the bounds do not broadcast to the shape, or
            minval is known not to be below maxval.
        DTypeError: if the dtype or a bound is not an integer.
        ScalarRangeError: if a bound does not fit the dtype.

    >>> import tensorken as tk
    >>> tk.random.randint(tk.random.key(0), (5,), 1, 7).tolist()
    [3, 2, 6, 4, 4]
    """
    name = "randint"
    key, sizes, result_dtype = checked(name, key), shape_of(name, shape), dtype_of(name, dtype, "int", key)
    wide = (
        int64 if result_dtype.itemsize == 8 else int32
    )  # sums of its bits wrap, so its sign makes no difference
    low, last = [
        bound.astype(wide) for bound in _bounds(key, minval, maxval, result_dtype, math.prod(sizes) > 0)
    ]
    low, last = (
        broadcast_argument(name, "minval", low, sizes),
        broadcast_argument(name, "maxval", last, sizes),
    )
    count = last - low + 1  # 0 for all 2**bits integers: as an unsigned number it wraps, as do the sums below
    high, rest = _two_words(key, sizes, wide)
    low_words = high * count + _product_above(rest, count)
    carry = _less_unsigned(low_words, high * count).astype(wide)
    offset = count.eq(0).where(high, _product_above(high, count) + carry)
    return (low + offset).astype(result_dtype)


def _bounds(key: Tensor, minval: Any, maxval: Any, dtype: DType, draws: bool) -> tuple[Tensor, Tensor]:
    """The first and the last integer of the range; both are the first if the range is empty."""
    least, most = integer_bounds(dtype)
    low = _integers(key, "minval", minval, least, most)
    high = _integers(key, "maxval", maxval, least, most + 1)
    if draws and isinstance(low, int) and isinstance(high, int) and low >= high:
        raise ArgumentError(f"randint: minval must be below maxval, got {low} and {high}")
    if draws and not (isinstance(low, int) and isinstance(high, int)):
        require("randint", "minval", low < high, "below maxval")
    if isinstance(low, int):
        low = key.constant([low], dtype, ())
    if isinstance(high, int):
        last = low.maximum(key.constant([max(high - 1, least)], dtype, ()))
    else:
        last = (low < high).where(high - 1, low)
    return low.astype(dtype), last.astype(dtype)


def _integers(key: Tensor, what: str, bound: Any, lower: int, upper: int) -> Any:
    """A bound as an int within limits, or as an integer tensor."""
    try:
        value = bound if isinstance(bound, Tensor) else operator.index(bound)
    except TypeError:
        value = as_operand("randint", bound, key)
    if isinstance(value, int):
        if not lower <= value <= upper:
            raise ScalarRangeError(
                f"randint: {what} must be from {lower} to {upper}, got {value}; use a wider dtype"
            )
    elif value.dtype.kind != "int":
        raise DTypeError(
            f"randint: {what} must be an integer, got {value.dtype}; cast it first (x.astype), or use uniform"
        )
    return value


def _two_words(key: Tensor, shape: Shape, dtype: DType) -> tuple[Tensor, Tensor]:
    """Two random integers for each element, from adjacent blocks or the halves of a block."""
    if dtype is int32:
        return pairs(key, shape)
    both = words(key, (math.prod(shape), 2), dtype)
    high, low = [both.crop(((0, both.shape[0]), (i, i + 1))).reshape(shape) for i in range(2)]
    return high, low


def _product_above(a: Tensor, b: Tensor) -> Tensor:
    """The upper half of the product of unsigned integers, from the products of their halves."""
    bits = 4 * a.dtype.itemsize
    mask = (1 << bits) - 1
    a1, a0, b1, b0 = logical_right_shift(a, bits), a & mask, logical_right_shift(b, bits), b & mask
    first_cross, second_cross = a1 * b0, a0 * b1
    middle = logical_right_shift(a0 * b0, bits) + (first_cross & mask) + (second_cross & mask)
    return (
        a1 * b1
        + logical_right_shift(first_cross, bits)
        + logical_right_shift(second_cross, bits)
        + logical_right_shift(middle, bits)
    )


def _less_unsigned(a: Tensor, b: Tensor) -> Tensor:
    sign_bit = -(1 << (8 * a.dtype.itemsize - 1))
    return (a ^ sign_bit) < (b ^ sign_bit)
