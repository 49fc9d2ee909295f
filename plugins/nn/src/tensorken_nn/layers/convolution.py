"""Convolutions of signals, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer, uniform
from tensorken_nn.layers.windows import (
    Padding,
    Pads,
    PerAxis,
    Sizes,
    as_batch,
    for_rank,
    pads_for,
    sizes_for,
    window_counts,
    with_leading_axes,
)
from tensorken_nn.module import Module, static

PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""The modes of `tk.pad` by PyTorch's names."""

# ---- functions ---------------------------------------------------------------------------------------------


def _convolve(
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding | str = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """The sum of products of a kernel with each window, plus a bias, for each output channel: `tk.convolution`.

    As usual in networks it is a cross-correlation: kernels are not flipped.

    Args:
        x: of shape `(..., inputs, *sizes)`.
        weight: of shape `(outputs, inputs / groups, *kernel sizes)`.
        bias: of shape (outputs,).
        stride: the distance between windows; one int for all axes, or one for each.
        padding: the number of zeros on each side, or for each axis a number or a pair (before, after); or "same",
            which keeps the sizes (with an odd number, one more behind); or "valid", none.
        dilation: the distance between the elements of a window.
        groups: the number of groups of channels; outputs of a group depend only on its inputs.

    Returns:
        A tensor of shape `(..., outputs, *numbers of windows)`.

    Raises:
        ShapeError: if the shapes do not fit together, or no window fits.
        ArgumentError: if a number is too small, or padding "same" is combined with a stride.

    >>> conv1d(tk.tensor([[1.0, 2.0, 4.0]]), tk.tensor([[[-1.0, 1.0]]])).tolist()
    [[1.0, 2.0]]
    >>> x = tk.arange(16, dtype=tk.float32).reshape(1, 4, 4)
    >>> conv2d(x, tk.ones((1, 1, 3, 3))).tolist()
    [[[45.0, 54.0], [81.0, 90.0]]]
    >>> conv3d(tk.ones((2, 4, 8, 8, 8)), tk.ones((6, 2, 3, 3, 3)), stride=2, padding=1, groups=2).shape
    (2, 6, 4, 4, 4)
    """
    name = f"conv{rank}d"
    check_weight(name, rank, weight, groups, "outputs", "inputs")
    inputs, kernel = weight.shape[1], weight.shape[2:]
    strides = sizes_for(name, "stride", rank, stride)
    dilations = sizes_for(name, "dilation", rank, dilation)
    pads = _pads(name, padding, kernel, strides, dilations)
    examples = as_batch(name, rank, x, inputs * groups)
    lengths = tuple([n + sum(around) for n, around in zip(examples.shape[2:], pads, strict=True)])
    window_counts(name, lengths, kernel, strides, dilations)
    y = tk.convolution(examples, weight, strides, pads, kernel_dilation=dilations, groups=groups)
    return with_leading_axes(with_bias(name, y, bias), x, rank)


def check_weight(name: str, rank: int, weight: Tensor, groups: int, first: str, second: str) -> None:
    """Raise unless a weight has the shape `(first, second / groups, *kernel sizes)`, channels of these two names."""
    if weight.ndim != rank + 2 or groups < 1 or weight.shape[0] % groups:
        raise ShapeError(
            f"{name}: got a weight of shape {weight.shape} in {groups} groups, need ({first}, {second} / groups, "
            f"*kernel sizes) with {rank} kernel sizes and {first} that the groups divide; change the weight or groups"
        )


def with_bias(name: str, y: Tensor, bias: Tensor | None) -> Tensor:
    """y of shape `(count, channels, *sizes)` plus a bias for each channel."""
    if bias is None:
        return y
    if bias.shape != y.shape[1:2]:
        raise ShapeError(
            f"{name}: got a bias of shape {bias.shape}, need ({y.shape[1]},), one for each output"
        )
    return y + bias.reshape((bias.size, *[1] * (y.ndim - 2)))


def _pads(name: str, padding: Padding | str, kernel: Sizes, strides: Sizes, dilations: Sizes) -> Pads:
    """The number of zeros before and after each axis."""
    if not isinstance(padding, str):
        return pads_for(name, len(kernel), padding)
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise ArgumentError(f"{name}: padding must be ints, 'same' or 'valid', got {padding!r}")
    if max(strides) > 1:
        raise ArgumentError(f"{name}: padding 'same' needs stride 1, got {strides}; give the padding as ints")
    totals = [dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)]
    return tuple([(total // 2, total - total // 2) for total in totals])


conv1d = for_rank(_convolve, 1, "conv1d")
conv2d = for_rank(_convolve, 2, "conv2d")
conv3d = for_rank(_convolve, 3, "conv3d")

# ---- modules -----------------------------------------------------------------------------------------------


class Convolution(Module):
    """The base class of convolutions along `rank` axes, one of `Conv1d`, `Conv2d` and `Conv3d`.

    Args:
        inputs, outputs: the numbers of input and output channels.
        kernel_size: the sizes of the kernels; one int for all axes, or one for each, as for the following arguments.
        stride, padding, dilation, groups: as for the functions `conv1d`, `conv2d` and `conv3d`.
        bias: whether there is a bias.
        padding_mode: the elements of the padding: "zeros"; "reflect", the input mirrored at its first and last element;
            "replicate", the first and the last element; or "circular", the elements at the other end.
        key: for the initial parameters, which are on the key's backend.
        weight_initializer, bias_initializer: of the parameters; by default uniform in [-b, b) with
            b = 1 / sqrt(n), where n is the number of inputs of an output, as in PyTorch.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a number is not positive (padding: negative), the groups do not divide the channels,
            padding "same" is combined with a stride, or the padding mode is unknown.
    """

    weight: Tensor  # (outputs, inputs / groups, *kernel sizes)
    bias: Tensor | None  # (outputs,)
    stride: Sizes = static()
    padding: Pads | str = static()
    dilation: Sizes = static()
    groups: int = static()
    padding_mode: str = static()

    rank: ClassVar[int]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Padding | str = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        key: Tensor,
        weight_initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        name = type(self).__name__
        if padding_mode not in PADDING_MODES:
            raise ArgumentError(
                f"{name}: padding_mode must be one of {', '.join(PADDING_MODES)}, got {padding_mode!r}"
            )
        kernel = checked_kernel(name, self.rank, inputs, outputs, kernel_size, groups)
        self.stride = sizes_for(name, "stride", self.rank, stride)
        self.dilation = sizes_for(name, "dilation", self.rank, dilation)
        pads = _pads(name, padding, kernel, self.stride, self.dilation)
        self.padding = padding if isinstance(padding, str) else pads
        self.groups = groups
        self.padding_mode = padding_mode
        self.weight, self.bias = initial_parameters(
            key,
            (outputs, inputs // groups, *kernel),
            outputs if bias else 0,
            weight_initializer,
            bias_initializer,
            dtype,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., inputs, *sizes)` to `(..., outputs, *numbers of windows)`.

        Raises:
            ShapeError: if x has another number of channels, or is smaller than a kernel.
        """
        rank = self.rank
        padding: Padding | str = self.padding
        if self.padding_mode != "zeros":
            name, kernel = f"conv{rank}d", self.weight.shape[2:]
            as_batch(name, rank, x, self.weight.shape[1] * self.groups)  # checks the shape
            pads = _pads(name, padding, kernel, self.stride, self.dilation)
            x = tk.pad(x, [*[(0, 0)] * (x.ndim - rank), *pads], PADDING_MODES[self.padding_mode])
            padding = 0
        return _convolve(rank, x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(Convolution, init=False):
    """Convolution of signals, of shape (..., inputs, length); the arguments are those of `Convolution`.

    >>> Conv1d(3, 16, 5, padding="same", key=tk.random.key(0))(tk.ones((32, 3, 100))).shape
    (32, 16, 100)
    """

    rank = 1


class Conv2d(Convolution, init=False):
    """Convolution of images, of shape (..., inputs, height, width); the arguments are those of `Convolution`.

    >>> Conv2d(3, 16, 3, padding="same", key=tk.random.key(0))(tk.ones((32, 3, 28, 28))).shape
    (32, 16, 28, 28)
    >>> Conv2d(3, 16, (5, 3), stride=2, bias=False, key=tk.random.key(0))(tk.ones((3, 28, 28))).shape
    (16, 12, 13)
    """

    rank = 2


class Conv3d(Convolution, init=False):
    """Convolution of volumes, of shape (..., inputs, depth, height, width); the arguments are those of `Convolution`.

    >>> Conv3d(3, 16, 3, 2, 1, key=tk.random.key(0))(tk.ones((2, 3, 8, 8, 8))).shape
    (2, 16, 4, 4, 4)
    """

    rank = 3


def checked_kernel(
    name: str, rank: int, inputs: int, outputs: int, kernel_size: PerAxis, groups: int
) -> Sizes:
    """The sizes of a kernel, after a check of the numbers of channels."""
    if inputs < 1 or outputs < 1:
        raise ArgumentError(f"{name}: need one input and one output or more, got {inputs}, {outputs}")
    if groups < 1 or inputs % groups or outputs % groups:
        raise ArgumentError(
            f"{name}: {groups} groups do not divide {inputs} inputs and {outputs} outputs; choose another number"
        )
    return sizes_for(name, "kernel_size", rank, kernel_size)


def initial_parameters(
    key: Tensor,
    shape: Sequence[int],
    biases: int,
    weight_initializer: Initializer | None,
    bias_initializer: Initializer | None,
    dtype: Any,
) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias, by default uniform in PyTorch's bounds."""
    weight_key, bias_key = tk.random.split(key)
    usual = uniform(1.0 / math.sqrt(math.prod(shape[1:])))
    weight = (weight_initializer or usual)(weight_key, tuple(shape), dtype)
    return weight, (bias_initializer or usual)(bias_key, (biases,), dtype) if biases else None
