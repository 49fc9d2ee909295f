"""Convolution: windows of the input as a strided view, one copy of them block by block, and products by BLAS.

The blocks stay in the cache between the copy and the product.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorken_core.language.shapes import Axes, Pairs
from tensorken_numpy.arrays import Array, Sizes

MIN_COLUMNS = 512
"""So many columns, or inner elements, make a product efficient: a block has as many images or channels as needed."""

MAX_BLOCK = 2**17
"""Elements of products in a block, where several images fit."""


def convolve(
    x: Array,
    kernel: Array,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
    groups: int,
) -> Array:
    """The convolution; float16 is computed in float32 and rounded once."""
    if x.dtype == np.float16:
        wide = convolve(
            x.astype(np.float32),
            kernel.astype(np.float32),
            strides,
            padding,
            input_dilation,
            kernel_dilation,
            groups,
        )
        return wide.astype(np.float16)
    count, channels, *sizes = x.shape
    outputs, inputs, *kernel_sizes = kernel.shape
    whole = _padded_sizes(sizes, padding, input_dilation)
    counts = tuple(
        [
            (n - (k - 1) * of_kernel - 1) // stride + 1
            for n, k, stride, of_kernel in zip(whole, kernel_sizes, strides, kernel_dilation, strict=True)
        ]
    )
    kernel = kernel.reshape(groups, outputs // groups, inputs, *kernel_sizes)
    if outputs * math.prod(sizes) < channels * math.prod(counts) and all(
        [1 in steps for steps in zip(strides, input_dilation, strict=True)]
    ):
        y = np.zeros((count, groups, outputs // groups, *counts), x.dtype)
        x = x.reshape(count, groups, inputs, *sizes)
        _add_products(y, x, kernel, strides, padding, input_dilation, kernel_dilation)
        return y.reshape(count, outputs, *counts)
    x = _padded(x, whole, padding, input_dilation).reshape(count, groups, inputs, *whole)
    axes = x.strides[3:]
    steps = (
        *[s * step for s, step in zip(axes, kernel_dilation, strict=True)],
        *[s * step for s, step in zip(axes, strides, strict=True)],
    )
    shape = (count, groups, inputs, *kernel_sizes, *counts)
    windows = as_strided(x, shape, (*x.strides[:3], *steps), writeable=False)
    few = math.prod(counts) < math.prod(kernel_sizes)
    y = (_of_large_kernels if few else _of_windows)(windows, kernel)
    return y.reshape(count, outputs, *counts)


def _of_windows(windows: Array, kernel: Array) -> Array:
    """The product of the kernels with all windows of some images at a time; (count, groups, outputs, windows).

    Args:
        windows: of shape (count, groups, inputs, *kernel sizes, *windows).
        kernel: of shape (groups, outputs, inputs, *kernel sizes).
    """
    count, groups = windows.shape[:2]
    outputs, inner, columns = kernel.shape[1], *_inner_and_columns(windows, kernel)
    matrix = kernel.reshape(groups, outputs, inner)
    y = np.empty((count, groups, outputs, columns), windows.dtype)
    images = min(-(-MIN_COLUMNS // max(columns, 1)), count)
    order = (1, *range(2, kernel.ndim), 0, *range(kernel.ndim, windows.ndim))
    windows = windows.transpose(order)
    place = kernel.ndim - 1  # of the images
    copied: Any = np.empty([images if i == place else n for i, n in enumerate(windows.shape)], windows.dtype)
    for start in range(0, count, max(images, 1)):
        part = windows[(slice(None),) * place + (slice(start, start + images),)]
        block = copied[(slice(None),) * place + (slice(part.shape[place]),)]
        np.copyto(block, part)
        found = y[start : start + images]
        if len(found) == 1:
            np.matmul(matrix, block.reshape(groups, inner, columns), found[0])
        else:
            all_columns = len(found) * columns
            z = np.matmul(matrix, block.reshape(groups, inner, all_columns))
            np.copyto(found, z.reshape(groups, outputs, len(found), columns).transpose(2, 0, 1, 3))
    return y


def _of_large_kernels(windows: Array, kernel: Array) -> Array:
    """The same for few windows of many elements: the sum of products over some channels at a time."""
    count, groups, inputs = windows.shape[:3]
    rank, outputs = (windows.ndim - 3) // 2, kernel.shape[1]
    elements, columns = math.prod(kernel.shape[3:]), math.prod(windows.shape[3 + rank :])
    order = (1, 0, *range(3 + rank, windows.ndim), *range(2, 3 + rank))
    windows = windows.transpose(order)  # (groups, count, *windows, inputs, *kernel sizes)
    channels = max(1, min(MIN_COLUMNS // max(elements, 1), inputs))
    y: Array = np.zeros((groups, count * columns, outputs), windows.dtype)
    for start in range(0, inputs, channels):
        some = slice(start, start + channels)
        rows = windows[(slice(None),) * (2 + rank) + (some,)].reshape(groups, count * columns, -1)
        y += np.matmul(rows, kernel[:, :, some].reshape(groups, outputs, -1).transpose(0, 2, 1))
    return y.reshape(groups, count, columns, outputs).transpose(1, 0, 3, 2)


def _add_products(
    y: Array,
    x: Array,
    kernel: Array,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
) -> None:
    """Multiply the kernels with all elements of some images at a time, and add each product to its window of y.

    Args:
        y: zeros of shape (count, groups, outputs, *windows).
        x: of shape (count, groups, inputs, *sizes).
        kernel: of shape (groups, outputs, inputs, *kernel sizes).
        strides, padding, input_dilation, kernel_dilation: of the convolution; along each axis the stride or the
            dilation of the input is 1.
    """
    count, groups, inputs, *sizes = x.shape
    outputs, kernel_sizes = kernel.shape[1], kernel.shape[3:]
    elements = math.prod(kernel_sizes)
    matrix = np.moveaxis(kernel, 2, -1).reshape(groups, outputs * elements, inputs)
    x = x.reshape(count, groups, inputs, math.prod(sizes))
    images = max(1, MAX_BLOCK // max(groups * outputs * elements * math.prod(sizes), 1))
    placed = []
    for at in product(*map(range, kernel_sizes)):
        facts = zip(
            at, sizes, y.shape[3:], strides, padding, input_dilation, kernel_dilation, strict=True
        )
        pairs = [
            _places(n, windows, stride, before - j * of_kernel, dilation)
            for j, n, windows, stride, (before, _), dilation, of_kernel in facts
        ]
        placed.append((at, [one for one, _ in pairs], [one for _, one in pairs]))
    for start in range(0, count, images):
        some = slice(start, start + images)
        z = np.matmul(matrix, x[some]).reshape(-1, groups, outputs, *kernel_sizes, *sizes)
        block = y[some]
        for at, from_x, to_y in placed:
            target = block[(..., *to_y)]
            target += z[(slice(None),) * 3 + at + tuple(from_x)]


def _places(size: int, windows: int, stride: int, before: int, dilation: int) -> tuple[slice, slice]:
    """The elements i of an axis of the input, and their windows w: stride * w = before + dilation * i."""
    if dilation == 1:
        first = max(-(-before // stride), 0)
        last = min((size - 1 + before) // stride + 1, windows)
        start = first * stride - before
        return slice(start, start + max(last - first, 0) * stride, stride), slice(first, max(last, first))
    first = max(-(before // dilation), 0)
    last = max(min((windows - 1 - before) // dilation + 1, size), first)
    start = before + first * dilation
    return slice(first, last), slice(start, start + (last - first) * dilation, dilation)


def _inner_and_columns(windows: Array, kernel: Array) -> tuple[int, int]:
    return math.prod(kernel.shape[2:]), math.prod(windows.shape[kernel.ndim :])


def _padded_sizes(sizes: list[int], padding: Pairs, dilation: Axes) -> Sizes:
    """The sizes with dilation and padding."""
    return tuple(
        [
            ((n - 1) * step + 1 if n else 0) + before + after
            for n, (before, after), step in zip(sizes, padding, dilation, strict=True)
        ]
    )


def _padded(x: Array, whole: Sizes, padding: Pairs, dilation: Axes) -> Array:
    """The input with zeros between and around its elements."""
    if all([pads == (0, 0) for pads in padding]) and all([step == 1 for step in dilation]):
        return x
    y = np.zeros((*x.shape[:2], *whole), x.dtype)
    facts = zip(x.shape[2:], whole, padding, dilation, strict=True)
    pairs = [_places(n, size, 1, before, step) for n, size, (before, _), step in facts]
    y[(..., *[one for _, one in pairs])] = x[(..., *[one for one, _ in pairs])]
    return y
