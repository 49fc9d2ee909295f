"""Sliding windows of images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError

Pair = tuple[int, int]
"""A number for rows and a number for columns."""


def pair_of(name: str, what: str, value: int | Sequence[int], least: int) -> Pair:
    """Check one int for both axes, or a pair of ints."""
    both = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(both) != 2 or not all(type(n) is int and n >= least for n in both):
        raise ArgumentError(f"{name}: {what} must be one or two ints from {least}, got {value}")
    return both


def as_images(name: str, x: Tensor, channels: int | None = None) -> Tensor:
    """Reshape x from (..., channels, height, width) to (count, channels, height, width).

    Raises:
        ShapeError: if x has too few axes, or another number of channels.
    """
    if x.ndim < 3 or channels not in (None, x.shape[-3]):
        needed = "channels" if channels is None else channels
        raise ShapeError(
            f"{name}: got shape {x.shape}, need (..., {needed}, height, width); reshape the input"
        )
    return x if x.ndim == 4 else x.reshape((math.prod(x.shape[:-3]), *x.shape[-3:]))


def windows(name: str, x: Tensor, sizes: Pair, strides: Pair, dilations: Pair = (1, 1)) -> Tensor:
    """All windows of images.

    Element (a, i, j, b, k, l) of the result is element (a, b, k * stride + i * dilation, l * stride + j * dilation)
    of x, with a stride and a dilation for each axis.

    Args:
        name: of the caller, for error messages.
        x: of shape (a, b, height, width).
        sizes: of a window.
        strides: the distances between windows.
        dilations: the distances between the elements of a window.

    Returns:
        A tensor of shape (a, rows, columns, b, windows down, windows across).

    Raises:
        ShapeError: if no window fits.
    """
    counts = window_counts(name, (x.shape[2], x.shape[3]), sizes, strides, dilations)
    for axis in (-1, -2):  # slices for each column of the kernel, then for each row
        starts = [dilations[axis] * i for i in range(sizes[axis])]
        x = tk.stack(_parts(x, axis, starts, counts[axis], strides[axis]), 1)
    return x


def window_counts(name: str, images: Pair, sizes: Pair, strides: Pair, dilations: Pair) -> Pair:
    """The numbers of windows down and across.

    Args:
        name: of the caller, for error messages.
        images: the height and width of an image with its padding.
        sizes, strides, dilations: as for `windows`.

    Raises:
        ShapeError: if no window fits.
    """
    axes = zip(images, sizes, strides, dilations, strict=True)
    down, across = [(n - dilation * (size - 1) - 1) // stride + 1 for n, size, stride, dilation in axes]
    if min(down, across) < 1:
        raise ShapeError(
            f"{name}: images of {images[0]} x {images[1]}, with padding, are smaller than windows of "
            f"{sizes[0]} x {sizes[1]}" + (f" with dilation {dilations}" if dilations != (1, 1) else "")
        )
    return down, across


def _parts(x: Tensor, axis: int, starts: Sequence[int], count: int, stride: int) -> list[Tensor]:
    """Slices of `count` elements from each start, `stride` apart, along an axis counted from the end."""
    trailing = [slice(None)] * (-1 - axis)
    if stride == 1:
        return [x[(..., slice(start, start + count), *trailing)] for start in starts]
    # Split the axis into rows of one stride, so that each slice is a column of it: a view, unlike a slice with a step.
    rows = starts[-1] // stride + count
    shape = x.shape[:axis]
    rest = x.shape[len(shape) + 1 :]
    missing = rows * stride - x.shape[axis]
    if missing > 0:
        x = x.pad((*[(0, 0)] * len(shape), (0, missing), *[(0, 0)] * len(rest)))
    x = x[(..., slice(rows * stride), *trailing)].reshape((*shape, rows, stride, *rest))
    return [
        x[(..., slice(start // stride, start // stride + count), start % stride, *trailing)]
        for start in starts
    ]
