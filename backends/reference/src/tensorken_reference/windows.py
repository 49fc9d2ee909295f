"""The windows of a convolution, by its definition."""

from __future__ import annotations

from itertools import product
from math import prod

from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_core.rewriting.view import View
from tensorken_reference.arrays import Array


def windows_of(
    x: Array,
    kernel: Shape,
    counts: Shape,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
    groups: int,
) -> Array:
    """The elements of each window; zeros in the padding and between dilated elements.

    Args:
        x: of shape (batch, channels, *sizes).
        kernel: the sizes of a window.
        counts: the numbers of windows.

    Returns:
        An array of shape (batch, groups, 1, windows, elements of a window).
    """
    count, channels, *sizes = x.shape
    spatial = View.contiguous(tuple(sizes))
    indices = []  # for each window and element of it the index in an image, or None
    for window in product(*map(range, counts)):
        row = []
        for offset in product(*map(range, kernel)):
            geometry = zip(window, offset, strides, padding, input_dilation, kernel_dilation, strict=True)
            steps = [
                divmod(stride * w + step * j - before, dilation)
                for w, j, stride, (before, _), dilation, step in geometry
            ]
            inside = all(
                [not remainder and 0 <= i < n for (i, remainder), n in zip(steps, sizes, strict=True)]
            )
            row.append(
                sum([s * i for s, (i, _) in zip(spatial.strides, steps, strict=True)]) if inside else None
            )
        indices.append(row)
    size, zero = prod(sizes), 0 if x.dtype.kind == "int" else 0.0
    data = [
        zero if index is None else x.data[((n * groups + group) * (channels // groups) + c) * size + index]
        for n in range(count)
        for group in range(groups)
        for row in indices
        for c in range(channels // groups)
        for index in row
    ]
    shape = (count, groups, 1, prod(counts), channels // groups * prod(kernel))
    return Array(shape, tuple(data), x.dtype)
