"""Maxima of windows of signals, images and volumes, and their positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import tensorken as tk
from tensorken import Tensor
from tensorken_nn.layers.windows import (
    Padding,
    Pads,
    PerAxis,
    Sizes,
    as_batch,
    checked_window,
    for_rank,
    sizes_for,
    windows,
    with_leading_axes,
    with_remainders,
)
from tensorken_nn.module import Module, static

# ---- functions ---------------------------------------------------------------------------------------------


def _max_pool(
    rank: int,
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window; equal maxima share the derivative.

    Args:
        x: of shape `(..., channels, *sizes)`.
        kernel_size: the sizes of a window; one int for all axes, or one for each, as for the following arguments.
        stride: the distance between windows; by default their size.
        padding: the number of elements added on each side, or for each axis a number or a pair (before, after); at
            most half a window. They are never the maximum.
        dilation: the distance between the elements of a window.
        ceil_mode: whether there is one more window for remaining elements at the end of an axis.

    Returns:
        A tensor of shape `(..., channels, *numbers of windows)`.

    Raises:
        ShapeError: if x has too few axes, or is smaller than a window.
        ArgumentError: if a number is not positive, or the padding is negative or larger than half a window.

    >>> max_pool1d(tk.tensor([[1, 3, 2, 0, 5]]), 2, ceil_mode=True).tolist()
    [[3, 2, 5]]
    >>> max_pool2d(tk.arange(16).reshape(1, 4, 4), 2).tolist()
    [[[5, 7], [13, 15]]]
    """
    (parts,) = _parts(f"max_pool{rank}d", rank, [x], kernel_size, stride, padding, dilation, ceil_mode)
    return with_leading_axes(parts.max(tuple(range(1, rank + 1))), x, rank)


def _max_pool_with_indices(
    rank: int,
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window, and its position, for `max_unpool2d`.

    Args:
        x, kernel_size, stride, padding, dilation, ceil_mode: as for `max_pool2d`.

    Returns:
        The maxima, as from `max_pool2d`, and the positions, int32, both of shape
        `(..., channels, *numbers of windows)`. A position is the number of the element, in row-major order, among those
        of its channel; of equal maxima it is that of the first, and if there is a NaN, that of the first NaN.

    Raises:
        ShapeError, ArgumentError: as `max_pool2d`.

    >>> maxima, indices = max_pool2d_with_indices(tk.tensor([[[1, 5, 2, 0], [3, 4, 9, 8]]]), 2)
    >>> maxima.tolist(), indices.tolist()
    ([[[5, 9]]], [[[1, 6]]])
    """
    name = f"max_pool{rank}d_with_indices"
    numbers = None
    if x.ndim > rank:  # otherwise the shape is refused below
        sizes = x.shape[-rank:]
        numbers = x.constant(range(1, math.prod(sizes) + 1), tk.int32, (1, 1, *sizes))
    parts, places = _parts(name, rank, [x, numbers], kernel_size, stride, padding, dilation, ceil_mode)
    within = tuple(range(1, rank + 1))
    y = parts.max(within, keepdims=True)
    found = ((parts == y) | tk.isnan(parts)) & (places > 0)
    indices = found.where(places, tk.iinfo(tk.int32).max).min(within) - 1
    return with_leading_axes(y.squeeze(within), x, rank), with_leading_axes(indices, x, rank)


def _parts(
    name: str,
    rank: int,
    xs: Sequence[Any],
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: Padding,
    dilation: PerAxis,
    ceil_mode: bool,
) -> list[Tensor]:
    """The windows of tensors with padding that is never the maximum; the shape of the first one is checked."""
    kernel, strides, pads = checked_window(name, rank, kernel_size, stride, padding)
    dilations = sizes_for(name, "dilation", rank, dilation)
    found = []
    for x in xs:
        examples = as_batch(name, rank, x)
        around = with_remainders(examples.shape[2:], kernel, strides, pads, dilations, ceil_mode)
        if any(map(any, around)):
            examples = tk.pad(examples, ((0, 0), (0, 0), *around), constant_values=least_of(x))
        found.append(windows(name, examples, kernel, strides, dilations))
    return found


max_pool1d = for_rank(_max_pool, 1, "max_pool1d")
max_pool2d = for_rank(_max_pool, 2, "max_pool2d")
max_pool3d = for_rank(_max_pool, 3, "max_pool3d")
max_pool1d_with_indices = for_rank(_max_pool_with_indices, 1, "max_pool1d_with_indices")
max_pool2d_with_indices = for_rank(_max_pool_with_indices, 2, "max_pool2d_with_indices")
max_pool3d_with_indices = for_rank(_max_pool_with_indices, 3, "max_pool3d_with_indices")


def least_of(x: Tensor) -> float | int:
    """The smallest number of the dtype of x.

    >>> least_of(tk.ones(2, tk.int32)), least_of(tk.ones(2))
    (-2147483648, -inf)
    """
    return float("-inf") if x.dtype.kind == "float" else tk.iinfo(x.dtype).min


# ---- modules -----------------------------------------------------------------------------------------------


class MaxPool(Module):
    """The base class of `MaxPool1d`, `MaxPool2d` and `MaxPool3d`: `max_pool1d` and so on as modules.

    Args:
        kernel_size, stride, padding, dilation, ceil_mode: as for `max_pool1d`, `max_pool2d` and `max_pool3d`.
        return_indices: whether a call returns the positions of the maxima as well, as `max_pool1d_with_indices` does.
    """

    kernel_size: Sizes = static()
    stride: Sizes = static()
    padding: Pads = static()
    dilation: Sizes = static()
    return_indices: bool = static()
    ceil_mode: bool = static()

    rank: ClassVar[int]

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        name = type(self).__name__
        self.kernel_size, self.stride, self.padding = checked_window(
            name, self.rank, kernel_size, stride, padding
        )
        self.dilation = sizes_for(name, "dilation", self.rank, dilation)
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def __call__(self, x: Tensor) -> Any:
        """Map shape `(..., channels, *sizes)` to `(..., channels, *numbers of windows)`, or to a pair of this shape."""
        pool = _max_pool_with_indices if self.return_indices else _max_pool
        return pool(self.rank, x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool1d(MaxPool, init=False):
    """Maxima of the windows of signals: `max_pool1d` as a module.

    >>> MaxPool1d(3, stride=2, padding=1)(tk.ones((32, 16, 28))).shape
    (32, 16, 14)
    """

    rank = 1


class MaxPool2d(MaxPool, init=False):
    """Maxima of the windows of images: `max_pool2d` as a module.

    >>> MaxPool2d(3, stride=2, padding=1)(tk.ones((32, 16, 28, 28))).shape
    (32, 16, 14, 14)
    """

    rank = 2


class MaxPool3d(MaxPool, init=False):
    """Maxima of the windows of volumes: `max_pool3d` as a module.

    >>> MaxPool3d(3, stride=2, padding=1)(tk.ones((32, 16, 8, 28, 28))).shape
    (32, 16, 4, 14, 14)
    """

    rank = 3
