"""The shape, size and number of axes of anything that can become a tensor.

Raises:
    AxisError: if an axis is out of range.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.logic import array_equal
from tensorken_core.errors import ShapeError
from tensorken_core.language.shapes import Shape, broadcast
from tensorken_core.tensor.normalization import axes_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["array_equiv", "copy", "isscalar", "iterable", "ndim", "shape", "size"]


def shape(x: ArrayLike) -> Shape:
    """The shape of x.

    >>> import tensorken as tk
    >>> tk.shape([[1, 2, 3]])
    (1, 3)
    """
    return as_tensor(x).shape


def ndim(x: ArrayLike) -> int:
    """The number of axes of x.

    >>> import tensorken as tk
    >>> tk.ndim([[1, 2, 3]])
    2
    """
    return as_tensor(x).ndim


def size(x: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of x along axes, all by default.

    >>> import tensorken as tk
    >>> tk.size([[1, 2, 3]]), tk.size([[1, 2, 3]], 0)
    (3, 1)
    """
    sizes = as_tensor(x).shape
    return math.prod([sizes[i] for i in axes_of("size", sizes, axis)])


def isscalar(element: Any) -> bool:
    """Whether an object is a single number or string, or a tensor without axes.

    >>> import tensorken as tk
    >>> tk.isscalar(3.1), tk.isscalar([3.1])
    (True, False)
    """
    if isinstance(element, Tensor):
        return element.ndim == 0
    return isinstance(element, numbers.Number | str | bytes)


def iterable(y: Any) -> bool:
    """Whether an object can be iterated over.

    >>> import tensorken as tk
    >>> tk.iterable([1, 2]), tk.iterable(2)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def copy(x: ArrayLike) -> Tensor:
    """x as a tensor: tensors are immutable, so a copy would make no difference.

    >>> import tensorken as tk
    >>> tk.copy([1, 2]).tolist()
    [1, 2]
    """
    return as_tensor(x)


def array_equiv(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether two tensors broadcast to one shape and then have equal elements, as a bool tensor of shape ().

    >>> import tensorken as tk
    >>> tk.array_equiv([1, 2], [[1, 2], [1, 2]]).item()
    True
    """
    x, y = as_tensor(a), as_tensor(b)
    try:
        common = broadcast(x.shape, y.shape)
    except ShapeError:
        return array_equal(0, 1)
    return array_equal(x.broadcast_to(common), y.broadcast_to(common))
