"""Other shapes, orders and dtypes for the same elements, and tensors joined from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.creation import as_operand, as_tensor
from tensorken.dispatch import apply
from tensorken.errors import DTypeError, IndexingError, ShapeError
from tensorken.functions.operands import promoted
from tensorken.normalization import Axis, axes_of, axis_of, sizes_of
from tensorken.spec.op import OPS
from tensorken.tensor import Tensor

__all__ = [
    "astype",
    "broadcast_to",
    "concat",
    "concatenate",
    "expand_dims",
    "flip",
    "pad",
    "permute_dims",
    "reshape",
    "squeeze",
    "stack",
    "take",
    "transpose",
]


def astype(x: Any, dtype: Any) -> Tensor:
    """x in another dtype."""
    return as_tensor(x).astype(dtype)


def reshape(x: Any, shape: int | Sequence[int]) -> Tensor:
    """The same elements in another shape, one size of which may be -1."""
    return as_tensor(x).reshape(shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order; reversed by default."""
    return as_tensor(x).transpose(axes)


permute_dims = transpose


def broadcast_to(x: Any, shape: int | Sequence[int]) -> Tensor:
    """x repeated to a shape, by numpy's rules."""
    return as_tensor(x).broadcast_to(sizes_of("broadcast_to", (shape,)))


def flip(x: Any, axis: Axis = None) -> Tensor:
    """The elements in reverse order along axes, all by default."""
    return as_tensor(x).flip(axis)


def pad(x: Any, pads: Sequence[Sequence[int]]) -> Tensor:
    """Zeros before and after along each axis: one (before, after) pair an axis."""
    return as_tensor(x).pad(pads)


def expand_dims(x: Any, axis: int = 0) -> Tensor:
    """A new axis of size 1."""
    old = as_tensor(x)
    place = axis_of("expand_dims", (*old.shape, 1), axis)
    return old.reshape((*old.shape[:place], 1, *old.shape[place:]))


def squeeze(x: Any, axis: Axis = None) -> Tensor:
    """Without axes of size 1: all of them, or the given ones, which must have size 1."""
    old = as_tensor(x)
    if axis is None:
        return old.reshape(tuple([n for n in old.shape if n != 1]))
    axes = axes_of("squeeze", old.shape, axis)
    for i in axes:
        if old.shape[i] != 1:
            raise ShapeError(
                f"squeeze: axis {i} of shape {old.shape} has size {old.shape[i]}, need 1; leave it out"
            )
    return old.reshape(tuple([n for i, n in enumerate(old.shape) if i not in axes]))


def concatenate(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis; their other sizes agree.

    >>> import tensorken as tk
    >>> tk.concatenate([tk.tensor([1.0]), tk.tensor([2.0, 3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    pieces = promoted("concatenate", tensors)
    if len(pieces) == 1:
        return pieces[0]
    result: Tensor = apply(OPS["concatenate"], pieces, (axis_of("concatenate", pieces[0].shape, axis),))
    return result


concat = concatenate


def stack(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    pieces = promoted("stack", tensors)
    for piece in pieces:
        if piece.shape != pieces[0].shape:
            raise ShapeError(
                f"stack: tensors need one shape, got {pieces[0].shape} and {piece.shape}; reshape one"
            )
    place = axis_of("stack", (*pieces[0].shape, 1), axis)
    return concatenate([expand_dims(piece, place) for piece in pieces], place)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The slices of x at integer indices along an axis, or of the flat tensor; negative ones count from the end.

    Raises:
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.take(tk.tensor([10.0, 20.0, 30.0]), [2, 0]).tolist()
    [30.0, 10.0]
    """
    x = as_tensor(x)
    if axis is None:
        return take(x.reshape((x.size,)), indices, 0)
    place = axis_of("take", x.shape, axis)
    index = as_operand("take", indices, x)
    if index.dtype.kind != "int":
        raise DTypeError(f"take: indices must be int32 or int64, got {index.dtype}; cast them (x.astype)")
    size = x.shape[place]
    flat = index.reshape((index.size,))
    if index.size and not (-size <= int(flat.min()) and int(flat.max()) < size):
        raise IndexingError(
            f"take: indices from {int(flat.min())} to {int(flat.max())} are out of range for axis {place} "
            f"of shape {x.shape}; they run from {-size} to {size - 1}"
        )
    found: Tensor = x.gather((flat < 0).where(flat + size, flat), place)
    return found.reshape(x.shape[:place] + index.shape + x.shape[place + 1 :])
