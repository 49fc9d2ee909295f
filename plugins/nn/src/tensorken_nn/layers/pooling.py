"""Max and average pooling of images, over windows or globally."""

from __future__ import annotations

from collections.abc import Sequence

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.layers.windows import Pair, as_images, pair_of, windows
from tensorken_nn.module import Module, static

# ---- functions ---------------------------------------------------------------------------------------------


def max_pool2d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The maximum of each window; equal maxima share the derivative.

    Args:
        x: of shape (..., channels, height, width).
        kernel_size: rows and columns of a window; one int for both, as for the following arguments.
        stride: the distance between windows; by default their size.
        padding: the number of rows and columns added on each side; they are never the maximum.
        dilation: the distance between the elements of a window.

    Returns:
        A tensor of shape (..., channels, windows down, windows across).

    Raises:
        ShapeError: if x has fewer than three axes, or is smaller than a window.
        ArgumentError: if a number is not positive, or the padding is negative or larger than half a window.

    >>> max_pool2d(tk.arange(16).reshape(1, 4, 4), 2).tolist()
    [[[5, 7], [13, 15]]]
    """
    kernel, strides, pads = _sizes("max_pool2d", kernel_size, stride, padding)
    dilations = pair_of("max_pool2d", "dilation", dilation, 1)
    images = as_images("max_pool2d", x)
    if pads != (0, 0):
        least = float("-inf") if x.dtype.kind == "float" else tk.iinfo(x.dtype).min
        images = tk.pad(images, ((0, 0), (0, 0), *[(n, n) for n in pads]), constant_values=least)
    return _pooled(windows("max_pool2d", images, kernel, strides, dilations).max((1, 2)), x)


def avg_pool2d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window.

    Args:
        x, kernel_size, stride: as for `max_pool2d`.
        padding: the number of rows and columns of zeros added on each side.
        count_include_pad: whether the zeros count as elements of a window.

    Returns:
        A tensor of shape (..., channels, windows down, windows across).

    Raises:
        ShapeError, ArgumentError: as `max_pool2d`.

    >>> avg_pool2d(tk.arange(16).reshape(1, 4, 4), 2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    kernel, strides, pads = _sizes("avg_pool2d", kernel_size, stride, padding)
    images = as_images("avg_pool2d", x)
    if pads == (0, 0):
        return _pooled(windows("avg_pool2d", images, kernel, strides).mean((1, 2)), x)
    around = ((0, 0), (0, 0), *[(n, n) for n in pads])
    patches = windows("avg_pool2d", images.pad(around), kernel, strides)
    if count_include_pad:
        return _pooled(patches.mean((1, 2)), x)
    inside = images.ones_like()[:1, :1].pad(around)  # the counts are the same for all channels
    return _pooled(patches.sum((1, 2)) / windows("avg_pool2d", inside, kernel, strides).sum((1, 2)), x)


def _sizes(
    name: str,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
) -> tuple[Pair, Pair, Pair]:
    """Check kernel size, strides and padding."""
    kernel = pair_of(name, "kernel_size", kernel_size, 1)
    pads = pair_of(name, "padding", padding, 0)
    if any(2 * pad > size for pad, size in zip(pads, kernel, strict=True)):
        raise ArgumentError(
            f"{name}: padding {pads} is larger than half a window of {kernel}; make it smaller"
        )
    return kernel, kernel if stride is None else pair_of(name, "stride", stride, 1), pads


def _pooled(y: Tensor, x: Tensor) -> Tensor:
    """Restore the leading axes of x."""
    return y.reshape((*x.shape[:-2], *y.shape[-2:]))


# ---- modules -----------------------------------------------------------------------------------------------


class MaxPool2d(Module):
    """`max_pool2d` as a module.

    >>> MaxPool2d(2)
    MaxPool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1))
    >>> MaxPool2d(3, stride=2, padding=1)(tk.ones((32, 16, 28, 28))).shape
    (32, 16, 14, 14)
    """

    kernel_size: Pair = static()
    stride: Pair = static()
    padding: Pair = static()
    dilation: Pair = static()

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
    ) -> None:
        self.kernel_size, self.stride, self.padding = _sizes("MaxPool2d", kernel_size, stride, padding)
        self.dilation = pair_of("MaxPool2d", "dilation", dilation, 1)

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., channels, height, width) to (..., channels, windows down, windows across)."""
        return max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation)


class AvgPool2d(Module):
    """`avg_pool2d` as a module.

    >>> AvgPool2d(2)(tk.ones((32, 16, 28, 28))).shape
    (32, 16, 14, 14)
    """

    kernel_size: Pair = static()
    stride: Pair = static()
    padding: Pair = static()
    count_include_pad: bool = static()

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size, self.stride, self.padding = _sizes("AvgPool2d", kernel_size, stride, padding)
        self.count_include_pad = count_include_pad

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., channels, height, width) to (..., channels, windows down, windows across)."""
        return avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.count_include_pad)


class GlobalMaxPool2d(Module):
    """The maximum of each channel.

    >>> GlobalMaxPool2d()(tk.ones((32, 16, 7, 7))).shape
    (32, 16)
    """

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., channels, height, width) to (..., channels)."""
        as_images("GlobalMaxPool2d", x)
        return x.max((-2, -1))


class GlobalAvgPool2d(Module):
    """The mean of each channel.

    >>> GlobalAvgPool2d()(tk.ones((32, 16, 7, 7))).shape
    (32, 16)
    """

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., channels, height, width) to (..., channels)."""
        as_images("GlobalAvgPool2d", x)
        return x.mean((-2, -1))
