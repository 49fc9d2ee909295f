"""Order along an axis: sorting, and elements taken by their places."""

from __future__ import annotations

from typing import Any

from tensorken.creation import as_tensor
from tensorken.errors import DTypeError, ShapeError
from tensorken.indexing import checked, indices_beside
from tensorken.normalization import axis_of
from tensorken.spec import shapes
from tensorken.spec.bodies.arrangement import take_along
from tensorken.tensor import Tensor

__all__ = [
    "argsort",
    "sort",
    "take_along_axis",
]


def sort(x: Any, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis, or of the flat tensor; differentiable.

    NaN counts as the greatest of all.  Equal elements keep their order, also if `stable` is False.

    >>> import tensorken as tk
    >>> print(tk.sort([3.0, 1.0, 2.0]))
    [1 2 3]
    """
    return as_tensor(x).sort(axis, descending=descending, stable=stable)


def argsort(x: Any, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The int32 indices that bring the axis, or the flat tensor, into order.

    NaN counts as the greatest of all.  Equal elements keep their order, also if `stable` is False.

    >>> import tensorken as tk
    >>> print(tk.argsort([3.0, 1.0, 2.0]), tk.argsort([3.0, 1.0, 2.0], descending=True))
    [1 2 0] [0 2 1]
    """
    return as_tensor(x).argsort(axis, descending=descending, stable=stable)


def take_along_axis(x: Any, indices: Any, axis: int = -1) -> Tensor:
    """The elements of x at integer indices along the axis, row by row; differentiable.

    Args:
        indices: as many axes as x has; the other sizes broadcast.  Negative ones count from the end.

    Raises:
        ShapeError: if the numbers of axes differ, or the other sizes do not broadcast.
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> x = tk.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    >>> print(tk.take_along_axis(x, tk.argsort(x)[:, :2]).tolist())
    [[1.0, 2.0], [4.0, 5.0]]
    """
    x = as_tensor(x)
    index = indices_beside("take_along_axis", indices, x)
    if index.dtype.kind != "int":
        raise DTypeError(
            f"take_along_axis: indices must be int32 or int64, got {index.dtype}; cast them (x.astype)"
        )
    if index.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis: indices need as many axes as x, got shapes {index.shape} and {x.shape}; "
            f"use take for indices that serve every row"
        )
    place = axis_of("take_along_axis", x.shape, axis)
    index = checked("take_along_axis", index, place, x.shape)
    size, count = x.shape[place], index.shape[place]
    try:
        common = shapes.broadcast(_with(x.shape, place, 1), _with(index.shape, place, 1))
    except ShapeError as error:
        raise ShapeError(f"take_along_axis: {error}") from None
    x, index = x.broadcast_to(_with(common, place, size)), index.broadcast_to(_with(common, place, count))
    result: Tensor = take_along(x, index, place)
    return result


def _with(shape: shapes.Shape, axis: int, size: int) -> shapes.Shape:
    """The shape with another size along the axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])
