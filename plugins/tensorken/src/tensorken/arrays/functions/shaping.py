"""Changes of shape and axis order, and selection of slices."""

from __future__ import annotations

from collections.abc import Sequence

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import ordered_axes_of, with_numpys_names
from tensorken.arrays.indexing import checked, indices_like, slices
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.normalization import Axis, axes_of, axis_of, filled_in, sizes_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "expand_dims",
    "flatten",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "squeeze",
    "swapaxes",
    "take",
    "transpose",
]


def reshape(
    x: ArrayLike, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None
) -> Tensor:
    """The same elements in another shape; one size may be -1, and is computed from the other sizes.

    Args:
        x: the tensor.
        shape: the new shape, with the same number of elements.
        order: `"C"` reads and writes with the last index changing fastest, `"F"` with the first.
        copy: has no effect, as tensors are immutable.

    Raises:
        ShapeError: if the numbers of elements differ.

    >>> import tensorken as tk
    >>> tk.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    old = as_tensor(x)
    if _is_row_major("reshape", order):
        return old.reshape(shape)
    sizes = sizes_of("reshape", (shape,))
    if -1 in sizes:
        sizes = filled_in(old.shape, sizes)
    return old.transpose().reshape(sizes[::-1]).transpose()


def ravel(x: ArrayLike, order: str = "C") -> Tensor:
    """x flattened to one axis, with the last index changing fastest, or with `order="F"` the first.

    Raises:
        ArgumentError: if order is neither "C" nor "F".

    >>> import tensorken as tk
    >>> tk.ravel([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    old = as_tensor(x)
    return (old if _is_row_major("ravel", order) else old.transpose()).reshape((old.size,))


flatten = ravel


@with_numpys_names
def transpose(x: ArrayLike, axes: Sequence[int] | None = None) -> Tensor:
    """x with its axes in another order; reversed by default.

    Raises:
        AxisError: if the order does not contain every axis exactly once.

    >>> import tensorken as tk
    >>> tk.transpose(tk.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return as_tensor(x).transpose(axes)


permute_dims = transpose


def matrix_transpose(x: ArrayLike) -> Tensor:
    """x with its last two axes exchanged; the same as `x.mT`.

    Raises:
        ShapeError: if x has fewer than two axes.

    >>> import tensorken as tk
    >>> tk.matrix_transpose(tk.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    old = as_tensor(x)
    if old.ndim < 2:
        raise ShapeError(f"matrix_transpose: need at least 2 axes, got shape {old.shape}; reshape first")
    return old.mT


def swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Tensor:
    """x with two axes exchanged.

    Raises:
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> tk.swapaxes(tk.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    old = as_tensor(x)
    first, second = axis_of("swapaxes", old.shape, axis1), axis_of("swapaxes", old.shape, axis2)
    order = list(range(old.ndim))
    order[first], order[second] = second, first
    return old.permute(order)


def moveaxis(x: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """x with axes moved to other positions; the other axes keep their order.

    Raises:
        AxisError: if an axis is out of range or given twice.
        ArgumentError: if the number of positions differs from the number of axes.

    >>> import tensorken as tk
    >>> tk.moveaxis(tk.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    old = as_tensor(x)
    start, end = (
        ordered_axes_of("moveaxis", old.shape, source),
        ordered_axes_of("moveaxis", old.shape, destination),
    )
    if len(start) != len(end):
        raise ArgumentError(
            f"moveaxis: {len(start)} source axes and {len(end)} destinations for shape {old.shape}; give equal numbers"
        )
    order = [i for i in range(old.ndim) if i not in start]
    for position, axis in sorted(zip(end, start, strict=True)):
        order.insert(position, axis)
    return old.permute(order)


def rollaxis(x: ArrayLike, axis: int, start: int = 0) -> Tensor:
    """x with an axis moved before another, as in numpy; `tk.moveaxis` is easier to read.

    Raises:
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> tk.rollaxis(tk.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    axis, end = axis_of("rollaxis", x.shape, axis), x.ndim
    start = end if start == end else axis_of("rollaxis", x.shape, start)
    return moveaxis(x, axis, start - 1 if axis < start else start)


@with_numpys_names
def expand_dims(x: ArrayLike, axis: int | Sequence[int] = 0) -> Tensor:
    """x with new axes of size 1 at these positions in the result.

    Raises:
        AxisError: if a position is out of range or given twice.

    >>> import tensorken as tk
    >>> tk.expand_dims(tk.zeros((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    old = as_tensor(x)
    count = len(axis) if isinstance(axis, Sequence) else 1
    axes = axes_of("expand_dims", (*old.shape, *[1] * count), axis)
    sizes = iter(old.shape)
    return old.reshape(tuple([1 if i in axes else next(sizes) for i in range(old.ndim + count)]))


@with_numpys_names
def squeeze(x: ArrayLike, axis: Axis = None) -> Tensor:
    """x without its axes of size 1, or without the given axes, which must have size 1.

    Raises:
        ShapeError: if a given axis has another size.

    >>> import tensorken as tk
    >>> tk.squeeze(tk.zeros((1, 2, 1)), 0).shape
    (2, 1)
    """
    old = as_tensor(x)
    if axis is None:
        return old.reshape(tuple([n for n in old.shape if n != 1]))
    axes = axes_of("squeeze", old.shape, axis)
    for i in axes:
        if old.shape[i] != 1:
            raise ShapeError(
                f"squeeze: axis {i} of shape {old.shape} has size {old.shape[i]}, need 1; leave this axis out"
            )
    return old.reshape(tuple([n for i, n in enumerate(old.shape) if i not in axes]))


@with_numpys_names
def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Slices of x at integer indices along an axis, or of the flattened tensor; negative indices count from the end.

    Raises:
        IndexingError: if an index is out of range.
        DTypeError: if the indices are not ints.
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> tk.take(tk.tensor([10.0, 20.0, 30.0]), [2, 0]).tolist()
    [30.0, 10.0]
    """
    x = as_tensor(x)
    if axis is None:
        return take(x.reshape((x.size,)), indices, 0)
    along = axis_of("take", x.shape, axis)
    index = indices_like("take", indices, x)
    if index.dtype.kind != "int":
        raise DTypeError(f"take: indices must be integers, got {index.dtype}; cast them (x.astype)")
    return slices(x, checked("take", index, along, x.shape), along)


# ---- shared code -------------------------------------------------------------------------------------------


def _is_row_major(name: str, order: str) -> bool:
    if order not in ("C", "F"):
        raise ArgumentError(
            f"{name}: order must be 'C' or 'F', got {short_repr(order)}; a tensor has no memory order"
        )
    return order == "C"
