"""Convolution: windows of the input as a strided view, one copy of them block by block, and products by BLAS.

The blocks stay in the cache between the copy and the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorken_core.language.shapes import Axes, Pairs
from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.contraction import for_blas

MIN_COLUMNS = 512
"""The fewest columns, or inner elements, for an efficient product; a block has as many images or channels as needed."""

ADD_COST = 3
"""The time to add a product to its window, relative to the time to copy an element of a window."""

MAX_BLOCK = 2**18
"""The most elements of products in a block of several images."""


def convolve(
    x: Array,
    kernel: Array,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
    groups: int,
) -> Array:
    """The op `convolution`; float16 is computed in float32 and rounded once."""
    if x.dtype == np.float16:
        params = (strides, padding, input_dilation, kernel_dilation, groups)
        return convolve(x.astype(np.float32), kernel.astype(np.float32), *params).astype(np.float16)
    count, channels, *sizes = x.shape
    outputs, inputs, *kernel_sizes = kernel.shape
    pairs = zip(kernel_sizes, kernel_dilation, strict=True)
    widths = [(k - 1) * step + 1 for k, step in pairs]
    padded = _padded_sizes(sizes, padding, input_dilation)
    windows = tuple(
        [(n - width) // stride + 1 for n, width, stride in zip(padded, widths, strides, strict=True)]
    )
    kernel = kernel.reshape(groups, outputs // groups, inputs, *kernel_sizes)
    adds = ADD_COST * outputs * math.prod(sizes) < channels * math.prod(windows)
    if adds and all([1 in steps for steps in zip(strides, input_dilation, strict=True)]):
        geometry = strides, padding, input_dilation, kernel_dilation
        y = _sum_of_products(x.reshape(count, groups, inputs, *sizes), kernel, windows, *geometry)
    else:
        x = _padded(x, padding, input_dilation).reshape(count, groups, inputs, *padded)
        steps = [
            *[size * step for size, step in zip(x.strides[3:], kernel_dilation, strict=True)],
            *[size * step for size, step in zip(x.strides[3:], strides, strict=True)],
        ]
        shape = (count, groups, inputs, *kernel_sizes, *windows)
        parts = as_strided(x, shape, (*x.strides[:3], *steps), writeable=False)
        large_kernel = math.prod(windows) < math.prod(kernel_sizes)
        y = (_by_channels if large_kernel else _by_windows)(parts, kernel)
    return y.reshape(count, outputs, *windows)


# ---- products with windows -----------------------------------------------------------------------------------


def _by_windows(windows: Array, kernel: Array) -> Array:
    """The products of the kernels with all windows of some images at a time; (count, groups, outputs, windows).

    Args:
        windows: of shape (count, groups, inputs, *kernel sizes, *windows).
        kernel: of shape (groups, outputs, inputs, *kernel sizes).
    """
    count, groups = windows.shape[:2]
    outputs, rank = kernel.shape[1], kernel.ndim
    inner, columns = math.prod(kernel.shape[2:]), math.prod(windows.shape[rank:])
    matrix = np.ascontiguousarray(kernel).reshape(groups, outputs, inner)
    y = np.empty((count, groups, outputs, columns), windows.dtype)
    images = max(1, min(-(-MIN_COLUMNS // max(columns, 1)), count))
    order = (*range(1, rank), 0, *range(rank, windows.ndim))
    windows = windows.transpose(order)  # (groups, inputs, *kernel sizes, count, *windows)
    before = (slice(None),) * (rank - 1)
    buffer = np.empty((*windows.shape[: rank - 1], images, *windows.shape[rank:]), windows.dtype)
    for start in range(0, count, images):
        part = windows[(*before, slice(start, start + images))]
        target = y[start : start + images]
        columns_of_block = buffer[(*before, slice(len(target)))]
        np.copyto(columns_of_block, part)
        block = columns_of_block.reshape(groups, inner, len(target) * columns)
        if len(target) == 1:
            np.matmul(matrix, block, target[0])
        else:
            z = np.matmul(matrix, block).reshape(groups, outputs, len(target), columns)
            np.copyto(target, z.transpose(2, 0, 1, 3))
    return y


def _by_channels(windows: Array, kernel: Array) -> Array:
    """The products for few windows of many elements: summed over some channels at a time."""
    count, groups, inputs = windows.shape[:3]
    rank, outputs = kernel.ndim - 3, kernel.shape[1]
    elements, columns = math.prod(kernel.shape[3:]), math.prod(windows.shape[3 + rank :])
    order = (1, 0, *range(3 + rank, windows.ndim), *range(2, 3 + rank))
    windows = windows.transpose(order)  # (groups, count, *windows, inputs, *kernel sizes)
    channels = max(1, min(MIN_COLUMNS // max(elements, 1), inputs))
    y: Array = np.zeros((groups, count * columns, outputs), windows.dtype)
    for start in range(0, inputs, channels):
        part = windows[(slice(None),) * (2 + rank) + (slice(start, start + channels),)]
        weights = kernel[:, :, start : start + channels]
        inner = weights.shape[2] * elements
        rows = part.reshape(groups, count * columns, inner)
        y += np.matmul(rows, for_blas(weights.reshape(groups, outputs, inner)).transpose(0, 2, 1))
    return y.reshape(groups, count, columns, outputs).transpose(1, 0, 3, 2)


# ---- products with elements, and their sums ------------------------------------------------------------------


def _sum_of_products(
    x: Array,
    kernel: Array,
    windows: Sizes,
    strides: Axes,
    padding: Pairs,
    input_dilation: Axes,
    kernel_dilation: Axes,
) -> Array:
    """The products of the kernels with all elements of some images at a time, each added to its window.

    Along each axis the stride or the dilation of the input is 1.
    """
    count, groups, inputs, *sizes = x.shape
    outputs, kernel_sizes = kernel.shape[1], kernel.shape[3:]
    matrix, size = _kernel_matrix(kernel), math.prod(sizes)
    y = np.zeros((count, groups, outputs, *windows), x.dtype)
    x = x.reshape(count, groups, inputs, size)
    images = _images(count, matrix.size // max(inputs, 1) * size)
    z = np.empty((images, *matrix.shape[:2], size), x.dtype)
    parts = z.reshape(images, groups, outputs, *kernel_sizes, *sizes)
    slices: list[tuple[Any, Any]] = []
    for offset in product(*map(range, kernel_sizes)):
        geometry = zip(offset, sizes, windows, strides, padding, input_dilation, kernel_dilation, strict=True)
        pairs = [
            _matching_slices(n, count, stride, before - j * step, dilation)
            for j, n, count, stride, (before, _), dilation, step in geometry
        ]
        full = slice(None)
        of_z = (full, full, full, *offset, *[of_x for of_x, _ in pairs])
        slices.append((of_z, (..., *[of_y for _, of_y in pairs])))
    for start in range(0, count, images):
        target = y[start : start + images]
        n = len(target)
        np.matmul(matrix, x[start : start + images], z[:n])
        for of_z, of_y in slices:
            windows_of_y = target[of_y]
            windows_of_y += parts[:n][of_z]
    return y


def _kernel_matrix(kernel: Array) -> Array:
    """The kernels as matrices of shape (groups, outputs * elements, inputs)."""
    groups, outputs, inputs, *sizes = kernel.shape
    matrices = np.ascontiguousarray(np.moveaxis(kernel, 2, -1))
    return matrices.reshape(groups, outputs * math.prod(sizes), inputs)


def _images(count: int, products: int) -> int:
    """The number of images in a block, from the number of products of an image."""
    return max(1, min(MAX_BLOCK // max(products, 1), count))


# ---- indices -------------------------------------------------------------------------------------------------


def _matching_slices(size: int, windows: int, stride: int, before: int, dilation: int) -> tuple[slice, slice]:
    """The elements i of an axis of the input, and their windows w: stride * w = before + dilation * i."""
    if dilation == 1:
        first = max(-(-before // stride), 0)
        last = max(min((size - 1 + before) // stride + 1, windows), first)
        start = first * stride - before
        return slice(start, start + (last - first) * stride, stride), slice(first, last)
    first = max(-(before // dilation), 0)
    last = max(min((windows - 1 - before) // dilation + 1, size), first)
    start = before + first * dilation
    return slice(first, last), slice(start, start + (last - first) * dilation, dilation)


def _padded_sizes(sizes: Sequence[int], padding: Pairs, dilation: Axes) -> Sizes:
    """The sizes with dilation and padding."""
    geometry = zip(sizes, padding, dilation, strict=True)
    return tuple([((n - 1) * step + 1 if n else 0) + sum(pads) for n, pads, step in geometry])


def _padded(x: Array, padding: Pairs, dilation: Axes) -> Array:
    """x with zeros between and around its elements along the axes from 2 on; negative padding cuts."""
    index: Any
    if all([step == 1 for step in dilation]) and all([pad <= 0 for pads in padding for pad in pads]):
        geometry = zip(x.shape[2:], padding, strict=True)
        index = (..., *[slice(-before, n + after) for n, (before, after) in geometry])
        cut: Array = x[index]
        return cut
    sizes = _padded_sizes(x.shape[2:], padding, dilation)
    y = np.zeros((*x.shape[:2], *sizes), x.dtype)
    pairs = [
        _matching_slices(n, size, 1, before, step)
        for n, size, (before, _), step in zip(x.shape[2:], sizes, padding, dilation, strict=True)
    ]
    index = (..., *[of_y for _, of_y in pairs])
    of_x: Any = (..., *[source for source, _ in pairs])
    y[index] = x[of_x]
    return y
