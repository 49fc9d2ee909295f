"""Convolution of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer, lecun_normal, zeros
from tensorken_nn.layers.windows import Pair, as_images, pair_of, window_counts
from tensorken_nn.module import Module, static


class Conv2d(Module):
    """2D convolution: the sum of products of a kernel with each window of an image, plus a bias, for each output
    channel.

    As usual in networks it is a cross-correlation: kernels are not flipped.

    Args:
        inputs, outputs: the numbers of input and output channels.
        kernel_size: rows and columns of the kernels; one int for both, as for the following arguments.
        stride: the distance between windows.
        padding: the number of rows and columns of zeros on each side; or "same", which keeps the size (with an odd
            number, one more below and on the right); or "valid", none.
        dilation: the distance between the elements of a window.
        groups: the number of groups of channels; outputs of a group depend only on its inputs.
        bias: whether there is a bias.
        key: for the initial parameters, which are on the key's backend.
        weight_initializer, bias_initializer: of the parameters.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a number is not positive (padding: negative), the groups do not divide the channels, or
            padding "same" is combined with a stride.

    >>> layer = Conv2d(3, 16, 3, padding="same", key=tk.random.key(0))
    >>> layer(tk.ones((32, 3, 28, 28))).shape
    (32, 16, 28, 28)
    >>> Conv2d(3, 16, (5, 3), stride=2, bias=False, key=tk.random.key(0))(tk.ones((3, 28, 28))).shape
    (16, 12, 13)
    """

    weight: Tensor  # (outputs, inputs / groups, rows, columns)
    bias: Tensor | None  # (outputs,)
    stride: Pair = static()
    padding: Pair | str = static()
    dilation: Pair = static()
    groups: int = static()

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        key: Tensor,
        weight_initializer: Initializer = lecun_normal,
        bias_initializer: Initializer = zeros,
        dtype: Any = tk.float32,
    ) -> None:
        if inputs < 1 or outputs < 1:
            raise ArgumentError(f"Conv2d: need one input and one output or more, got {inputs}, {outputs}")
        if groups < 1 or inputs % groups or outputs % groups:
            raise ArgumentError(
                f"Conv2d: {groups} groups do not divide {inputs} inputs and {outputs} outputs; choose another number"
            )
        kernel = pair_of("Conv2d", "kernel_size", kernel_size, 1)
        self.stride = pair_of("Conv2d", "stride", stride, 1)
        self.padding = padding if isinstance(padding, str) else pair_of("Conv2d", "padding", padding, 0)
        self.dilation = pair_of("Conv2d", "dilation", dilation, 1)
        self.groups = groups
        _pads("Conv2d", self.padding, kernel, self.stride, self.dilation)
        weight_key, bias_key = tk.random.split(key)
        self.weight = weight_initializer(weight_key, (outputs, inputs // groups, *kernel), dtype)
        self.bias = bias_initializer(bias_key, (outputs,), dtype) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., inputs, height, width) to (..., outputs, windows down, windows across).

        Raises:
            ShapeError: if x has another number of channels, or is smaller than a kernel.
        """
        return conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The function of `Conv2d`: `tk.convolution` for images, with a bias.

    Args:
        x: of shape (..., inputs, height, width).
        weight: of shape (outputs, inputs / groups, rows, columns).
        bias: of shape (outputs,).
        stride, padding, dilation, groups: as for `Conv2d`.

    Returns:
        A tensor of shape (..., outputs, windows down, windows across).

    Raises:
        ShapeError, ArgumentError: if the arguments do not fit together.

    >>> x = tk.arange(16, dtype=tk.float32).reshape(1, 4, 4)
    >>> conv2d(x, tk.ones((1, 1, 3, 3))).tolist()
    [[[45.0, 54.0], [81.0, 90.0]]]
    """
    if weight.ndim != 4 or groups < 1 or weight.shape[0] % groups:
        raise ShapeError(
            f"conv2d: got a weight of shape {weight.shape} in {groups} groups, need (outputs, inputs / groups, rows, "
            f"columns) with outputs that the groups divide"
        )
    outputs, inputs, rows, columns = weight.shape
    kernel = rows, columns
    strides = pair_of("conv2d", "stride", stride, 1)
    dilations = pair_of("conv2d", "dilation", dilation, 1)
    pads = _pads("conv2d", padding, kernel, strides, dilations)
    images = as_images("conv2d", x, inputs * groups)
    height, width = (n + sum(around) for n, around in zip(images.shape[2:], pads, strict=True))
    window_counts("conv2d", (height, width), kernel, strides, dilations)
    y = tk.convolution(images, weight, strides, pads, kernel_dilation=dilations, groups=groups)
    if bias is not None:
        y = y + bias.reshape((outputs, 1, 1))
    return y.reshape((*x.shape[:-3], *y.shape[1:]))


def _pads(
    name: str, padding: int | Sequence[int] | str, kernel: Pair, strides: Pair, dilations: Pair
) -> tuple[Pair, Pair]:
    """The number of zeros before and after each axis."""
    if not isinstance(padding, str):
        down, across = pair_of(name, "padding", padding, 0)
        return (down, down), (across, across)
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding != "same":
        raise ArgumentError(f"{name}: padding must be ints, 'same' or 'valid', got {padding!r}")
    if strides != (1, 1):
        raise ArgumentError(f"{name}: padding 'same' needs stride 1, got {strides}; give the padding as ints")
    down, across = (dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True))
    return (down // 2, down - down // 2), (across // 2, across - across // 2)
