"""Unpooling of signals, images and volumes: maxima back at their positions."""

from __future__ import annotations

import math
from typing import ClassVar

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.layers.windows import (
    Padding,
    Pads,
    PerAxis,
    Sizes,
    as_batch,
    checked_window,
    for_rank,
    sizes_for,
)
from tensorken_nn.module import Module, static

# ---- functions ---------------------------------------------------------------------------------------------


def _max_unpool(
    rank: int,
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    output_size: PerAxis | None = None,
) -> Tensor:
    """Each element at its position, and zeros elsewhere: a partial inverse of `max_pool2d_with_indices`.

    Source: Zeiler, Taylor, Fergus, Adaptive Deconvolutional Networks for Mid and High Level Feature Learning (2011).

    Args:
        x: of shape `(..., channels, *numbers of windows)`.
        indices: of the same shape, ints: the positions among the elements of a channel of the result, in row-major
            order. Of several elements at one position, one is kept.
        kernel_size, stride, padding: those of the pooling.
        output_size: the sizes of the result, one int for all axes, or one for each; they differ by less than a stride
            from the default sizes, (number of windows - 1) * stride + kernel size - padding before and after.

    Returns:
        A tensor of shape `(..., channels, *output_size)`.

    Raises:
        ShapeError: if the shapes of x and the indices differ, or x has too few axes.
        DTypeError: if the indices are no ints.
        ArgumentError: if a number is not positive, or the output size is not possible.
        IndexError: if an index is known to be out of range.

    >>> maxima, indices = tk.tensor([[[5, 9]]]), tk.tensor([[[1, 6]]])
    >>> max_unpool2d(maxima, indices, 2).tolist()
    [[[0, 5, 0, 0], [0, 0, 9, 0]]]
    """
    name = f"max_unpool{rank}d"
    kernel, strides, pads = checked_window(name, rank, kernel_size, stride, padding)
    if indices.dtype.kind != "int":
        raise DTypeError(
            f"{name}: indices must be ints, got {indices.dtype}; use those of max_pool{rank}d_with_indices"
        )
    if indices.shape != x.shape:
        raise ShapeError(
            f"{name}: got x of shape {x.shape} and indices of shape {indices.shape}; they must be equal"
        )
    counts = as_batch(name, rank, x).shape[2:]
    facts = zip(counts, kernel, strides, pads, strict=True)
    usual = tuple([(n - 1) * step + width - sum(around) for n, width, step, around in facts])
    sizes = usual if output_size is None else sizes_for(name, "output_size", rank, output_size)
    if not all(abs(n - m) < step for n, m, step in zip(sizes, usual, strides, strict=True)):
        raise ArgumentError(
            f"{name}: output_size {output_size} differs from {usual} by a stride of {strides} or more; "
            f"choose nearer sizes"
        )
    lead = x.shape[:-rank]
    rows, count = math.prod(lead), math.prod(counts)
    y = tk.zeros_like(x, shape=(rows, math.prod(sizes)))
    of_row = x.constant(range(rows), tk.int32, (rows, 1))
    y = y.at[of_row, indices.reshape((rows, count))].set(x.reshape((rows, count)))
    return y.reshape((*lead, *sizes))


max_unpool1d = for_rank(_max_unpool, 1, "max_unpool1d")
max_unpool2d = for_rank(_max_unpool, 2, "max_unpool2d")
max_unpool3d = for_rank(_max_unpool, 3, "max_unpool3d")

# ---- modules -----------------------------------------------------------------------------------------------


class MaxUnpool(Module):
    """The base class of `MaxUnpool1d`, `MaxUnpool2d` and `MaxUnpool3d`: `max_unpool1d` and so on as modules."""

    kernel_size: Sizes = static()
    stride: Sizes = static()
    padding: Pads = static()

    rank: ClassVar[int]

    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0) -> None:
        self.kernel_size, self.stride, self.padding = checked_window(
            type(self).__name__, self.rank, kernel_size, stride, padding
        )

    def __call__(self, x: Tensor, indices: Tensor, output_size: PerAxis | None = None) -> Tensor:
        """Map two tensors of shape `(..., channels, *numbers of windows)` to shape `(..., channels, *output_size)`."""
        return _max_unpool(self.rank, x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(MaxUnpool, init=False):
    """Maxima of signals at their positions: `max_unpool1d` as a module.

    >>> from tensorken_nn import MaxPool1d
    >>> maxima, indices = MaxPool1d(2, return_indices=True)(tk.ones((4, 16, 28)))
    >>> MaxUnpool1d(2)(maxima, indices).shape
    (4, 16, 28)
    """

    rank = 1


class MaxUnpool2d(MaxUnpool, init=False):
    """Maxima of images at their positions: `max_unpool2d` as a module.

    >>> from tensorken_nn import MaxPool2d
    >>> maxima, indices = MaxPool2d(2, return_indices=True)(tk.ones((4, 16, 28, 29)))
    >>> MaxUnpool2d(2)(maxima, indices, (28, 29)).shape
    (4, 16, 28, 29)
    """

    rank = 2


class MaxUnpool3d(MaxUnpool, init=False):
    """Maxima of volumes at their positions: `max_unpool3d` as a module.

    >>> from tensorken_nn import MaxPool3d
    >>> maxima, indices = MaxPool3d(2, return_indices=True)(tk.ones((4, 2, 6, 8, 8)))
    >>> MaxUnpool3d(2)(maxima, indices).shape
    (4, 2, 6, 8, 8)
    """

    rank = 3
