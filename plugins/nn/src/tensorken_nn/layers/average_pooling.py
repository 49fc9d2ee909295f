"""Means of windows of signals, images and volumes."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.layers.windows import (
    Padding,
    Pads,
    PerAxis,
    Sizes,
    as_batch,
    checked_window,
    for_rank,
    windows,
    with_leading_axes,
    with_remainders,
)
from tensorken_nn.module import Module, static

# ---- functions ---------------------------------------------------------------------------------------------


def _avg_pool(
    rank: int,
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    Args:
        x, kernel_size, stride: as for `max_pool2d`.
        padding: the number of zeros on each side, or for each axis a number or a pair (before, after); at most half a
            window.
        ceil_mode: whether there is one more window for remaining elements at the end of an axis; its mean is over
            the elements and the padding alone.
        count_include_pad: whether the padding counts as elements of a window.
        divisor_override: a number to divide the sum of a window by, instead of its number of elements.

    Returns:
        A tensor of shape `(..., channels, *numbers of windows)`.

    Raises:
        ShapeError, ArgumentError: as `max_pool2d`.

    >>> import tensorken as tk
    >>> avg_pool2d(tk.arange(16).reshape(1, 4, 4), 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    >>> avg_pool1d(tk.tensor([[1.0, 3.0, 2.0]]), 2, padding=((1, 0),), count_include_pad=False).tolist()
    [[1.0, 2.5]]
    """
    name = f"avg_pool{rank}d"
    kernel, strides, pads = checked_window(name, rank, kernel_size, stride, padding)
    if divisor_override is not None and divisor_override < 1:
        raise ArgumentError(f"{name}: divisor_override must be an int from 1, got {divisor_override}")
    examples = as_batch(name, rank, x)
    sizes = examples.shape[2:]
    around = with_remainders(sizes, kernel, strides, pads, (1,) * rank, ceil_mode)
    if any(map(any, around)):
        examples = examples.pad(((0, 0), (0, 0), *around))
    parts, within = windows(name, examples, kernel, strides), tuple(range(1, rank + 1))
    if divisor_override is not None:
        return with_leading_axes(parts.sum(within) / divisor_override, x, rank)
    found, counts = parts.shape[rank + 2 :], []
    for size, count, (before, after), width, step in zip(sizes, found, pads, kernel, strides, strict=True):
        first, end = (-before, size + after) if count_include_pad else (0, size)
        starts = [step * i - before for i in range(count)]
        counts.append([min(start + width, end) - max(start, first) for start in starts])
    divisors = [math.prod(numbers) for numbers in itertools.product(*counts)]
    if set(divisors) == {math.prod(kernel)}:
        return with_leading_axes(parts.mean(within), x, rank)
    y = parts.sum(within)
    return with_leading_axes(y / y.constant(divisors, y.dtype, found), x, rank)


avg_pool1d = for_rank(_avg_pool, 1, "avg_pool1d")
avg_pool2d = for_rank(_avg_pool, 2, "avg_pool2d")
avg_pool3d = for_rank(_avg_pool, 3, "avg_pool3d")

# ---- modules -----------------------------------------------------------------------------------------------


class AvgPool(Module):
    """The base class of `AvgPool1d`, `AvgPool2d` and `AvgPool3d`: `avg_pool1d` and so on as modules."""

    kernel_size: Sizes = static()
    stride: Sizes = static()
    padding: Pads = static()
    ceil_mode: bool = static()
    count_include_pad: bool = static()
    divisor_override: int | None = static()

    rank: ClassVar[int]

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        name = type(self).__name__
        self.kernel_size, self.stride, self.padding = checked_window(
            name, self.rank, kernel_size, stride, padding
        )
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., channels, *sizes)` to `(..., channels, *numbers of windows)`."""
        return _avg_pool(
            self.rank,
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool1d(AvgPool, init=False):
    """Means of the windows of signals: `avg_pool1d` as a module.

    >>> import tensorken as tk
    >>> AvgPool1d(3, stride=2, padding=1)(tk.ones((32, 16, 28))).shape
    (32, 16, 14)
    """

    rank = 1


class AvgPool2d(AvgPool, init=False):
    """Means of the windows of images: `avg_pool2d` as a module.

    >>> import tensorken as tk
    >>> AvgPool2d(3, stride=2, padding=1)(tk.ones((32, 16, 28, 28))).shape
    (32, 16, 14, 14)
    """

    rank = 2


class AvgPool3d(AvgPool, init=False):
    """Means of the windows of volumes: `avg_pool3d` as a module.

    >>> import tensorken as tk
    >>> AvgPool3d(3, stride=2, padding=1)(tk.ones((32, 16, 8, 28, 28))).shape
    (32, 16, 4, 14, 14)
    """

    rank = 3
