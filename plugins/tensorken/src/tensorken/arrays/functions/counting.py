"""Counts of values: per integer, or per bin of a histogram."""

from __future__ import annotations

import builtins
import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import first_operand, floating_of
from tensorken.arrays.functions.searching import insertion_points
from tensorken.arrays.indexing.checks import require
from tensorken_core.errors import ArgumentError, ConcretizationError, DTypeError, IndexingError, ShapeError
from tensorken_core.language.dtypes import position_dtype, promote
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor, pieces

__all__ = [
    "bincount",
    "histogram",
]


def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None
) -> Tensor:
    """The number of occurrences in x of each integer from 0 to the largest element, or the sum of their weights.

    Args:
        x: nonnegative integers, with one axis.
        weights: one for each element of x.
        minlength: the minimum length of the result.
        length: the length of the result; larger values are not counted.  With a length, x may be traced or batched.

    Returns:
        int32, or the weights' dtype.

    Raises:
        ArgumentError: if minlength or length is negative or no int.
        DTypeError: if the dtype of x is not an integer dtype.
        ShapeError: if x does not have exactly one axis, or the weights have another shape.
        IndexingError: if an element is negative.
        ConcretizationError: if no length is given and the values are not known, as under vmap.

    >>> import tensorken as tk
    >>> tk.bincount([1, 3, 1]).tolist()
    [0, 2, 0, 1]
    """
    y = first_operand("bincount", x, weights)
    if y.dtype.kind != "int":
        raise DTypeError(f"bincount: x must be integers, got {y.dtype}; cast first (x.astype)")
    for what, given in (("minlength", minlength), ("length", length)):
        if given is not None and integer_of("bincount", what, given) < 0:
            raise ArgumentError(f"bincount: {what} must be at least 0, got {given}")
    if y.ndim != 1:
        raise ShapeError(f"bincount: x must have one axis, got shape {y.shape}; ravel it")
    if length is None:
        length = max(_known_extent(y), minlength)
    amounts = pieces(weights_of("bincount", y, weights), 0)
    totals = [
        scatter_weights(piece.in_index_dtype(), of_piece, length)
        for piece, of_piece in zip(pieces(y, 0), amounts, strict=True)
    ]
    total = totals[0]
    for further in totals[1:]:
        total = total + further
    return total


def _known_extent(x: Tensor) -> int:
    """The largest element plus one; 0 for no elements."""
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


def weights_of(name: str, x: Tensor, weights: Any) -> Tensor:
    """The weight of each element, 1 by default."""
    if weights is None:
        return x.constant([1], position_dtype(x.size), (1,)).reshape(()).broadcast_to(x.shape)
    amounts = as_operand(name, weights, x)
    if amounts.shape != x.shape:
        raise ShapeError(
            f"{name}: weights must have the shape {x.shape} of x, got {amounts.shape}; give one for each element"
        )
    return amounts.in_sum_dtype()


def scatter_weights(indices: Tensor, amounts: Tensor, length: int) -> Tensor:
    """Add the amounts at their indices; amounts with an index out of range go to an extra element, which is dropped."""
    inside = (indices >= 0) & (indices < length)
    return amounts.scatter_add(inside.where(indices, length), 0, length + 1).crop(((0, length),))


def histogram(
    x: ArrayLike,
    bins: ArrayLike = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[Tensor, Tensor]:
    """The number of elements of x in each bin of a histogram, and the edges of the bins.

    Each bin includes its lower edge; only the last bin includes its upper edge as well.

    Args:
        bins: the number of bins of equal width; or their edges, in ascending order.
        range: the outer edges of bins of equal width; by default the smallest and the largest element.
        density: whether the counts are divided by their sum and by the widths, so that their integral is 1.
        weights: the weight of each element, in the shape of x.

    Returns:
        The counts as int32, or the sums in the dtype of the weights; and the edges in the dtype of x, float32 for
        ints and bools.

    Raises:
        ArgumentError: if the number of bins is not positive.
        ShapeError: if there are fewer than 2 edges, they do not have exactly one axis, or the weights differ from x
            in shape.

    >>> import tensorken as tk
    >>> counts, edges = tk.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> counts.tolist(), edges.tolist()
    ([1, 2, 1], [1.0, 2.0, 3.0, 4.0])
    """
    values = floating_of(first_operand("histogram", x, weights))
    flat = values.ravel()
    edges = edges_of(flat, bins, range)
    count = edges.size - 1
    flat = flat.astype(edges.dtype)
    last = edges.crop(((count, count + 1),)).reshape(())
    bin_index = flat.eq(last).where(count - 1, insertion_points(edges, flat, "right") - 1)
    counts = scatter_weights(bin_index, weights_of("histogram", values, weights).ravel(), count)
    if density:
        widths = edges.crop(((1, count + 1),)) - edges.crop(((0, count),))
        densities: Tensor = counts.astype(widths.dtype) / counts.sum() / widths
        return densities, edges
    return counts, edges


def edges_of(x: Tensor, bins: Any, range: tuple[float, float] | None) -> Tensor:
    """The edges of the bins of a vector: those given, or equally spaced edges over the given range or that of x."""
    if isinstance(bins, str):
        raise ArgumentError(
            f"histogram: bins must be a number or edges, got {bins!r}, a number that would depend on values; choose one"
        )
    if not isinstance(bins, int):
        edges = as_operand("histogram", bins, x)
        if edges.ndim != 1 or edges.size < 2:
            raise ShapeError(f"histogram: the edges must be a vector of at least 2, got shape {edges.shape}")
        edges = edges.astype(promote(floating_of(edges).dtype, x.dtype))
        n = edges.size
        require("histogram", "the edges", edges.crop(((0, n - 1),)) <= edges.crop(((1, n),)), "ascending")
        return edges
    if bins < 1:
        raise ArgumentError(f"histogram: need at least one bin, got {bins}; give a positive number, or edges")
    zero = x.constant([0.0], x.dtype, (1,)).reshape(())
    if range is not None:
        low, high = zero + range[0], zero + range[1]
        require("histogram", "the range", low <= high, "from a number to a larger one")
    else:
        low, high = (x.min(), x.max()) if x.size else (zero, zero + 1.0)
    outer: Any = low.reshape((1,)).concatenate(high.reshape((1,)))
    what = "the elements" if range is None else "the range"
    require("histogram", what, outer.abs() < math.inf, "finite; filter x, or give range=", outer)
    is_empty = low.eq(high)
    low, high = is_empty.where(low - 0.5, low), is_empty.where(high + 0.5, high)
    steps = x.constant(builtins.range(bins + 1), x.dtype, (bins + 1,))
    spaced: Tensor = steps.eq(float(bins)).where(high, low + steps * ((high - low) / bins))
    return spaced
