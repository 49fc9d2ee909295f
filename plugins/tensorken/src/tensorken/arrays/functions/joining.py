"""Joining and splitting of tensors.

Raises:
    ShapeError: if sizes differ that must be equal, or a tensor cannot be split into equal parts.
    AxisError: if there is no such axis.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arguments import with_numpys_names
from tensorken.arrays.functions.broadcasting import atleast_1d, atleast_2d, atleast_3d
from tensorken.arrays.functions.operands import promoted_tensors
from tensorken.arrays.functions.shaping import expand_dims
from tensorken_core.errors import ArgumentError, ConcretizationError, ShapeError
from tensorken_core.language.bodies.arrangement import slice_along
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.normalization import axis_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "array_split",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "split",
    "stack",
    "unstack",
    "vsplit",
    "vstack",
]

# ---- joining -----------------------------------------------------------------------------------------------


@with_numpys_names
def concatenate(tensors: Iterable[ArrayLike], axis: int | None = 0, dtype: Any = None) -> Tensor:
    """Tensors concatenated along an axis; their other sizes are equal.

    Args:
        tensors: at least one; they are promoted to one dtype.
        axis: the axis along which to join; None joins the flattened tensors.
        dtype: the dtype of the result, by default the promoted dtype.

    Raises:
        ShapeError: if the other sizes differ.
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> tk.concatenate([tk.tensor([1.0]), tk.tensor([2.0, 3.0])]).tolist()
    [1.0, 2.0, 3.0]
    """
    return _joined("concatenate", promoted_tensors("concatenate", tensors), axis, dtype)


def concat(tensors: Iterable[ArrayLike], axis: int | None = 0) -> Tensor:
    """`tk.concatenate` under its name in the array API standard.

    Raises:
        ShapeError: if sizes along the other axes differ.
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> tk.concat([[[1, 2]], [[3, 4]]], axis=None).tolist()
    [1, 2, 3, 4]
    """
    return _joined("concat", promoted_tensors("concat", tensors), axis)


@with_numpys_names
def stack(tensors: Iterable[ArrayLike], axis: int = 0, dtype: Any = None) -> Tensor:
    """Tensors of one shape stacked along a new axis.

    Raises:
        ShapeError: if the shapes differ.
        AxisError: if the axis is out of range for the result.

    >>> import tensorken as tk
    >>> tk.stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    pieces = promoted_tensors("stack", tensors)
    for piece in pieces:
        if piece.shape != pieces[0].shape:
            raise ShapeError(
                f"stack: tensors need one shape, got {pieces[0].shape} and {piece.shape}; reshape one"
            )
    _check_one_list("stack", axis)
    new_axis = axis_of("stack", (*pieces[0].shape, 1), axis)
    return _joined("stack", [expand_dims(piece, new_axis) for piece in pieces], new_axis, dtype)


def hstack(tensors: Iterable[ArrayLike], dtype: Any = None) -> Tensor:
    """Tensors concatenated along axis 1; vectors and numbers along axis 0.

    Raises:
        ShapeError: if the other sizes differ.

    >>> import tensorken as tk
    >>> tk.hstack([[[1], [2]], [[3], [4]]]).tolist()
    [[1, 3], [2, 4]]
    """
    _check_one_list("hstack", dtype)
    pieces = [atleast_1d(x) for x in promoted_tensors("hstack", tensors)]
    return _joined("hstack", pieces, 0 if pieces[0].ndim == 1 else 1, dtype)


