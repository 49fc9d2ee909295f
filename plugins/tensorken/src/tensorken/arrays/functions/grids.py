"""Coordinate grids, functions of indices, one-hot vectors, Vandermonde matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import ShapeLike, shape_of, tensor
from tensorken.arrays.functions.joining import stack
from tensorken.arrays.functions.operands import as_tensors
from tensorken.arrays.functions.ranges import arange
from tensorken.arrays.functions.shaping import expand_dims
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.bodies.arrangement import iota
from tensorken_core.language.dtypes import float32, int32, promote
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "fromfunction",
    "indices",
    "meshgrid",
    "one_hot",
    "vander",
]


def meshgrid(*vectors: ArrayLike, indexing: str = "xy", sparse: bool = False) -> tuple[Tensor, ...]:
    """Coordinate tensors of a grid: one for each vector, with the elements of the vector along one axis.

    Args:
        vectors: the coordinates along each axis.
        indexing: with `"ij"` the first vector varies along axis 0; with `"xy"` along axis 1, the second along axis 0.
        sparse: whether to keep size 1 along the other axes.

    Raises:
        ArgumentError: if `indexing` is neither "ij" nor "xy".

    >>> import tensorken as tk
    >>> [x.tolist() for x in tk.meshgrid([1, 2, 3], [4, 5])]
    [[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {short_repr(indexing)}")
    if not vectors:
        return ()
    xs, rank = as_tensors("meshgrid", vectors), len(vectors)
    axes = list(range(rank))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    shape = [1] * rank
    for x, axis in zip(xs, axes, strict=True):
        shape[axis] = x.size
    grids = [
        x.reshape(tuple([x.size if i == axis else 1 for i in range(rank)]))
        for x, axis in zip(xs, axes, strict=True)
    ]
    return tuple(grids if sparse else [x.expand(tuple(shape)) for x in grids])


def indices(
    dimensions: ShapeLike,
    dtype: Any = int32,
    sparse: bool = False,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Any:
    """The indices of all elements of a shape: a tensor for each axis, stacked along a new first axis.

    With `sparse=True` the result is a tuple of tensors with size 1 along the other axes.

    Raises:
        ShapeError: if a size is negative.

    >>> import tensorken as tk
    >>> tk.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    sizes = shape_of("indices", dimensions)
    if not sizes:
        return () if sparse else tensor([], dtype, backend=backend, device=device)
    ranges = [arange(n, dtype=dtype, backend=backend, device=device) for n in sizes]
    grids = meshgrid(*ranges, indexing="ij", sparse=sparse)
    return tuple(grids) if sparse else stack(grids)


def fromfunction(
    function: Callable[..., Any],
    shape: ShapeLike,
    dtype: Any = float32,
    *,
    backend: Any = None,
    device: str | None = None,
) -> Any:
    """The result of calling a function with the indices of all elements of a shape, one tensor for each axis.

    Raises:
        ShapeError: if a size is negative.

    >>> import tensorken as tk
    >>> tk.fromfunction(lambda i, j: 10 * i + j, (2, 2), "int32").tolist()
    [[0, 1], [10, 11]]
    """
    sizes = shape_of("fromfunction", shape)
    ranges = [arange(n, dtype=dtype, backend=backend, device=device) for n in sizes]
    return function(*meshgrid(*ranges, indexing="ij"))


def one_hot(x: ArrayLike, num_classes: int, dtype: Any = float32, axis: int = -1) -> Tensor:
    """One-hot vectors: for each integer, 1 at that index and 0 elsewhere; all 0 for integers outside [0, num_classes).

    Args:
        x: integers.
        num_classes: the size of the vectors.
        dtype: the dtype of the result.
        axis: the axis of the result along which the vectors lie.

    Raises:
        DTypeError: if x has no integer dtype.

    >>> import tensorken as tk
    >>> tk.one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    x = as_tensor(x)
    if x.dtype.kind != "int":
        raise DTypeError(f"one_hot: need integers, got {x.dtype}; cast first (x.astype)")
    x = x.in_index_dtype()
    (size,) = shape_of("one_hot", num_classes)
    new_axis = axis_of("one_hot", (*x.shape, size), axis)
    column = expand_dims(x, new_axis)
    shape = (*x.shape[:new_axis], size, *x.shape[new_axis:])
    numbers = iota(column.expand(shape), new_axis).astype(x.dtype)
    return (column.eq(numbers)).astype(dtype)


def vander(x: ArrayLike, n: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: its powers as columns, the highest power first.

    Args:
        x: a vector.
        n: the number of powers, starting at power 0; by default the number of elements.
        increasing: whether the highest power comes last.

    Returns:
        The powers in the dtype of x; in int32 at least for bools and integers, as in numpy in its default integer.

    Raises:
        ShapeError: if x does not have exactly one axis.

    >>> import tensorken as tk
    >>> tk.vander([1, 2, 3], increasing=True).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    old = as_tensor(x)
    if not old.dtype.inexact:
        old = old.astype(promote(old.dtype, int32))
    if old.ndim != 1:
        raise ShapeError(f"vander: need one axis, got shape {old.shape}; flatten it first")
    (count,) = shape_of("vander", old.size if n is None else n)
    if count == 0:
        return old.reshape((old.size, 1)).crop(((0, old.size), (0, 0)))
    powers = [old.ones_like()]
    while len(powers) < count:
        powers.append(powers[-1] * old)
    return stack(powers if increasing else powers[::-1], 1)
