"""Bins: digitisation, edges of histograms, histograms of several variables.

Raises:
    ShapeError: if shapes do not fit together.
    ArgumentError: if a number of bins is not positive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.counting import edges_of, scatter_weights, weights_of
from tensorken.arrays.functions.cumulative import diff
from tensorken.arrays.functions.joining import stack, unstack
from tensorken.arrays.functions.operands import first_operand, floating_of, promoted_tensors
from tensorken.arrays.functions.searching import insertion_points
from tensorken.arrays.indexing.checks import bounds
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["digitize", "histogram2d", "histogram_bin_edges", "histogramdd"]


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Tensor:
    """The int32 index i of the bin of each element: bins[i - 1] <= x < bins[i] for ascending bins.

    Args:
        bins: the edges, ascending or descending; 0 and the number of edges are the indices beyond them.
        right: whether a bin includes its upper edge instead of its lower edge.

    Raises:
        ShapeError: if the bins are not a vector.
        ArgumentError: if the bins are neither ascending nor descending.

    >>> import tensorken as tk
    >>> tk.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0]).tolist()
    [1, 4, 3]
    """
    values, edges = promoted_tensors("digitize", (x, bins))
    if values.dtype is bool_:
        values, edges = values.astype(int32), edges.astype(int32)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: the bins must be a vector, got shape {edges.shape}")
    side, n = "left" if right else "right", edges.size
    upwards = insertion_points(edges, values, side)
    if n < 2:
        return upwards
    steps = diff(edges)
    signs = bounds((steps > 0).astype(int32) - (steps < 0).astype(int32))
    if signs is not None and signs[0] < 0 < signs[1]:
        raise ArgumentError("digitize: the bins must be ascending or descending; sort them first")
    if signs is not None and signs[0] >= 0:
        return upwards
    downwards: Tensor = n - insertion_points(edges.flip(0), values, side)
    return (edges[0] <= edges[n - 1]).where(upwards, downwards)


def histogram_bin_edges(
    x: ArrayLike,
    bins: ArrayLike = 10,
    range: tuple[float, float] | None = None,
    weights: ArrayLike | None = None,
) -> Tensor:
    """The edges of the bins of `histogram` with the same arguments.

    Args:
        weights: has no effect on the edges.

    >>> import tensorken as tk
    >>> tk.histogram_bin_edges([1.0, 2.0, 5.0], bins=2).tolist()
    [1.0, 3.0, 5.0]
    """
    return edges_of(floating_of(first_operand("histogram", x, bins)).ravel(), bins, range)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The number of points (x[i], y[i]) in each bin of two variables, and the edges of the bins of each.

    Args:
        x, y: vectors of one size.
        bins: the number of bins or the edges, for both variables; or a pair, one for each variable.
        range: a pair of outer edges for each variable; by default the smallest and the largest element.
        density: whether the counts are divided by their sum and by the areas of the bins.
        weights: the weight of each point.

    >>> import tensorken as tk
    >>> tk.histogram2d([0.0, 1.0, 1.0], [0.0, 0.0, 2.0], bins=2)[0].tolist()
    [[1, 0], [1, 1]]
    """
    points = promoted_tensors("histogram2d", (x, y))
    if points[0].ndim != 1 or points[0].shape != points[1].shape:
        raise ShapeError(
            f"histogram2d: x and y must be vectors of one size, got shapes {points[0].shape} and {points[1].shape}"
        )
    given: Any = bins
    if not isinstance(bins, int) and len(given) not in (1, 2):
        given = [bins, bins]
    counts, edges = histogramdd(stack(points, 1), given, range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """The number of points in each bin of several variables, and the edges of the bins of each.

    Args:
        sample: a matrix with a row for each point; or a sequence of vectors, one for each variable.
        bins: the number of bins for all variables; or a sequence with the number or the edges for each variable.
        range: a pair of outer edges for each variable, or None; by default the smallest and the largest element.
        density: whether the counts are divided by their sum and by the volumes of the bins.
        weights: the weight of each point.

    Returns:
        The counts as int32, or the sums in the dtype of the weights, and a list of edges.

    >>> import tensorken as tk
    >>> tk.histogramdd(tk.tensor([[0.0, 0.0], [1.0, 2.0]]), bins=[2, 1])[0].tolist()
    [[1], [1]]
    """
    if isinstance(sample, Sequence):
        sample = stack(sample, 1)
    points = floating_of(as_tensor(sample))
    if points.ndim != 2:
        raise ShapeError(f"histogramdd: need a matrix with a row for each point, got shape {points.shape}")
    size, count = points.shape
    given: Any = bins
    listed = [bins] * count if isinstance(bins, int) else list(given)
    ranges = [None] * count if range is None else list(range)
    if not len(listed) == len(ranges) == count:
        raise ArgumentError(
            f"histogramdd: {count} variables need as many bins and ranges, got {len(listed)} and {len(ranges)}"
        )
    flat: Any = points.constant([0], int32, (1,)).broadcast_to((size,))
    inside: Any = flat.eq(0)
    edges, volume = [], None
    for i, column in enumerate(unstack(points, axis=1)):
        edge = edges_of(column, listed[i], ranges[i])
        n = edge.size - 1
        column = column.astype(edge.dtype)
        index = column.eq(edge[n]).where(n - 1, insertion_points(edge, column, "right") - 1)
        inside = inside & (index >= 0) & (index < n)
        flat = flat * n + index
        width = diff(edge).reshape((n, *[1] * (count - i - 1)))
        volume = width if volume is None else volume * width
        edges.append(edge)
    sizes = tuple([edge.size - 1 for edge in edges])
    amounts = weights_of("histogramdd", flat, weights)
    counts = scatter_weights(inside.where(flat, -1), amounts, math.prod(sizes)).reshape(sizes)
    if density:
        counts = counts.astype(points.dtype) / counts.sum() / volume
    return counts, edges
