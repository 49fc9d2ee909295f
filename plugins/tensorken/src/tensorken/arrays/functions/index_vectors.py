"""Indices of parts of tensors, and conversion between flat and multidimensional indices.

Indices are int32 if the sizes allow.  They are constants, also in programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import shape_of
from tensorken.arrays.functions.choices import within
from tensorken.arrays.functions.constants import ones
from tensorken.arrays.functions.diagonals import tri
from tensorken.arrays.functions.operands import as_tensors
from tensorken.arrays.functions.ranges import arange
from tensorken.arrays.functions.searching import nonzero
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import bool_, int32, position_dtype
from tensorken_core.language.shapes import Shape, short_repr
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "ix_",
    "mask_indices",
    "ravel_multi_index",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]

# ---- triangles and diagonals -------------------------------------------------------------------------------


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The rows and columns of the elements on and below the k-th diagonal of an n × m matrix (m = n by default).

    Raises:
        ShapeError: if a size is negative.

    >>> import tensorken as tk
    >>> [i.tolist() for i in tk.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return nonzero(tri(n, m, k, bool_))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The rows and columns of the elements on and above the k-th diagonal of an n × m matrix (m = n by default).

    Raises:
        ShapeError: if a size is negative.

    >>> import tensorken as tk
    >>> [i.tolist() for i in tk.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(~tri(n, m, k - 1, bool_))


def tril_indices_from(x: ArrayLike, k: int = 0) -> tuple[Tensor, ...]:
    """The rows and columns of the elements on and below the k-th diagonal of a matrix; see `tril_indices`.

    Raises:
        ShapeError: if x does not have two axes.

    >>> import tensorken as tk
    >>> x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x[tk.tril_indices_from(x)].tolist()
    [1.0, 3.0, 4.0]
    """
    n, m = _matrix_shape("tril_indices_from", x)
    return tril_indices(n, k, m)


def triu_indices_from(x: ArrayLike, k: int = 0) -> tuple[Tensor, ...]:
    """The rows and columns of the elements on and above the k-th diagonal of a matrix; see `triu_indices`.

    Raises:
        ShapeError: if x does not have two axes.

    >>> import tensorken as tk
    >>> x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x[tk.triu_indices_from(x, 1)].tolist()
    [2.0]
    """
    n, m = _matrix_shape("triu_indices_from", x)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor with `ndim` axes of size n: an equal vector for each axis.

    Raises:
        ShapeError: if n is negative.

    >>> import tensorken as tk
    >>> [i.tolist() for i in tk.diag_indices(3)]
    [[0, 1, 2], [0, 1, 2]]
    """
    shape_of("diag_indices", n)
    return (arange(n),) * ndim


def diag_indices_from(x: ArrayLike) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor with at least two axes, all of one size; see `diag_indices`.

    Raises:
        ShapeError: if there are fewer axes, or the sizes differ.

    >>> import tensorken as tk
    >>> x = tk.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x[tk.diag_indices_from(x)].tolist()
    [1.0, 4.0]
    """
    shape = as_tensor(x).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ShapeError(f"diag_indices_from: need at least 2 axes of one size, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Tensor, ...]:
    """The rows and columns of the nonzero elements of mask_func(ones, k), with an n × n matrix of ones.

    Raises:
        ShapeError: if n is negative.

    >>> import tensorken as tk
    >>> [i.tolist() for i in tk.mask_indices(2, tk.triu, 1)]
    [[0], [1]]
    """
    return nonzero(mask_func(ones((n, n), int32), k))


def _matrix_shape(name: str, x: Any) -> Shape:
    shape: Shape = as_tensor(x).shape
    if len(shape) != 2:
        raise ShapeError(f"{name}: need a matrix, got shape {shape}; index one of its matrices first")
    return shape


# ---- grids and flat indices --------------------------------------------------------------------------------


def ix_(*vectors: ArrayLike) -> tuple[Tensor, ...]:
    """Index vectors reshaped so that x[ix_(a, b)] has the element x[a[i], b[j]] at (i, j); bools mean `nonzero`.

    Raises:
        ShapeError: if an argument does not have exactly one axis.
        ConcretizationError: if bools are not known, as under vmap.

    >>> import tensorken as tk
    >>> tk.arange(12).reshape(3, 4)[tk.ix_([0, 2], [1, 3])].tolist()
    [[1, 3], [9, 11]]
    """
    results = []
    for i, x in enumerate(as_tensors("ix_", vectors) if vectors else []):
        if x.ndim != 1:
            raise ShapeError(f"ix_: each argument must be a vector, got shape {x.shape}")
        index = nonzero(x)[0] if x.dtype is bool_ else x.astype(int32) if x.size == 0 else x
        results.append(index.reshape(tuple([index.size if j == i else 1 for j in range(len(vectors))])))
    return tuple(results)


def unravel_index(indices: ArrayLike, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """Flat indices converted to an index for each axis of a shape.

    Args:
        indices: ints from 0 to the number of elements, exclusive.
        order: "C" for row-major order, "F" for column-major order.

    Raises:
        ArgumentError: if the order is another one.
        DTypeError: if the indices are not ints.
        IndexingError: if an index is out of range; where the values are not known, it is clipped.

    >>> import tensorken as tk
    >>> [i.tolist() for i in tk.unravel_index([5, 1], (2, 3))]
    [[1, 0], [2, 1]]
    """
    sizes = shape_of("unravel_index", shape)
    steps = _steps("unravel_index", sizes, order)
    flat = as_tensor(indices)
    if flat.size:
        flat = within("unravel_index", flat, math.prod(sizes), "raise")
    return tuple([flat // step % size for step, size in zip(steps, sizes, strict=True)])


def ravel_multi_index(multi_index: ArrayLike, dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """An index for each axis of a shape converted to flat indices; the index tensors broadcast.

    Args:
        mode: for an index out of range "raise" an error, "wrap" it, or "clip" it; one mode, or one for each axis.
        order: "C" for row-major order, "F" for column-major order.

    Raises:
        ArgumentError: if the mode or the order is another one, or there is not one index for each axis.
        DTypeError: if the indices are not ints.
        IndexingError: if an index is out of range; where the values are not known, it is clipped.
        ShapeError: if the shapes do not broadcast.

    >>> import tensorken as tk
    >>> tk.ravel_multi_index([[1, 0], [2, 1]], (2, 3)).tolist()
    [5, 1]
    """
    sizes = shape_of("ravel_multi_index", dims)
    given = as_tensors("ravel_multi_index", multi_index)
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    if not len(given) == len(sizes) == len(modes):
        raise ArgumentError(
            f"ravel_multi_index: need an index and a mode for each axis of {sizes}, got {len(given)} and {len(modes)}"
        )
    wide = position_dtype(math.prod(sizes))
    flat: Any = 0
    for x, size, step, how in zip(
        given, sizes, _steps("ravel_multi_index", sizes, order), modes, strict=True
    ):
        index = within("ravel_multi_index", x, size, how)
        flat = (index.astype(wide) if index.dtype is int32 else index) * step + flat
    result: Tensor = flat
    return result


def _steps(name: str, sizes: Shape, order: str) -> list[int]:
    """The distance in the flattened tensor between neighbours along each axis."""
    if order not in ("C", "F"):
        raise ArgumentError(f"{name}: order must be 'C' or 'F', got {short_repr(order)}")
    if order == "C":
        return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return [math.prod(sizes[:i]) for i in range(len(sizes))]
