"""Windows: the parts of an image that a kernel sees, side by side, for convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorken as tk
from tensorken import Tensor
from tensorken.errors import ArgumentError, ShapeError

Pair = tuple[int, int]
"""One number for the rows of images, one for the columns."""


def pair_of(name: str, what: str, value: int | Sequence[int], least: int) -> Pair:
    """An int for both axes, or one for each."""
    both = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(both) != 2 or not all(type(n) is int and n >= least for n in both):
        raise ArgumentError(f"{name}: {what} must be one or two ints from {least}, got {value}")
    return both


def as_images(name: str, x: Tensor, channels: int | None = None) -> Tensor:
    """x of shape (..., channels, height, width) with one axis in front.

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
    """The elements that each place of a kernel sees.

    Element (a, i, j, b, k, l) of the result is element (a, b, k * stride + i * dilation, l * stride + j * dilation)
    of x, each axis having its own stride and dilation. The axes of the kernel come before b, so a contraction with a
    kernel is one product of matrices, without another copy.

    Args:
        name: of the caller, for messages.
        x: of shape (a, b, height, width).
        sizes: of the kernel.
        strides: how far apart windows are.
        dilations: how far apart the elements of a window are.

    Returns:
        A tensor of shape (a, rows, columns, b, windows down, windows across).

    Raises:
        ShapeError: if not one window fits.
    """
    axes = list(zip(x.shape[2:], sizes, strides, dilations, strict=True))
    counts = tuple([(n - dilation * (size - 1) - 1) // stride + 1 for n, size, stride, dilation in axes])
    if min(counts) < 1:
        raise ShapeError(
            f"{name}: images of {x.shape[2]} x {x.shape[3]}, with padding, are smaller than windows of "
            f"{sizes[0]} x {sizes[1]}" + (f" with dilation {dilations}" if dilations != (1, 1) else "")
        )
    if sizes == strides and dilations == (1, 1):  # they lie side by side
        whole = x[:, :, : counts[0] * sizes[0], : counts[1] * sizes[1]]
        split = whole.reshape((*x.shape[:2], counts[0], sizes[0], counts[1], sizes[1]))
        return split.permute((0, 3, 5, 1, 2, 4))
    for count, (_, size, stride, dilation) in zip(counts[::-1], axes[::-1], strict=True):
        # The images as seen from each place along the last axis; then that one is done, and the other comes last.
        starts = [i * dilation for i in range(size)]
        seen = [x[..., start : start + (count - 1) * stride + 1 : stride] for start in starts]
        x = tk.stack(seen, 1).swapaxes(-1, -2)
    return x