def vstack(tensors: Iterable[ArrayLike], dtype: Any = None) -> Tensor:
    """Tensors concatenated along axis 0; a vector is a row.

    Raises:
        ShapeError: if the other sizes differ.

    >>> import tensorken as tk
    >>> tk.vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    _check_one_list("vstack", dtype)
    return _joined("vstack", [atleast_2d(x) for x in promoted_tensors("vstack", tensors)], 0, dtype)


def dstack(tensors: Iterable[ArrayLike]) -> Tensor:
    """Tensors concatenated along axis 2, after `tk.atleast_3d`.

    Raises:
        ShapeError: if the other sizes differ.

    >>> import tensorken as tk
    >>> tk.dstack([[1, 2], [3, 4]]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return _joined("dstack", [atleast_3d(x) for x in promoted_tensors("dstack", tensors)], 2)


def column_stack(tensors: Iterable[ArrayLike]) -> Tensor:
    """Tensors concatenated along axis 1; a vector is a column.

    Raises:
        ShapeError: if the other sizes differ.

    >>> import tensorken as tk
    >>> tk.column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    pieces = promoted_tensors("column_stack", tensors)
    return _joined("column_stack", [x if x.ndim > 1 else x.reshape((x.size, 1)) for x in pieces], 1)


# ---- splitting ---------------------------------------------------------------------------------------------


@with_numpys_names
def split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """The tensor split along an axis into equal parts, or at given indices.

    Args:
        x: the tensor.
        indices_or_sections: the number of parts, or the indices at which a new part begins.
        axis: the axis along which to split.

    Raises:
        ShapeError: if the size is not a multiple of the number of parts; `tk.array_split` takes any size.
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    return _split("split", x, indices_or_sections, axis, equal=True)


def array_split(x: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """`tk.split` into nearly equal parts: the first parts may be longer by one.

    Raises:
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    return _split("array_split", x, indices_or_sections, axis, equal=False)


def hsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """`tk.split` along axis 1, or along axis 0 for a vector.

    Raises:
        ShapeError: if the size is not a multiple of the number of parts.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.hsplit([[1, 2], [3, 4]], 2)]
    [[[1], [3]], [[2], [4]]]
    """
    x = as_tensor(x)
    return _split("hsplit", x, indices_or_sections, 1 if x.ndim > 1 else 0, equal=True)


def vsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """`tk.split` along axis 0 of a tensor of at least two axes.

    Raises:
        ShapeError: if x has fewer axes, or the size is not a multiple of the number of parts.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    x = as_tensor(x)
    if x.ndim < 2:
        raise ShapeError(f"vsplit: need at least 2 axes, got shape {x.shape}; use tk.split")
    return _split("vsplit", x, indices_or_sections, 0, equal=True)


def dsplit(x: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """`tk.split` along axis 2 of a tensor of at least three axes.

    Raises:
        ShapeError: if x has fewer axes, or the size is not a multiple of the number of parts.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.dsplit([[[1, 2], [3, 4]]], 2)]
    [[[[1], [3]]], [[[2], [4]]]]
    """
    x = as_tensor(x)
    if x.ndim < 3:
        raise ShapeError(f"dsplit: need at least 3 axes, got shape {x.shape}; use tk.split")
    return _split("dsplit", x, indices_or_sections, 2, equal=True)


@with_numpys_names
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis: the inverse of `tk.stack`.

    Raises:
        AxisError: if there is no such axis.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.unstack([[1, 2], [3, 4]], axis=1)]
    [[1, 3], [2, 4]]
    """
    x = as_tensor(x)
    along = axis_of("unstack", x.shape, axis)
    shape = x.shape[:along] + x.shape[along + 1 :]
    return tuple([slice_along(x, along, i, i + 1).reshape(shape) for i in range(x.shape[along])])


# ---- shared code -------------------------------------------------------------------------------------------


def _joined(name: str, pieces: list[Tensor], axis: int | None, dtype: Any = None) -> Tensor:
    _check_one_list(name, axis)
    if axis is None:
        pieces, axis = [x.reshape((x.size,)) for x in pieces], 0
    along = axis_of(name, pieces[0].shape, axis)
    if dtype is not None:
        pieces = [x.astype(dtype) for x in pieces]
    if len(pieces) == 1:
        return pieces[0]
    try:
        result: Tensor = apply(OPS["concatenate"], pieces, (along,))
    except ShapeError as error:
        raise ShapeError(f"{name}: {str(error).removeprefix('concatenate: ')}") from None
    return result


def _check_one_list(name: str, second: Any) -> None:
    """Raise if the second argument is a tensor or a list, since the tensors were then not passed in one list."""
    if (isinstance(second, Tensor) and second.shape) or isinstance(second, list | tuple):
        raise ArgumentError(f"{name}: pass the tensors as one list: {name}([a, b])")


def _split(name: str, x: Any, indices_or_sections: Any, axis: int, equal: bool) -> list[Tensor]:
    x = as_tensor(x)
    along = axis_of(name, x.shape, axis)
    n = x.shape[along]
    if hasattr(indices_or_sections, "__index__") and not getattr(indices_or_sections, "shape", ()):
        count = operator.index(indices_or_sections)
        if count < 1:
            raise ArgumentError(
                f"{name}: need at least 1 part, got {count}; give a number of parts, or indices"
            )
        if equal and n % count:
            raise ShapeError(
                f"{name}: axis {along} of shape {x.shape} has size {n}, which is not a multiple of {count}; "
                f"use tk.array_split"
            )
        longer = n % count
        starts = [i * (n // count) + min(i, longer) for i in range(count + 1)]
        limits = list(pairwise(starts))
    else:
        try:
            indices = [operator.index(i) for i in indices_or_sections]
        except ConcretizationError as error:
            raise error.at(name) from None
        except TypeError:
            raise ArgumentError(
                f"{name}: need a number of parts or a sequence of int indices, got {short_repr(indices_or_sections)}"
            ) from None
        slices = [slice(*ends).indices(n) for ends in zip([0, *indices], [*indices, n], strict=True)]
        limits = [(start, max(start, stop)) for start, stop, _ in slices]
    return [slice_along(x, along, start, stop) for start, stop in limits]
