"""Broadcasting, and axes of size 1 added up to a minimum number of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import as_tensors
from tensorken_core.errors import ShapeError
from tensorken_core.language.shapes import Shape, broadcast
from tensorken_core.tensor.normalization import sizes_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
]


def broadcast_to(x: ArrayLike, shape: int | Sequence[int]) -> Tensor:
    """x broadcast to a shape, by numpy's rules.

    Raises:
        ShapeError: if a size of x, compared from the last axis backwards, is neither 1 nor the size in the shape.

    >>> import tensorken as tk
    >>> tk.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return as_tensor(x).broadcast_to(sizes_of("broadcast_to", (shape,)))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Shape:
    """The shape to which all shapes broadcast, by numpy's rules.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> import tensorken as tk
    >>> tk.broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    return _common("broadcast_shapes", [sizes_of("broadcast_shapes", (shape,)) for shape in shapes])


def broadcast_arrays(*tensors: ArrayLike) -> tuple[Tensor, ...]:
    """Tensors broadcast to their common shape; each keeps its dtype.

    Raises:
        ShapeError: if the shapes do not broadcast.

    >>> import tensorken as tk
    >>> a, b = tk.broadcast_arrays([[1], [2]], [3.0, 4.0])
    >>> a.tolist(), b.tolist()
    ([[1, 1], [2, 2]], [[3.0, 4.0], [3.0, 4.0]])
    """
    if not tensors:
        return ()
    xs = as_tensors("broadcast_arrays", tensors)
    shape = _common("broadcast_arrays", [x.shape for x in xs])
    return tuple([x.broadcast_to(shape) for x in xs])


def atleast_1d(*tensors: ArrayLike) -> Any:
    """The tensor with at least one axis, or a list for several tensors.

    >>> import tensorken as tk
    >>> tk.atleast_1d(3.0).shape
    (1,)
    """
    return _each(tensors, lambda x: x.reshape((1,)) if x.ndim == 0 else x)


def atleast_2d(*tensors: ArrayLike) -> Any:
    """The tensor with leading axes of size 1 up to two axes, or a list for several tensors.

    >>> import tensorken as tk
    >>> tk.atleast_2d([1.0, 2.0]).shape
    (1, 2)
    """
    return _each(tensors, lambda x: x.reshape((1,) * (2 - x.ndim) + x.shape))


def atleast_3d(*tensors: ArrayLike) -> Any:
    """The tensor with axes of size 1 added up to three axes, as in numpy, or a list for several tensors.

    A vector of size n becomes (1, n, 1), an m × n matrix (m, n, 1).

    >>> import tensorken as tk
    >>> tk.atleast_3d([1.0, 2.0]).shape
    (1, 2, 1)
    """

    def with_three_axes(x: Tensor) -> Tensor:
        matrix = x if x.ndim > 1 else x.reshape((1, x.size))
        return matrix if matrix.ndim > 2 else matrix.reshape((*matrix.shape, 1))

    return _each(tensors, with_three_axes)


# ---- shared code -------------------------------------------------------------------------------------------


def _common(name: str, shapes: Sequence[Shape]) -> Shape:
    common: Shape = ()
    for shape in shapes:
        if min(shape, default=0) < 0:
            raise ShapeError(f"{name}: sizes must not be negative, got {shape}; give each axis at least 0")
        try:
            common = broadcast(common, shape)
        except ShapeError as error:
            raise ShapeError(f"{name}: {error}") from None
    return common


def _each(tensors: Sequence[Any], change: Any) -> Any:
    results = [change(as_tensor(x)) for x in tensors]
    return results[0] if len(results) == 1 else results
