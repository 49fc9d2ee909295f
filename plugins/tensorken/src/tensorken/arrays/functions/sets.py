"""Set functions: unique values with their indices and counts, membership.

The number of unique values depends on the values, so the values must be known; under vmap the functions raise a
ConcretizationError.  The unique values are gathered from x, so they are differentiable.

Raises:
    ConcretizationError: if the values are not known, and the shape of the result depends on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import first_tensor
from tensorken.arrays.functions.searching import insertion_points, nonzero_indices
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "isin",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: ArrayLike) -> UniqueAll:
    """The unique values of x in ascending order, with their first indices, inverse indices and counts.

    Each NaN is a separate value; 0.0 and -0.0 are one value.

    Returns:
        A named tuple of `values` (a vector), `indices` (int32, of the first occurrences in the flattened x),
        `inverse_indices` (int32, in the shape of x: the index of each element in `values`) and `counts` (int32).

    Raises:
        ConcretizationError: if the values are not known, as under vmap.

    >>> import tensorken as tk
    >>> values, indices, inverse, counts = tk.unique_all([3.0, 1.0, 3.0])
    >>> values.tolist(), indices.tolist(), inverse.tolist(), counts.tolist()
    ([1.0, 3.0], [1, 0], [1, 0, 1], [1, 2])
    """
    return _unique("unique_all", as_tensor(x), False)


def unique_counts(x: ArrayLike) -> UniqueCounts:
    """The unique values of x in ascending order, and their counts; see `unique_all`.

    >>> import tensorken as tk
    >>> tk.unique_counts([3, 1, 3]).counts.tolist()
    [1, 2]
    """
    result = _unique("unique_counts", as_tensor(x), False)
    return UniqueCounts(result.values, result.counts)


def unique_inverse(x: ArrayLike) -> UniqueInverse:
    """The unique values of x in ascending order, and the index of each element among them; see `unique_all`.

    >>> import tensorken as tk
    >>> tk.unique_inverse([3, 1, 3]).inverse_indices.tolist()
    [1, 0, 1]
    """
    result = _unique("unique_inverse", as_tensor(x), False)
    return UniqueInverse(result.values, result.inverse_indices)


def unique_values(x: ArrayLike) -> Tensor:
    """The unique values of x in ascending order; see `unique_all`.

    >>> import tensorken as tk
    >>> tk.unique_values([[3, 1], [3, 2]]).tolist()
    [1, 2, 3]
    """
    return _unique("unique_values", as_tensor(x), False).values


def unique(
    x: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
) -> Any:
    """The unique values of x in ascending order, as in numpy; with any `return_` option, a tuple with further results.

    Args:
        return_index: whether to return the int32 index of the first occurrence of each value in the flattened x.
        return_inverse: whether to return the index of each element of x among the values, as int32.
        return_counts: whether to return the count of each value, as int32.
        equal_nan: whether to treat all NaN as one value.

    Raises:
        ConcretizationError: if the values are not known, as under vmap.

    >>> import tensorken as tk
    >>> values, counts = tk.unique([3, 1, 3], return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    parts = _unique("unique", as_tensor(x), equal_nan)
    requested = (True, return_index, return_inverse, return_counts)
    results = tuple([part for part, is_requested in zip(parts, requested, strict=True) if is_requested])
    return results if len(results) > 1 else results[0]


def _unique(name: str, x: Tensor, equal_nan: bool) -> UniqueAll:
    """Sort the elements; a unique value begins where an element differs from the previous one."""
    flat = x.ravel()
    n = flat.size
    order = flat.argsort(0)
    ordered = flat.gather(order, 0)
    differs = ordered.crop(((min(n, 1), n),)) != ordered.crop(((0, max(n - 1, 0)),))
    if equal_nan and x.dtype.inexact:
        is_number = ordered.eq(ordered).crop(((0, max(n - 1, 0)),))
        differs = differs & is_number
    first, last = order.constant([True] * min(n, 1), bool_, (min(n, 1),)), order.constant([n], int32, (1,))
    begins = first.concatenate(differs, axis=0)
    starts = nonzero_indices(name, begins)
    indices = order.gather(starts, 0)
    ends = starts.concatenate(last, axis=0).crop(((1, starts.size + 1),))
    inverse = (begins.astype(int32).cumsum(0) - 1).scatter_add(order, 0, n)
    return UniqueAll(flat.gather(indices, 0), indices, inverse.reshape(x.shape), ends - starts)


def isin(x: ArrayLike, values: ArrayLike, *, invert: bool = False) -> Tensor:
    """Whether each element of x is among the values, as bool in the shape of x; False for NaN.

    Args:
        invert: whether to return the negation: True for elements not among the values.

    >>> import tensorken as tk
    >>> tk.isin([1, 2, 3, 4], [2, 4, 6]).tolist()
    [False, True, False, True]
    """
    a, b = pair_of_operands("isin", x, values, first_tensor(x, values))
    if a.dtype is bool_:
        a, b = a.astype(int32), b.astype(int32)
    sorted_values = b.ravel().sort(0)
    n = sorted_values.size
    if n == 0:
        result = a.zeros_like().astype(bool_)
    else:
        index = insertion_points(sorted_values, a, "left")
        result = sorted_values.gather((index < n).where(index, 0).ravel(), 0).reshape(a.shape).eq(a)
    return ~result if invert else result
