"""The windows of a convolution, element by element: those that meet padding, or lie between elements, hold zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.subject import Array


def windows_of(x: Array, kernel: tuple[int, ...], *params: Any) -> Array:
    """The elements of each window.

    Args:
        x: of shape (batch, channels, *sizes).
        kernel: the shape of the kernel.
        params: those of the op `convolution`.

    Returns:
        An array of shape (batch, groups, 1, windows, elements of a window), for kernels of shape (1, groups, outputs,
        1, elements of a window).

    >>> windows_of(np.arange(4).reshape(1, 1, 4), (1, 1, 2), (2,), ((1, 1),), (1,), (1,), 1)[0, 0, 0].tolist()
    [[0, 0], [1, 2], [3, 0]]
    """
    strides, padding, input_dilation, kernel_dilation, groups = params
    rank = x.ndim - 2
    for i, (k, stride, (before, after), dilation, step) in enumerate(
        zip(kernel[2:], strides, padding, input_dilation, kernel_dilation, strict=True)
    ):
        axis = 2 + 2 * i
        size = x.shape[axis]
        count = ((size - 1) * dilation + 1 + before + after - (k - 1) * step - 1) // stride + 1
        place = np.arange(count)[:, None] * stride + np.arange(k) * step - before
        found = (place % dilation == 0) & (place >= 0) & (place // dilation < size)
        # the axis becomes windows and elements
        taken = np.take(x, np.clip(place // dilation, 0, size - 1), axis)
        inside = found.reshape((1,) * axis + found.shape + (1,) * (x.ndim - axis - 1))
        x = np.where(inside, taken, np.zeros((), x.dtype))
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    of_windows, of_kernel = [3 + 2 * i for i in range(rank)], [4 + 2 * i for i in range(rank)]
    x = x.transpose(0, 1, *of_windows, 2, *of_kernel)
    counts, elements = x.shape[2 : 2 + rank], x.shape[2 + rank :]
    return x.reshape(*x.shape[:2], 1, int(np.prod(counts)), int(np.prod(elements)))


def kernels_of(kernel: Array, groups: int) -> Array:
    """The kernel, which broadcasts against the windows.

    >>> kernels_of(np.ones((6, 2, 3)), 2).shape
    (1, 2, 3, 1, 6)
    """
    outputs = kernel.shape[0] // groups
    return kernel.reshape(1, groups, outputs, 1, int(np.prod(kernel.shape[1:])))
