"""Sorting along an axis, and selection of elements by their indices.

Raises:
    AxisError: if an axis is out of range, or named twice.
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.indexing import checked, indices_like
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language import shapes
from tensorken_core.language.bodies.arrangement import slice_along, take_along
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import unary
from tensorken_core.tensor.normalization import axis_of, integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "argsort",
    "sort",
    "take_along_axis",
    "topk",
]


@with_numpys_names
def sort(
    x: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    kind: str | None = None,
) -> Tensor:
    """The elements sorted along an axis, or the sorted elements of the flattened tensor; differentiable.

    NaN counts as greater than all numbers.  Equal elements keep their order, whatever `stable` and `kind` are.

    >>> import tensorken as tk
    >>> print(tk.sort([3.0, 1.0, 2.0]))
    [1. 2. 3.]
    """
    y = as_tensor(x)
    _check_kind("sort", kind)
    if axis is None:
        return sort(y.ravel(), 0, descending=descending)
    along = axis_of("sort", y.shape, axis)
    if descending:  # reversed twice, so that equal elements keep their order
        return sort(y.flip(along), along).flip(along)
    return unary(OPS["sort"], y, (along,))


@with_numpys_names
def argsort(
    x: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    stable: bool = True,
    kind: str | None = None,
) -> Tensor:
    """The int32 indices that sort the elements along an axis, or the elements of the flattened tensor.

    NaN counts as greater than all numbers.  Equal elements keep their order, whatever `stable` and `kind` are.

    >>> import tensorken as tk
    >>> print(tk.argsort([3.0, 1.0, 2.0]), tk.argsort([3.0, 1.0, 2.0], descending=True))
    [1 2 0] [0 2 1]
    """
    y = as_tensor(x)
    _check_kind("argsort", kind)
    if axis is None:
        return argsort(y.ravel(), 0, descending=descending)
    along = axis_of("argsort", y.shape, axis)
    if descending:
        return (y.shape[along] - 1) - argsort(y.flip(along), along).flip(along)
    return unary(OPS["argsort"], y, (along,))


def _check_kind(name: str, kind: Any) -> None:
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ArgumentError(f"{name}: unknown kind {kind!r}; leave it out, as sorting is always stable")


class TopK(NamedTuple):
    """The result of `topk`."""

    values: Tensor
    indices: Tensor


@with_numpys_names
def topk(x: ArrayLike, k: int, axis: int = -1, *, largest: bool = True) -> TopK:
    """The k largest elements along an axis in descending order, and their int32 indices; differentiable.

    NaN counts as greater than all numbers; equal elements are taken in their order in x.

    Args:
        largest: whether to take the k largest; False takes the k smallest, in ascending order.

    Raises:
        ArgumentError: if there are fewer than k elements, or k is negative.

    >>> import tensorken as tk
    >>> values, indices = tk.topk([3.0, 1.0, 7.0], 2)
    >>> print(values, indices)
    [7. 3.] [2 0]
    """
    y = as_tensor(x)
    along, count = axis_of("topk", y.shape, axis), integer_of("topk", "k", k)
    if not 0 <= count <= y.shape[along]:
        raise ArgumentError(
            f"topk: k must be from 0 to {y.shape[along]}, the size of axis {along} of shape {y.shape}, got {k}"
        )
    order = argsort(y, along, descending=largest)
    indices = slice_along(order, along, 0, count)
    return TopK(take_along(y, indices, along), indices)


def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int = -1) -> Tensor:
    """The elements of x at integer indices along an axis, matched along the other axes; differentiable.

    Args:
        indices: a tensor of ints with as many axes as x; the other sizes broadcast.  Negative indices count from the
            end.

    Raises:
        ShapeError: if the numbers of axes differ, or the other sizes do not broadcast.
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> x = tk.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    >>> print(tk.take_along_axis(x, tk.argsort(x)[:, :2]).tolist())
    [[1.0, 2.0], [4.0, 5.0]]
    """
    x = as_tensor(x)
    index = indices_like("take_along_axis", indices, x)
    if index.dtype.kind != "int":
        raise DTypeError(
            f"take_along_axis: indices must be integers, got {index.dtype}; cast them (x.astype)"
        )
    if index.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis: indices need as many axes as x, got shapes {index.shape} and {x.shape}; "
            f"use tk.take for equal indices in every row"
        )
    along = axis_of("take_along_axis", x.shape, axis)
    index = checked("take_along_axis", index, along, x.shape)
    size, count = x.shape[along], index.shape[along]
    try:
        common = shapes.broadcast(_with(x.shape, along, 1), _with(index.shape, along, 1))
    except ShapeError as error:
        raise ShapeError(f"take_along_axis: {error}") from None
    x, index = x.broadcast_to(_with(common, along, size)), index.broadcast_to(_with(common, along, count))
    result: Tensor = take_along(x, index, along)
    return result


def _with(shape: shapes.Shape, axis: int, size: int) -> shapes.Shape:
    """The shape with another size along an axis."""
    return (*shape[:axis], size, *shape[axis + 1 :])
