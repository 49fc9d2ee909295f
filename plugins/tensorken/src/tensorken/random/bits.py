"""Random bits: the layout of counters, and their encryption to words under a key.

Block i of a key is the pair of words to which the cipher maps the counter (i // 2**32 + purpose, i % 2**32).  The top
two bits of the counter's first word are the purpose, so that random bits, the keys of `split` and the keys of `fold_in`
never share a counter.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.dtypes import DType, as_dtype, int32, int64, wrap_integer
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape, broadcast, short_repr
from tensorken_core.tensor.coercion import check_supported
from tensorken_core.tensor.normalization import sizes_of
from tensorken_core.tensor.tensor import Tensor


class Purpose(IntEnum):
    """The purpose of the blocks of a key."""

    BITS = 0
    SPLIT = 1
    FOLD_IN = 2


def bits(key: Tensor, shape: Any = (), dtype: Any = int32) -> Tensor:
    """Integers of random bits, uniformly distributed over all values of the dtype.

    Block i of the key holds elements 2i and 2i + 1 in int32, and element i in int64, the more significant word first.
    So the first m of n numbers do not depend on n.  Other dtypes take the lowest bits of an int32 or int64.

    Args:
        key: from `tk.random.key` or `split`, shape (2,), int32.
        shape: of the result.
        dtype: an integer dtype.

    Raises:
        ArgumentError, ShapeError: if the key or the shape is invalid.
        DTypeError: if the dtype is not an integer dtype.

    >>> import tensorken as tk
    >>> tk.random.bits(tk.random.key(0), (3,)).tolist()
    [1797259609, -1715843330, 928981903]
    """
    key, sizes, result_dtype = (
        checked("bits", key),
        shape_of("bits", shape),
        dtype_of("bits", dtype, "int", key),
    )
    return words(key, sizes, result_dtype)


# ---- words and blocks --------------------------------------------------------------------------------------


def words(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """Random integers of a shape; see `bits`."""
    count = math.prod(shape)
    if dtype.itemsize == 8:
        first, second = pairs(key, shape)
        return ((first.astype(int64) << 32) | (second.astype(int64) & 0xFFFFFFFF)).astype(dtype)
    flat = blocks(key, -(-count // 2), Purpose.BITS).reshape((count + count % 2,))
    return (flat.crop(((0, count),)) if count % 2 else flat).reshape(shape).astype(dtype)


def pairs(key: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """Two random words for each element: the two words of one block."""
    count = math.prod(shape)
    both = blocks(key, count, Purpose.BITS)
    first, second = [both.crop(((0, count), (i, i + 1))).reshape(shape) for i in range(2)]
    return first, second


def blocks(key: Tensor, count: int, purpose: Purpose) -> Tensor:
    """The first `count` blocks of the key for a purpose, in shape (count, 2)."""
    width = count if count <= 1024 else 1 << (count.bit_length() // 2)
    rows = -(-count // max(width, 1))
    starts = [counter_of(row * width, purpose) for row in range(rows)]
    # Each row starts at a multiple of a power of two, so that no carry from word to word occurs within a row.
    first, second = [key.constant(column, int32, (rows, 1)) for column in _columns(starts)]
    second = second + key.constant(range(width), int32, (1, width))
    counters = first.broadcast_to((rows, width)).reshape((rows * width, 1))
    counters = counters.concatenate(second.reshape((rows * width, 1)), axis=1)
    if rows * width > count:
        counters = counters.crop(((0, count), (0, 2)))
    return encipher(key, counters)


def encipher(key: Tensor, counters: Tensor) -> Tensor:
    """The encrypted counters, of shape (count, 2)."""
    repeated = key.reshape((1, 2)).broadcast_to(counters.shape)
    result: Tensor = repeated.apply(OPS["threefry2x32"], counters)
    return result


def counter_of(index: int, purpose: Purpose) -> tuple[int, int]:
    """The two words of the counter of a block, as int32."""
    high, low = divmod(index, 1 << 32)
    return wrap_integer(high + (purpose << 30), int32), wrap_integer(low, int32)


def _columns(rows: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [first for first, _ in rows], [second for _, second in rows]


# ---- arguments ---------------------------------------------------------------------------------------------


def checked(name: str, key: Any) -> Tensor:
    """The key as a plain tensor; raise if it is not a key."""
    if not isinstance(key, Tensor):
        raise ArgumentError(f"{name}: need a key, got {short_repr(key)}; make one with tk.random.key(seed)")
    if key.shape != (2,) and key.shape[-1:] == (2,) and key.dtype is int32:
        raise ShapeError(
            f"{name}: need one key, of shape (2,), got shape {key.shape}; pass one row, or use tk.vmap over the keys"
        )
    if key.shape != (2,) or key.dtype is not int32:
        raise ArgumentError(
            f"{name}: need a key, int32 of shape (2,), got {key.dtype} of shape {key.shape}; "
            f"make one with tk.random.key(seed)"
        )
    # A plain tensor, so that numbers computed from it are not printed as keys.
    return Tensor(key.interpreter, key.representation, key.shape, key.dtype)


def shape_of(name: str, shape: Any) -> Shape:
    """The sizes of a result."""
    sizes = sizes_of(name, (shape,))
    if min(sizes, default=0) < 0:
        raise ShapeError(f"{name}: sizes must not be negative, got {sizes}; give each axis at least 0")
    return sizes


def dtype_of(name: str, dtype: Any, kind: str, key: Tensor) -> DType:
    """The dtype of a result; raise if its kind is another, or if the key's backend does not support the dtype."""
    result = as_dtype(dtype)
    if result.kind != kind:
        takes = "an integer dtype" if kind == "int" else "a floating-point dtype"
        raise DTypeError(f"{name}: the dtype must be {takes}, got {result}; cast the result (x.astype)")
    check_supported(name, key.interpreter.base, result)
    return result


def broadcast_argument(name: str, what: str, x: Tensor, shape: Shape) -> Tensor:
    """An argument broadcast to the shape of the result."""
    try:
        fits = broadcast(x.shape, shape) == shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{name}: {what} of shape {x.shape} does not broadcast to the shape {shape} of the result; change one"
        )
    return x.broadcast_to(shape)


def logical_right_shift(x: Tensor, count: int) -> Tensor:
    """A logical right shift."""
    result: Tensor = x.apply(OPS["shift_right"], x.scalar(count))
    return result
