"""How often values occur: each whole number, or all between two edges."""

from __future__ import annotations

import builtins
from typing import Any

from tensorken.arrays.functions.operands import first
from tensorken.arrays.functions.searching import places_in
from tensorken_core.errors import ArgumentError, ConcretizationError, DTypeError, IndexingError, ShapeError
from tensorken_core.language.dtypes import int32, promote
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.operators import floating_of
from tensorken_core.tensor.tensor import Tensor

__all__ = [
    "bincount",
    "histogram",
]


def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Tensor:
    """How often each of 0, 1, 2, ... occurs in x, up to the largest; or the sum of the weights where it does.

    Args:
        x: integers, one axis; none negative.
        weights: as many as x has elements.
        minlength: the least length of the result.
        length: the length of the result; values from it on do not count, and no value of x need be known.

    Returns:
        int32, or the weights' dtype.

    Raises:
        DTypeError: if x is not of integers.
        ShapeError: if x has not one axis, or the weights another shape.
        IndexingError: if an element is negative.
        ConcretizationError: if no length is given and the values are not known, as under vmap.

    >>> import tensorken as tk
    >>> tk.bincount([1, 3, 1]).tolist()
    [0, 2, 0, 1]
    """
    y = first("bincount", x, weights)
    if y.dtype.kind != "int":
        raise DTypeError(f"bincount: x must be int32 or int64, got {y.dtype}; cast first (x.astype)")
    if y.ndim != 1:
        raise ShapeError(f"bincount: x must have one axis, got shape {y.shape}; ravel it")
    if length is None:
        length = max(_known_extent(y), minlength)
    amounts = _amounts("bincount", y, weights)
    return _added_up(y, amounts, length)


def _known_extent(x: Tensor) -> int:
    """One more than the largest element; 0 of no elements."""
    if x.size == 0:
        return 0
    try:
        low, high = int(x.min()), int(x.max())
    except ConcretizationError as error:
        raise ConcretizationError(
            f"bincount: the shape of the result depends on the values; give length=; {error}"
        ) from None
    if low < 0:
        raise IndexingError(
            f"bincount: x must not have negative elements, got {low}; subtract the minimum first"
        )
    return high + 1


def _amounts(name: str, x: Tensor, weights: Any) -> Tensor:
    """What each element counts: 1, or its weight."""
    if weights is None:
        return x.constant([1], int32, (1,)).reshape(()).broadcast_to(x.shape)
    amounts = as_operand(name, weights, x)
    if amounts.shape != x.shape:
        raise ShapeError(
            f"{name}: weights need the shape of x, {x.shape}, got {amounts.shape}; give each one"
        )
    return amounts.in_sum_dtype()


def _added_up(places: Tensor, amounts: Tensor, length: int) -> Tensor:
    """The amounts added at their places from 0 on; those elsewhere at one more place, which is cut off."""
    inside = (places >= 0) & (places < length)
    return amounts.scatter_add(inside.where(places, length), 0, length + 1).crop(((0, length),))


def histogram(
    x: Any,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: Any = None,
) -> tuple[Tensor, Tensor]:
    """How many elements of x lie between each two neighbouring edges, and the edges.

    The upper edge belongs to the next bin; the last to its own.

    Args:
        bins: how many of equal width; or the edges themselves, in ascending order.
        range: the outer edges of bins of equal width; by default the smallest and the largest element.
        density: whether the counts are divided by their sum and by the widths, so that their integral is 1.
        weights: what each element counts, in x's shape.

    Returns:
        The counts as int32, or sums in the weights' dtype; and the edges, in x's dtype, for ints and bools in float32.

    Raises:
        ArgumentError: if the number of bins is not positive.
        ShapeError: if the edges are less than 2 or have not one axis, or the weights have not x's shape.

    >>> import tensorken as tk
    >>> counts, edges = tk.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> counts.tolist(), edges.tolist()
    ([1, 2, 1], [1.0, 2.0, 3.0, 4.0])
    """
    values = floating_of(first("histogram", x, weights))
    flat = values.ravel()
    edges = _edges(flat, bins, range)
    count = edges.size - 1
    flat = flat.astype(edges.dtype)
    last = edges.crop(((count, count + 1),)).reshape(())
    place = flat.eq(last).where(count - 1, places_in(edges, flat, "right") - 1)
    counts = _added_up(place, _amounts("histogram", values, weights).ravel(), count)
    if density:
        widths = edges.crop(((1, count + 1),)) - edges.crop(((0, count),))
        share: Tensor = floating_of(counts) / counts.sum() / widths
        return share, edges
    return counts, edges


def _edges(x: Tensor, bins: Any, range: tuple[float, float] | None) -> Tensor:
    """The edges of bins: given, or equally spaced between two that are given or found."""
    if not isinstance(bins, int):
        edges = as_operand("histogram", bins, x)
        if edges.ndim != 1 or edges.size < 2:
            raise ShapeError(
                f"histogram: the edges must be at least 2 along one axis, got shape {edges.shape}"
            )
        return edges.astype(promote(floating_of(edges).dtype, x.dtype))
    if bins < 1:
        raise ArgumentError(f"histogram: need at least one bin, got {bins}; give a positive number, or edges")
    one = x.constant([0.0], x.dtype, (1,)).reshape(())
    if range is not None:
        low, high = one + range[0], one + range[1]
    else:
        low, high = (x.min(), x.max()) if x.size else (one, one + 1.0)
    flat = low.eq(high)
    low, high = flat.where(low - 0.5, low), flat.where(high + 0.5, high)
    steps = x.constant(builtins.range(bins + 1), x.dtype, (bins + 1,))
    spaced: Tensor = steps.eq(float(bins)).where(high, low + steps * ((high - low) / bins))
    return spaced
