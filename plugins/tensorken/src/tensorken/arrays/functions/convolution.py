"""Convolution along any number of axes.

Raises:
    DTypeError: for bools.
    ShapeError: if the shapes do not fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import promoted_tensors
from tensorken.ops.convolution import dilated
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes, Pairs, short_repr
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor

__all__ = ["convolution"]

CONVOLUTION = OPS["convolution"]


def convolution(
    x: ArrayLike,
    kernel: ArrayLike,
    strides: int | Sequence[int] = 1,
    padding: int | str | Sequence[int | Sequence[int]] = 0,
    input_dilation: int | Sequence[int] = 1,
    kernel_dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of images, signals or volumes with kernels: the sum of products of a kernel with each window.

    As usual in networks it is a cross-correlation: kernels are not flipped.  Each number may be given once for all
    spatial axes.  It is JAX's `lax.conv_general_dilated`, with the axes in its default order.

    Args:
        x: of shape (batch, channels, sizes...), with any number of spatial axes.
        kernel: of shape (outputs, channels / groups, sizes...).
        strides: the distances between windows.
        padding: the numbers of zeros before and after each spatial axis: an int for both, or a pair; a negative
            number removes elements.  Or "same", which keeps the sizes, divided by the strides and rounded up; or
            "valid", none.
        input_dilation: the distances between the elements of x, with zeros between; a transposed convolution has the
            strides of the other one here.
        kernel_dilation: the distances between the elements of a window.
        groups: the number of groups of channels; the outputs of a group depend on its channels alone.

    Returns:
        A tensor of shape (batch, outputs, numbers of windows...).

    Raises:
        ShapeError: if the shapes do not fit together, or no window fits.
        ArgumentError: if a number is not an int, or too small.

    >>> import tensorken as tk
    >>> x = tk.arange(5.0).reshape(1, 1, 5)
    >>> tk.convolution(x, tk.tensor([[[1.0, 0.0, -1.0]]])).tolist()
    [[[-2.0, -2.0, -2.0]]]
    >>> tk.convolution(tk.ones((8, 3, 32, 32)), tk.ones((16, 3, 5, 5)), strides=2, padding="same").shape
    (8, 16, 16, 16)
    """
    x, kernel = promoted_tensors("convolution", (x, kernel))
    rank = x.ndim - 2
    if rank < 0 or kernel.ndim != x.ndim:
        raise ShapeError(
            f"convolution: need shapes (batch, channels, *sizes) and (outputs, channels / groups, *sizes) with equally "
            f"many sizes, got {x.shape} and {kernel.shape}; reshape first"
        )
    steps = _positive("strides", strides, rank)
    of_input = _positive("input_dilation", input_dilation, rank)
    of_kernel = _positive("kernel_dilation", kernel_dilation, rank)
    sizes = [dilated(n, step) for n, step in zip(x.shape[2:], of_input, strict=True)]
    widths = [dilated(k, step) for k, step in zip(kernel.shape[2:], of_kernel, strict=True)]
    pads = _pads(padding, sizes, widths, steps)
    (count,) = _positive("groups", groups, 1)
    y: Tensor = apply(CONVOLUTION, (x, kernel), (steps, pads, of_input, of_kernel, count))
    return y


def _positive(what: str, value: int | Sequence[int], rank: int) -> Axes:
    """An int from 1 for each of `rank` axes."""
    numbers = value if isinstance(value, Sequence) else (value,) * rank
    found = tuple([integer_of("convolution", what, n) for n in numbers])
    if len(found) != rank or min(found, default=1) < 1:
        raise ArgumentError(
            f"convolution: {what} must be an int from 1, or {rank} of them, got {short_repr(value)}"
        )
    return found


def _pads(padding: Any, sizes: Sequence[int], widths: Sequence[int], strides: Axes) -> Pairs:
    """The numbers of zeros before and after each axis; `widths` are the sizes of windows."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentError(
                f"convolution: padding must be ints, pairs of ints, 'same' or 'valid', got {padding!r}"
            )
        pads = []
        for n, width, stride in zip(sizes, widths, strides, strict=True):
            missing = max((-(-n // stride) - 1) * stride + width - n, 0) if padding == "same" else 0
            pads.append((missing // 2, missing - missing // 2))
        return tuple(pads)
    given = padding if isinstance(padding, Sequence) else (padding,) * len(sizes)
    pairs = [tuple(one) if isinstance(one, Sequence) else (one, one) for one in given]
    if len(pairs) != len(sizes) or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"convolution: padding must be an int, or for each of {len(sizes)} axes an int or a pair, got "
            f"{short_repr(padding)}"
        )
    first, second = ([integer_of("convolution", "padding", pair[i]) for pair in pairs] for i in (0, 1))
    return tuple(zip(first, second, strict=True))
