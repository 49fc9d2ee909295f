"""Unions, intersections and differences of sets of values.

The size of the result depends on the values, so they must be known.

Raises:
    ConcretizationError: if the values are not known, as under vmap: the shape of the result depends on them.
"""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.joining import concatenate
from tensorken.arrays.functions.operands import promoted_tensors
from tensorken.arrays.functions.searching import nonzero_indices
from tensorken.arrays.functions.sets import isin, unique
from tensorken.arrays.functions.shaping import take
from tensorken.arrays.functions.sorting import argsort, sort
from tensorken_core.tensor.tensor import Tensor

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d"]


def union1d(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The unique values that are in a or in b, in ascending order.

    >>> import tensorken as tk
    >>> tk.union1d([3, 1], [1, 2]).tolist()
    [1, 2, 3]
    """
    values: Tensor = unique(concatenate((a, b), None))
    return values


def intersect1d(a: ArrayLike, b: ArrayLike, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The unique values that are both in a and in b, in ascending order.

    Args:
        assume_unique: whether the values of a and those of b are known to be unique.
        return_indices: whether to return a tuple with the int32 indices of the first occurrences in the flattened a
            and b, too.

    >>> import tensorken as tk
    >>> tk.intersect1d([3, 1, 3], [1, 3, 2]).tolist()
    [1, 3]
    """
    x, y = [z.ravel() for z in promoted_tensors("intersect1d", (a, b))]
    firsts: list[Any] = [None, None]
    if not assume_unique:
        (x, first), (y, second) = unique(x, return_index=True), unique(y, return_index=True)
        firsts = [first, second]
    both = concatenate((x, y))
    order = argsort(both)
    ordered = both.gather(order, 0)
    n = both.size
    same = ordered.crop(((0, max(n - 1, 0)),)).eq(ordered.crop(((min(n, 1), n),)))
    chosen = nonzero_indices("intersect1d", same)
    values = ordered.gather(chosen, 0)
    if not return_indices:
        return values
    indices = [order.gather(chosen, 0), order.gather(chosen + 1, 0) - x.size]
    return (
        values,
        *[i if first is None else first.gather(i, 0) for i, first in zip(indices, firsts, strict=True)],
    )


def setdiff1d(a: ArrayLike, b: ArrayLike, assume_unique: bool = False) -> Tensor:
    """The unique values that are in a and not in b, in ascending order; with `assume_unique` in the order of a.

    >>> import tensorken as tk
    >>> tk.setdiff1d([4, 3, 1, 4], [1, 2]).tolist()
    [3, 4]
    """
    x, y = promoted_tensors("setdiff1d", (a, b))
    x = x.ravel() if assume_unique else unique(x)
    return take(x, nonzero_indices("setdiff1d", isin(x, y, invert=True)), 0)


def setxor1d(a: ArrayLike, b: ArrayLike, assume_unique: bool = False) -> Tensor:
    """The unique values that are in exactly one of a and b, in ascending order.

    >>> import tensorken as tk
    >>> tk.setxor1d([3, 1], [1, 2]).tolist()
    [2, 3]
    """
    x, y = [z.ravel() if assume_unique else unique(z) for z in promoted_tensors("setxor1d", (a, b))]
    ordered = sort(concatenate((x, y)))
    n = ordered.size
    differs = ordered.crop(((0, max(n - 1, 0)),)) != ordered.crop(((min(n, 1), n),))
    end = differs.constant([True] * min(n, 1), differs.dtype, (min(n, 1),))
    alone = end.concatenate(differs, axis=0) & differs.concatenate(end, axis=0)
    return take(ordered, nonzero_indices("setxor1d", alone), 0)
