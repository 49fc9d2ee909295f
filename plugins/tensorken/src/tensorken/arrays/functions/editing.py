"""Insertion and deletion of elements along an axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.joining import concatenate
from tensorken.arrays.functions.repeating import slices_at
from tensorken.arrays.functions.shaping import moveaxis
from tensorken_core.errors import ConcretizationError, IndexingError, ShapeError
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "append",
    "delete",
    "insert",
]

FEW = 16
"""The most slices that are deleted or inserted without a list of all others, by runs of slices between them."""


def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Tensor:
    """x with values appended along an axis; without an axis both are flattened.

    Raises:
        ShapeError: if the sizes along the other axes differ.

    >>> import tensorken as tk
    >>> tk.append([1, 2], [[3], [4]]).tolist()
    [1, 2, 3, 4]
    """
    return concatenate((x, values), axis)


def delete(x: ArrayLike, obj: Any, axis: int | None = None) -> Tensor:
    """x with some slices along an axis, or some elements of the flattened tensor, deleted.

    Args:
        x: the tensor.
        obj: the slices to delete: an int, ints, a slice, or a mask with a bool for each slice.  The values of a
            tensor are read, as the shape of the result depends on them.
        axis: the axis; without it the tensor is flattened.

    Raises:
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.delete([10, 11, 12, 13], [0, -1]).tolist()
    [11, 12]
    """
    old, along = _along("delete", x, axis)
    n = old.shape[along]
    deleted = sorted({*_indices("delete", obj, n, n)})
    if len(deleted) > FEW:
        gone = set(deleted)
        return slices_at(old, [i for i in range(n) if i not in gone], along)
    limits = zip([0, *[i + 1 for i in deleted]], [*deleted, n], strict=True)
    runs: list[Tensor] = [slice_along(old, along, start, end) for start, end in limits]
    return runs[0].concatenate(*runs[1:], axis=along)


def insert(x: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Tensor:
    """x with values inserted before some slices along an axis, or before some elements of the flattened tensor.

    Args:
        x: the tensor.
        obj: the indices, in x, of the slices before which to insert: an int, ints, a slice or a mask; the size of
            the axis stands for the end.  The values of a tensor are read.
        values: the values to insert, broadcast and cast to the dtype of x; several slices are allowed for one int.
        axis: the axis; without it the tensor is flattened.

    Raises:
        IndexingError: if an index is out of range.
        ShapeError: if the values do not broadcast.

    >>> import tensorken as tk
    >>> tk.insert([1, 2, 3], 1, 9).tolist(), tk.insert([1, 2, 3], [0, 3], [8, 9]).tolist()
    ([1, 9, 2, 3], [8, 1, 2, 3, 9])
    """
    old, along = _along("insert", x, axis)
    n = old.shape[along]
    positions = _indices("insert", obj, n, n + 1)
    new = as_operand("insert", values, old).astype(old.dtype)
    if len(positions) == 1:
        new = new.reshape((1,) * (old.ndim - new.ndim) + new.shape)
        if _entries(obj) is None and not isinstance(
            obj, slice
        ):  # for an int, the first axis holds the slices
            new = moveaxis(new, 0, along)
        positions = positions * new.shape[along]
    shape = (*old.shape[:along], len(positions), *old.shape[along + 1 :])
    try:
        new = new.broadcast_to(shape)
    except ShapeError:
        raise ShapeError(
            f"insert: values of shape {new.shape} do not broadcast to {shape}, with {len(positions)} along axis {along}"
        ) from None
    if len(positions) <= FEW:
        parts: list[Tensor] = []
        start = 0
        for i, k in sorted(zip(positions, range(len(positions)), strict=True)):
            parts += [slice_along(old, along, start, i), slice_along(new, along, k, k + 1)]
            start = i
        parts.append(slice_along(old, along, start, n))
        return parts[0].concatenate(*parts[1:], axis=along)
    # A stable sort by position puts inserted slices before the existing slice and keeps their order.
    order = sorted([(i, 0, n + k) for k, i in enumerate(positions)] + [(i, 1, i) for i in range(n)])
    return slices_at(old.concatenate(new, axis=along), [source for _, _, source in order], along)


# ---- shared code -------------------------------------------------------------------------------------------


def _along(name: str, x: Any, axis: int | None) -> tuple[Tensor, int]:
    """The tensor, flattened if no axis is given, and the axis to use."""
    old: Tensor = as_tensor(x)
    if axis is None:
        return old.ravel(), 0
    return old, axis_of(name, old.shape, axis)


def _entries(obj: Any) -> list[Any] | None:
    """The entries of a sequence or array; None for a single index."""
    if isinstance(obj, Sequence):
        return list(obj)
    return list(obj.tolist()) if hasattr(obj, "tolist") and obj.ndim else None


def _indices(name: str, obj: Any, n: int, end: int) -> list[int]:
    """Convert an int, ints, a slice or a mask over n slices to ints in [0, end)."""
    if isinstance(obj, slice):
        return list(range(*obj.indices(n)))
    several = _entries(obj)
    entries = [obj] if several is None else several
    if several and all(isinstance(i, bool) for i in several):
        if len(several) != n:
            raise IndexingError(
                f"{name}: a mask of size {len(several)} does not fit {n} slices; give one bool for each"
            )
        return [i for i, chosen in enumerate(several) if chosen]
    indices = []
    for i in entries:
        try:
            index = operator.index(i)
        except ConcretizationError as error:
            raise error.at(name) from None
        except TypeError:
            raise IndexingError(
                f"{name}: need ints, a slice or a vector of bools, got {short_repr(obj)}"
            ) from None
        if not -n <= index < end:
            raise IndexingError(
                f"{name}: index {index} is out of range for {n} slices; they run from {-n} to {end - 1}"
            )
        indices.append(index + n if index < 0 else index)
    return indices
