"""Partial orders and orders by several keys, and copies with values put at indices or where a mask is true.

Raises:
    AxisError: if an axis is out of range, or named twice.
    ShapeError: if shapes do not fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.blocks import resize
from tensorken.arrays.functions.choices import within
from tensorken.arrays.functions.operands import as_tensors
from tensorken.arrays.functions.sorting import argsort, sort
from tensorken.arrays.indexing import checked, indices_like
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.bodies.arrangement import iota, take_along
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import axis_of, integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["argpartition", "lexsort", "partition", "place", "put", "put_along_axis", "scatter"]


@with_numpys_names
def partition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """The elements along an axis, or of the flattened tensor, with the k-th of the sorted order in its place.

    Smaller elements are before it, larger ones after it.  They are sorted completely, which numpy does not promise.

    Args:
        kth: an index or several along the axis; negative ones count from the end.

    Raises:
        ArgumentError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.partition([7, 1, 5, 3], 1).tolist()[1]
    3
    """
    y, along = _kept("partition", x, kth, axis)
    return sort(y, along)


@with_numpys_names
def argpartition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """The int32 indices that put the k-th element of the sorted order in its place; see `partition`.

    Args:
        kth: an index or several along the axis; negative ones count from the end.

    Raises:
        ArgumentError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.argpartition([7, 1, 5, 3], 1).tolist()[1]
    3
    """
    y, along = _kept("argpartition", x, kth, axis)
    return argsort(y, along)


def _kept(name: str, x: Any, kth: Any, axis: int | None) -> tuple[Tensor, int]:
    """The tensor and its axis, after a check of the indices."""
    y = as_tensor(x)
    y, along = (y.ravel(), 0) if axis is None else (y, axis_of(name, y.shape, axis))
    n = y.shape[along]
    for k in kth if isinstance(kth, Sequence) else (kth,):
        if not -n <= integer_of(name, "kth", k) < n:
            raise ArgumentError(f"{name}: kth must be from {-n} to {n - 1}, got {short_repr(kth)}")
    return y, along


def lexsort(keys: ArrayLike, axis: int = -1) -> Tensor:
    """The int32 indices that sort along an axis by several keys: the last key decides first.

    Args:
        keys: a sequence of tensors of one shape, or a tensor whose first axis is that of the keys.

    >>> import tensorken as tk
    >>> tk.lexsort(([1, 2, 0], [5, 4, 5])).tolist()
    [1, 2, 0]
    """
    tensors = as_tensors("lexsort", keys)
    shape = tensors[0].shape
    for key in tensors:
        if key.shape != shape:
            raise ShapeError(f"lexsort: the keys must have one shape, got {shape} and {key.shape}")
    if not shape:
        return argsort(tensors[0].reshape((1,)), 0).reshape(())
    along = axis_of("lexsort", shape, axis)
    order = argsort(tensors[0], along)
    for key in tensors[1:]:
        order = take_along(order, argsort(take_along(key, order, along), along), along)
    return order


def put_along_axis(x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None) -> Tensor:
    """A copy of x with values at integer indices along an axis, matched along the other axes; differentiable.

    It is numpy's function for immutable tensors: the result is returned, and x stays as it is.

    Args:
        indices: a tensor of ints with as many axes as x; the other sizes broadcast.
        values: a number or a tensor whose shape broadcasts to that of the indices.
        axis: the axis; None means the flattened x.

    Raises:
        DTypeError: if the indices are not ints.
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> x = tk.tensor([[3.0, 1.0], [4.0, 6.0]])
    >>> tk.put_along_axis(x, x.argmax(1, keepdims=True), 0.0, 1).tolist()
    [[0.0, 1.0], [4.0, 0.0]]
    """
    return _changed_along("put_along_axis", x, indices, values, axis, "set")


REDUCTIONS = ("set", "add", "multiply", "min", "max")
"""The methods of `x.at[...]` that `scatter` applies."""


def scatter(
    x: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None, reduction: str = "set"
) -> Tensor:
    """`put_along_axis` that combines the values with the elements of x, and with each other; differentiable.

    Args:
        indices: a tensor of ints with as many axes as x; the other sizes broadcast.
        values: a number or a tensor whose shape broadcasts to that of the indices.
        axis: the axis; None means the flattened x.
        reduction: `"add"`, `"multiply"`, `"min"` or `"max"`, which apply all values for one place; or `"set"`, of which
            the last one remains.

    Raises:
        ArgumentError: if the reduction is unknown.
        DTypeError: if the indices are not ints.
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.scatter(tk.zeros(3), [0, 2, 0], [1.0, 2.0, 3.0], 0, "add").tolist()
    [4.0, 0.0, 2.0]
    """
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"scatter: reduction must be one of {', '.join(REDUCTIONS)}, got {short_repr(reduction)}"
        )
    return _changed_along("scatter", x, indices, values, axis, reduction)


def _changed_along(name: str, x: Any, indices: Any, values: Any, axis: int | None, method: str) -> Tensor:
    """x changed by a method of `x.at[...]` at indices along an axis, matched along the other axes."""
    y = as_tensor(x)
    if axis is None:
        return _changed_along(name, y.ravel(), indices, values, 0, method).reshape(y.shape)
    index = indices_like(name, indices, y)
    along = axis_of(name, y.shape, axis)
    if index.dtype.kind != "int":
        raise DTypeError(f"{name}: indices must be int32 or int64, got {index.dtype}; cast them (x.astype)")
    if index.ndim != y.ndim:
        raise ShapeError(f"{name}: indices need as many axes as x, got shapes {index.shape} and {y.shape}")
    index = checked(name, index, along, y.shape)
    shape = tuple([m if i == along else n for i, (n, m) in enumerate(zip(y.shape, index.shape, strict=True))])
    try:
        index = index.broadcast_to(shape)
        new = as_operand(name, values, y).astype(y.dtype).broadcast_to(shape)
    except ShapeError as error:
        raise ShapeError(f"{name}: {error}") from None
    key = tuple([index if i == along else iota(index, i) for i in range(y.ndim)])
    changed: Tensor = getattr(y.at[key], method)(new)
    return changed


def put(x: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str = "raise") -> Tensor:
    """A copy of x with values at indices of the flattened x; differentiable.

    It is numpy's function for immutable tensors: the result is returned, and x stays as it is.

    Args:
        ind: ints; negative ones count from the end.
        v: the values, repeated in order as often as needed.
        mode: for an index out of range "raise" an error, "wrap" it by a remainder, or "clip" it, also negative ones.

    Raises:
        ArgumentError: if the mode is another one.
        DTypeError: if the indices are not ints.
        IndexingError: if an index is out of range.

    >>> import tensorken as tk
    >>> tk.put(tk.zeros((2, 2)), [0, 3], [7.0, 8.0]).tolist()
    [[7.0, 0.0], [0.0, 8.0]]
    """
    y = as_tensor(x)
    index = indices_like("put", ind, y).ravel()
    if index.size == 0:
        return y
    if mode == "raise":
        index = checked("put", index, 0, (y.size,))
    else:
        index = within("put", index, y.size, mode)
    values = resize(as_operand("put", v, y).astype(y.dtype), index.size)
    return y.ravel().at[index].set(values).reshape(y.shape)


def place(x: ArrayLike, mask: ArrayLike, vals: ArrayLike) -> Tensor:
    """A copy of x with values where a mask is true: the first of them at the first true element, and so on.

    It is numpy's function for immutable tensors: the result is returned, and x stays as it is.

    Args:
        mask: bools in the shape of x.
        vals: the values, repeated in order as often as needed.

    Raises:
        ShapeError: if the mask has another size than x, or there are no values.

    >>> import tensorken as tk
    >>> tk.place([1, 2, 3, 4], [True, False, True, True], [7, 8]).tolist()
    [7, 2, 8, 7]
    """
    y = as_tensor(x)
    chosen = as_operand("place", mask, y).astype(bool_).ravel()
    values = as_operand("place", vals, y).astype(y.dtype).ravel()
    if chosen.size != y.size or (values.size == 0 and y.size):
        raise ShapeError(
            f"place: need a mask of {y.size} elements and at least one value, got {chosen.size} and {values.size}"
        )
    if y.size == 0:
        return y
    number = (chosen.astype(int32).cumsum(0) - 1).maximum(0)
    return chosen.where(values.gather(number % values.size, 0), y.ravel()).reshape(y.shape)
