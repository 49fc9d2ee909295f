"""Bits of bytes: packed into uint8, and unpacked.

Raises:
    AxisError: if the axis is out of range.
    DTypeError: if x is not of bools or integers, or for `unpackbits` not of uint8.
"""

from __future__ import annotations

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_core.language.dtypes import uint8
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["packbits", "unpackbits"]

ORDERS = {"big": tuple(range(7, -1, -1)), "little": tuple(range(8))}
"""For each order the place of each bit in its byte."""


@with_numpys_names
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Groups of eight elements as the bits of a uint8, along an axis, or of the flattened tensor.

    Args:
        a: bools or integers; a nonzero integer is a bit that is set.
        axis: the axis; a last group of fewer than eight elements is filled up with zeros.
        bitorder: `"big"`, where the first element is the highest bit, or `"little"`.

    Raises:
        ArgumentError: if the order is neither.

    >>> import tensorken as tk
    >>> tk.packbits([1, 0, 0, 0, 0, 0, 1, 1, 1]).tolist()
    [131, 128]
    """
    places = _places("packbits", bitorder)
    x = as_tensor(a)
    if x.dtype.inexact:
        raise DTypeError(f"packbits: need bools or integers, got {x.dtype}; compare x with a number first")
    x = (x != 0).astype(uint8)
    x, axis = _along("packbits", x, axis)
    moved = x.swapaxes(axis, -1)
    count = -(-moved.shape[-1] // 8)
    padded = moved.pad([(0, 0)] * (x.ndim - 1) + [(0, 8 * count - moved.shape[-1])])
    bits = padded.reshape((*moved.shape[:-1], count, 8))
    weights = x.constant([1 << place for place in places], uint8, (8,))
    return (bits * weights).sum(-1, dtype=uint8).swapaxes(axis, -1)


@with_numpys_names
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Tensor:
    """The bits of uint8 numbers, as uint8 zeros and ones, along an axis, or of the flattened tensor.

    Args:
        a: of uint8.
        axis: the axis, which becomes eight times as long.
        count: the number of bits to return: with fewer the last are dropped, with more zeros follow; negative, the
            number of bits to drop.
        bitorder: `"big"`, where the first element is the highest bit, or `"little"`.

    Raises:
        ArgumentError: if the order is neither, or more bits are to be dropped than there are.

    >>> import tensorken as tk
    >>> tk.unpackbits(tk.tensor([3], dtype="uint8")).tolist()
    [0, 0, 0, 0, 0, 0, 1, 1]
    """
    places = _places("unpackbits", bitorder)
    x = as_tensor(a)
    if x.dtype is not uint8:
        raise DTypeError(f"unpackbits: need uint8, got {x.dtype}; cast it: x.astype(tk.uint8)")
    x, axis = _along("unpackbits", x, axis)
    moved = x.swapaxes(axis, -1)
    shifts = x.constant(list(places), uint8, (8,))
    bits = (moved.reshape((*moved.shape, 1)) >> shifts) & 1
    size = 8 * moved.shape[-1]
    flat = bits.reshape((*moved.shape[:-1], size))
    if count is not None:
        kept = count if count >= 0 else size + count
        if kept < 0:
            raise ArgumentError(
                f"unpackbits: count={count} drops more than the {size} bits; give at least {-size}"
            )
        before = [(0, n) for n in moved.shape[:-1]]
        flat = flat.crop([*before, (0, min(kept, size))]).pad(
            [(0, 0)] * (x.ndim - 1) + [(0, max(kept - size, 0))]
        )
    return flat.swapaxes(axis, -1)


def _places(name: str, order: str) -> tuple[int, ...]:
    if order not in ORDERS:
        raise ArgumentError(f"{name}: bitorder must be 'big' or 'little', got {order!r}")
    return ORDERS[order]


def _along(name: str, x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """The tensor and the axis; the flattened tensor and its axis if none is given."""
    return (x.reshape((x.size,)), 0) if axis is None else (x, axis_of(name, x.shape, axis))
