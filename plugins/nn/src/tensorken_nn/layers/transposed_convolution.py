"""Transposed convolutions of signals, images and volumes."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer
from tensorken_nn.layers.convolution import check_weight, checked_kernel, initial_parameters, with_bias
from tensorken_nn.layers.windows import (
    Padding,
    Pads,
    PerAxis,
    Sizes,
    as_batch,
    for_rank,
    pads_for,
    sizes_for,
    with_leading_axes,
)
from tensorken_nn.module import Module, static

# ---- functions ---------------------------------------------------------------------------------------------


def _convolve_transposed(
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: Padding = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Tensor:
    """Each element of the input times a kernel, added at its window of the output: the transpose of a convolution.

    It is the derivative of the convolution with the same weight, stride, padding, dilation and groups with respect to
    the input of that.

    Args:
        x: of shape `(..., inputs, *sizes)`.
        weight: of shape `(inputs, outputs / groups, *kernel sizes)`.
        bias: of shape (outputs,).
        stride: the distance between the windows of neighbouring elements; one int for all axes, or one for each.
        padding: the number of elements that are removed from each side of the output, or for each axis a number or a
            pair (before, after): the padding of the other convolution.
        output_padding: the number of elements that are added behind each axis of the output; less than the stride
            or the dilation.
        groups: the number of groups of channels.
        dilation: the distance between the elements of a window.

    Returns:
        A tensor of shape `(..., outputs, *lengths)`, each length being
        (size - 1) * stride - padding before and after + dilation * (kernel size - 1) + output_padding + 1.

    Raises:
        ShapeError: if the shapes do not fit together, or the output is empty.
        ArgumentError: if a number is too small or too large.

    >>> conv_transpose1d(tk.tensor([[1.0, 2.0]]), tk.tensor([[[1.0, 10.0, 100.0]]]), stride=2).tolist()
    [[1.0, 10.0, 102.0, 20.0, 200.0]]
    >>> conv_transpose2d(tk.ones((8, 4, 7, 7)), tk.ones((4, 2, 3, 3)), None, 2, 1, 1).shape
    (8, 2, 14, 14)
    """
    name = f"conv_transpose{rank}d"
    check_weight(name, rank, weight, groups, "inputs", "outputs")
    inputs, outputs, *kernel = weight.shape
    strides = sizes_for(name, "stride", rank, stride)
    dilations = sizes_for(name, "dilation", rank, dilation)
    added = _output_padding(name, output_padding, strides, dilations)
    examples = as_batch(name, rank, x, inputs)
    widths = [step * (size - 1) for size, step in zip(kernel, dilations, strict=True)]
    cuts = pads_for(name, rank, padding)
    pads = [
        (width - before, width - after + more)
        for width, (before, after), more in zip(widths, cuts, added, strict=True)
    ]
    facts = zip(examples.shape[2:], strides, pads, widths, strict=True)
    lengths = [(n - 1) * step + sum(around) - width + 1 for n, step, around, width in facts]
    if min(lengths) < 1:
        raise ShapeError(
            f"{name}: an input of shape {x.shape} with padding {padding} gives an output of "
            f"{' x '.join(map(str, lengths))}; use less padding"
        )
    # The kernels of the other convolution, flipped, from its outputs to its inputs.
    turned = weight.reshape((groups, inputs // groups, outputs, *kernel)).swapaxes(1, 2)
    turned = turned.reshape((groups * outputs, inputs // groups, *kernel)).flip(tuple(range(2, rank + 2)))
    y = tk.convolution(examples, turned, 1, pads, strides, dilations, groups)
    return with_leading_axes(with_bias(name, y, bias), x, rank)


def _output_padding(name: str, value: PerAxis, strides: Sizes, dilations: Sizes) -> Sizes:
    added = sizes_for(name, "output_padding", len(strides), value, 0)
    if any(n >= max(steps) for n, *steps in zip(added, strides, dilations, strict=True)):
        raise ArgumentError(
            f"{name}: output_padding must be less than the stride {strides} or the dilation {dilations}, got {value}"
        )
    return added


conv_transpose1d = for_rank(_convolve_transposed, 1, "conv_transpose1d")
conv_transpose2d = for_rank(_convolve_transposed, 2, "conv_transpose2d")
conv_transpose3d = for_rank(_convolve_transposed, 3, "conv_transpose3d")

# ---- modules -----------------------------------------------------------------------------------------------


class TransposedConvolution(Module):
    """The base class of transposed convolutions: `ConvTranspose1d`, `ConvTranspose2d` and `ConvTranspose3d`.

    Args:
        inputs, outputs: the numbers of input and output channels.
        kernel_size: the sizes of the kernels; one int for all axes, or one for each, as for the following arguments.
        stride, padding, output_padding, groups, dilation: as for the functions `conv_transpose1d` and so on.
        bias, key, dtype: as for `Convolution`.
        weight_initializer, bias_initializer: of the parameters; by default uniform in [-b, b) with
            b = 1 / sqrt(outputs / groups * elements of a kernel), as in PyTorch.

    Raises:
        ArgumentError: if a number is too small or too large, or the groups do not divide the channels.
    """

    weight: Tensor  # (inputs, outputs / groups, *kernel sizes)
    bias: Tensor | None  # (outputs,)
    stride: Sizes = static()
    padding: Pads = static()
    output_padding: Sizes = static()
    groups: int = static()
    dilation: Sizes = static()

    rank: ClassVar[int]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Padding = 0,
        output_padding: PerAxis = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: PerAxis = 1,
        *,
        key: Tensor,
        weight_initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        name = type(self).__name__
        kernel = checked_kernel(name, self.rank, inputs, outputs, kernel_size, groups)
        self.stride = sizes_for(name, "stride", self.rank, stride)
        self.padding = pads_for(name, self.rank, padding)
        self.dilation = sizes_for(name, "dilation", self.rank, dilation)
        self.output_padding = _output_padding(name, output_padding, self.stride, self.dilation)
        self.groups = groups
        self.weight, self.bias = initial_parameters(
            key,
            (inputs, outputs // groups, *kernel),
            outputs if bias else 0,
            weight_initializer,
            bias_initializer,
            dtype,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., inputs, *sizes)` to `(..., outputs, *lengths)`.

        Raises:
            ShapeError: if x has another number of channels, or the padding leaves no output.
        """
        return _convolve_transposed(
            self.rank,
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(TransposedConvolution, init=False):
    """Transposed convolution of signals, of shape (..., inputs, length).

    >>> ConvTranspose1d(3, 2, 4, stride=2, padding=1, key=tk.random.key(0))(tk.ones((5, 3, 8))).shape
    (5, 2, 16)
    """

    rank = 1


class ConvTranspose2d(TransposedConvolution, init=False):
    """Transposed convolution of images, of shape (..., inputs, height, width).

    >>> ConvTranspose2d(3, 2, 3, 2, 1, output_padding=1, key=tk.random.key(0))(tk.ones((5, 3, 7, 7))).shape
    (5, 2, 14, 14)
    """

    rank = 2


class ConvTranspose3d(TransposedConvolution, init=False):
    """Transposed convolution of volumes, of shape (..., inputs, depth, height, width).

    >>> ConvTranspose3d(3, 2, 2, stride=2, key=tk.random.key(0))(tk.ones((1, 3, 2, 3, 4))).shape
    (1, 2, 4, 6, 8)
    """

    rank = 3
