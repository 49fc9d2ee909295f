"""Searching: choice by a condition, indices of nonzero elements, search in a sorted vector.

Raises:
    ShapeError: if shapes do not fit or do not broadcast.
"""

from __future__ import annotations

import math
from typing import Any, overload

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import first_tensor
from tensorken.arrays.indexing import checked
from tensorken.arrays.indexing.masks import true_indices
from tensorken.complex_numbers.arithmetic import precedes
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.errors import ArgumentError, ConcretizationError, ShapeError
from tensorken_core.language.dtypes import bool_, int32, position_dtype
from tensorken_core.language.shapes import Shape, short_repr
from tensorken_core.tensor.coercion import as_operand, pair_of_operands
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "argwhere",
    "flatnonzero",
    "nonzero",
    "searchsorted",
    "where",
]

_MISSING: Any = object()


@overload
def where(condition: ArrayLike) -> tuple[Tensor, ...]: ...
@overload
def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> Tensor: ...
def where(
    condition: ArrayLike, a: ArrayLike = _MISSING, b: ArrayLike = _MISSING
) -> Tensor | tuple[Tensor, ...]:
    """a where the bool condition is true, else b, elementwise; without a and b, `nonzero` of the condition.

    The three shapes broadcast.  The operand that is not chosen contributes neither value nor derivative.
    (If computing that operand has an infinite derivative, the product with its zero cotangent is NaN: guard the
    operand as well.)

    Raises:
        ArgumentError: if one of a and b is given without the other.

    >>> import tensorken as tk
    >>> tk.where(tk.tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    if a is _MISSING and b is _MISSING:
        return nonzero(condition)
    if a is _MISSING or b is _MISSING:
        raise ArgumentError("where: need both a and b, or neither; write where(condition, a, b)")
    test = (
        as_operand("where", condition, first_tensor(a, b))
        if isinstance(a, Tensor) or isinstance(b, Tensor)
        else as_tensor(condition)
    )
    if isinstance(condition, bool):  # a number takes the dtype of the other operand
        test = test.astype(bool_)
    return test.where(a, b)


# ---- indices of nonzero elements: the size depends on the values -------------------------------------------


def nonzero(x: ArrayLike) -> tuple[Tensor, ...]:
    """The int32 indices of the nonzero elements (NaN is nonzero), in row-major order: a vector for each axis.

    Raises:
        ShapeError: if x has no axes.
        ConcretizationError: if the values are not known, as under vmap: the shape of the result depends on them.

    >>> import tensorken as tk
    >>> rows, columns = tk.nonzero([[0, 7], [8, 9]])
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [1, 0, 1])
    """
    y = as_tensor(x)
    if y.ndim == 0:
        raise ShapeError("nonzero: a tensor of shape () has no axes; compare it with 0, or reshape it")
    return _indices(nonzero_indices("nonzero", y.astype(bool_).ravel()), y.shape)


def flatnonzero(x: ArrayLike) -> Tensor:
    """The int32 indices of the nonzero elements of the flattened tensor; see `nonzero`.

    >>> import tensorken as tk
    >>> tk.flatnonzero([[0, 7], [8, 9]]).tolist()
    [1, 2, 3]
    """
    return nonzero_indices("flatnonzero", as_tensor(x).astype(bool_).ravel())


def argwhere(x: ArrayLike) -> Tensor:
    """The int32 indices of the nonzero elements, a row for each element; see `nonzero`.

    >>> import tensorken as tk
    >>> tk.argwhere([[0, 7], [8, 9]]).tolist()
    [[0, 1], [1, 0], [1, 1]]
    """
    y = as_tensor(x)
    flat_indices = nonzero_indices("argwhere", y.astype(bool_).ravel())
    columns = [
        flat_indices.reshape((flat_indices.size, 1))
        for flat_indices in (flat_indices, *_indices(flat_indices, y.shape))
    ]
    table = columns[0].concatenate(*columns[1:], axis=1)
    return table.crop(((0, flat_indices.size), (1, y.ndim + 1)))


def _indices(flat_indices: Tensor, shape: Shape) -> tuple[Tensor, ...]:
    """Convert flat indices to an index vector for each axis of the shape."""
    return tuple([flat_indices // math.prod(shape[i + 1 :]) % n for i, n in enumerate(shape)])


def nonzero_indices(name: str, mask: Tensor) -> Tensor:
    """The ascending int32 indices of the true elements of a bool vector."""
    try:
        return true_indices(name, mask)
    except ConcretizationError as error:
        unknown = (
            f"the shape of the result depends on the values, which are unknown here: {error.__context__}"
        )
        raise ConcretizationError(unknown).at(name) from None


# ---- search in a sorted vector -----------------------------------------------------------------------------


def searchsorted(
    x: ArrayLike, values: ArrayLike, side: str = "left", sorter: ArrayLike | None = None
) -> Tensor:
    """The int32 indices at which to insert values into an ascending vector x so that x stays sorted.

    Args:
        x: a vector in ascending order; NaN comes last.
        side: whether to insert before (`left`) or after (`right`) elements equal to the value.
        sorter: the indices that sort x, see `argsort`, if x is not sorted.

    Returns:
        int32 indices in the shape of the values.

    Raises:
        ShapeError: if x does not have exactly one axis.
        ArgumentError: if `side` is neither "left" nor "right".

    >>> import tensorken as tk
    >>> tk.searchsorted([1.0, 2.0, 2.0, 3.0], [0.0, 2.0, 9.0]).tolist()
    [0, 1, 4]
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {short_repr(side)}")
    a, v = pair_of_operands("searchsorted", x, values, first_tensor(x, values))
    if a.ndim != 1:
        raise ShapeError(
            f"searchsorted: x must have one axis, got shape {a.shape}; use tk.vmap for several rows"
        )
    if sorter is not None:
        order = as_operand("searchsorted", sorter, a)
        a = a.gather(checked("searchsorted", order, 0, a.shape), 0)
    if a.dtype is bool_:
        a, v = a.astype(int32), v.astype(int32)
    return insertion_points(a, v, side)


def insertion_points(a: Tensor, values: Tensor, side: str) -> Tensor:
    """Binary search for all values at once: one gather for each bit of an index."""
    n, flat = a.shape[0], values.ravel()
    count = flat.constant([0], position_dtype(n), (1,)).broadcast_to(flat.shape)
    if n == 0:
        return count.reshape(values.shape)
    for bit in reversed(range(n.bit_length())):
        candidate = count + (1 << bit)
        in_range = candidate <= n
        element = a.gather(in_range.where(candidate, 1) - 1, 0)
        count = (in_range & _is_before(element, flat, side)).where(candidate, count)
    return count.reshape(values.shape)


def _is_before(element: Tensor, value: Tensor, side: str) -> Tensor:
    """Whether an element comes before the insertion point of a value."""
    return _precedes(element, value) if side == "left" else ~_precedes(value, element)


def _precedes(a: Tensor, b: Tensor) -> Tensor:
    """Whether a comes before b in the order of `sort`: NaN is greater than all numbers."""
    if isinstance(a, ComplexTensor) and isinstance(b, ComplexTensor):
        return precedes(a, b, _precedes)
    before: Tensor = a < b
    return before | (a.eq(a) & ~b.eq(b)) if a.dtype.kind == "float" else before
