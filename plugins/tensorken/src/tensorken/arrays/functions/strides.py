"""Selection of elements by strides: windows, diagonals and other regular patterns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorken.array_like import ArrayLike
from tensorken_core.errors import IndexingError, ShapeError
from tensorken_core.language.bodies.arrangement import multiples
from tensorken_core.language.dtypes import position_dtype
from tensorken_core.tensor.normalization import sizes_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["as_strided"]


def as_strided(
    x: ArrayLike, shape: int | Sequence[int], strides: int | Sequence[int], offset: int = 0
) -> Tensor:
    """A strided selection of x: element (i, j, ...) is the flat element offset + i * stride0 + j * stride1 + ...

    Unlike numpy's `as_strided`, strides and offset count elements of x in row-major order, not bytes; elements outside
    of x are an error; and the result is a copy.  Elements may repeat; their derivatives are added.

    Args:
        shape: the shape of the result.
        strides: an int for each axis of the result, its step in elements of x.
        offset: the flat index of element (0, 0, ...).

    Raises:
        ShapeError: if shape and strides differ in length, or a size is negative.
        IndexingError: if an index is outside of x.

    >>> import tensorken as tk
    >>> tk.as_strided(tk.tensor([1, 2, 3, 4]), (3, 2), (1, 1)).tolist()
    [[1, 2], [2, 3], [3, 4]]
    >>> tk.as_strided(tk.tensor([[1, 2], [3, 4]]), 2, -3, 3).tolist()
    [4, 1]
    """
    flat = as_tensor(x).ravel()
    sizes, steps = sizes_of("as_strided", (shape,)), sizes_of("as_strided", (strides,))
    (start,) = sizes_of("as_strided", (offset,))
    if len(sizes) != len(steps) or min(sizes, default=0) < 0:
        raise ShapeError(
            f"as_strided: need a size of at least 0 and a stride for each axis, got shape {sizes} and strides {steps}"
        )
    if 0 in sizes:
        return flat.crop(((0, 0),)).reshape(sizes)
    spans = [step * (size - 1) for size, step in zip(sizes, steps, strict=True)]
    low, high = start + sum([r for r in spans if r < 0]), start + sum([r for r in spans if r > 0])
    if low < 0 or high >= flat.size:
        raise IndexingError(
            f"as_strided: shape {sizes} with strides {steps} from {start} spans elements {low} to {high}, "
            f"but there are {flat.size} elements; make the shape, the strides or the offset smaller"
        )
    dtype = position_dtype(flat.size)
    indices = flat.constant([start], dtype, (1,))
    for size, step in zip(sizes, steps, strict=True):
        along = flat.constant(multiples(step, size), dtype, (size,))
        indices = indices.reshape((indices.size, 1)) + along
    return flat.gather(indices.reshape((math.prod(sizes),)), 0).reshape(sizes)
