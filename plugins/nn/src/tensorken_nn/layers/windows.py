"""Sliding windows of signals, images and volumes, and the arguments that describe them."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError

Sizes: TypeAlias = tuple[int, ...]
"""A number for each spatial axis."""

Pads: TypeAlias = tuple[tuple[int, int], ...]
"""The numbers of elements before and after each spatial axis."""

PerAxis: TypeAlias = int | Sequence[int]
"""One int for all spatial axes, or one for each."""

Padding: TypeAlias = int | Sequence[int | Sequence[int]]
"""One int for all spatial axes; or for each an int, for both sides, or a pair of ints, before and after."""

AXES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
"""The names of the spatial axes by their number."""

P = ParamSpec("P")
T = TypeVar("T")


def for_rank(function: Callable[Concatenate[int, P], T], rank: int, name: str) -> Callable[P, T]:
    """The function of a rank and further arguments, for `rank` spatial axes, under a name."""

    @functools.wraps(function)
    def of_rank(*arguments: P.args, **keywords: P.kwargs) -> T:
        return function(rank, *arguments, **keywords)

    signature = inspect.signature(function)
    of_rank.__signature__ = signature.replace(  # type: ignore[attr-defined]  # inspect reads it
        parameters=list(signature.parameters.values())[1:]
    )
    of_rank.__name__ = of_rank.__qualname__ = name
    return of_rank


# ---- arguments ---------------------------------------------------------------------------------------------


def sizes_for(name: str, what: str, rank: int, value: PerAxis, least: int = 1) -> Sizes:
    """Check one int for all axes, or an int for each axis.

    >>> sizes_for("conv2d", "stride", 2, 3)
    (3, 3)
    """
    sizes = tuple(value) if isinstance(value, Sequence) else (value,) * rank
    if len(sizes) != rank or not all(type(n) is int and n >= least for n in sizes):
        several = f", or {rank} of them" if rank > 1 else ""
        raise ArgumentError(f"{name}: {what} must be an int from {least}{several}, got {value}")
    return sizes


def pads_for(name: str, rank: int, value: Padding) -> Pads:
    """Check the numbers of elements to add before and after each axis.

    >>> pads_for("conv2d", 2, (1, (0, 2)))
    ((1, 1), (0, 2))
    """
    given = value if isinstance(value, Sequence) else (value,) * rank
    pads = tuple([tuple(pad) if isinstance(pad, Sequence) else (pad, pad) for pad in given])
    if len(pads) != rank or not all(
        len(pad) == 2 and all(type(n) is int and n >= 0 for n in pad) for pad in pads
    ):
        raise ArgumentError(
            f"{name}: padding must be an int from 0, or for each of {rank} axes an int or a pair of ints, got {value}"
        )
    return pads  # type: ignore[return-value]  # they are pairs


def as_batch(name: str, rank: int, x: Tensor, channels: int | None = None) -> Tensor:
    """Reshape x from `(..., channels, *sizes)` to `(count, channels, *sizes)`.

    Raises:
        ShapeError: if x has too few axes, or another number of channels.
    """
    if x.ndim <= rank or channels not in (None, x.shape[-rank - 1]):
        needed = ", ".join(["...", "channels" if channels is None else str(channels), *AXES[rank]])
        raise ShapeError(f"{name}: got shape {x.shape}, need ({needed}); reshape the input")
    if x.ndim == rank + 2:
        return x
    return x.reshape((math.prod(x.shape[: -rank - 1]), *x.shape[-rank - 1 :]))


def with_leading_axes(y: Tensor, x: Tensor, rank: int) -> Tensor:
    """y of shape `(count, channels, *sizes)` with the axes that `as_batch` joined in x."""
    return y if x.ndim == rank + 2 else y.reshape((*x.shape[: -rank - 1], *y.shape[1:]))


def checked_window(
    name: str, rank: int, kernel_size: PerAxis, stride: PerAxis | None, padding: Padding
) -> tuple[Sizes, Sizes, Pads]:
    """Check kernel size, strides and padding."""
    kernel = sizes_for(name, "kernel_size", rank, kernel_size)
    pads = pads_for(name, rank, padding)
    if any(2 * max(pad) > size for pad, size in zip(pads, kernel, strict=True)):
        raise ArgumentError(
            f"{name}: padding {padding} is larger than half a window of {kernel}; make it smaller"
        )
    return kernel, kernel if stride is None else sizes_for(name, "stride", rank, stride), pads


# ---- windows -----------------------------------------------------------------------------------------------


def windows(name: str, x: Tensor, sizes: Sizes, strides: Sizes, dilations: Sizes | None = None) -> Tensor:
    """All windows along the last axes.

    In two dimensions, element (a, i, j, b, k, l) of the result is element
    (a, b, k * stride + i * dilation, l * stride + j * dilation) of x, with a stride and a dilation for each axis.

    Args:
        name: of the caller, for error messages.
        x: of shape `(a, b, *axes)`.
        sizes: of a window.
        strides: the distances between windows.
        dilations: the distances between the elements of a window; by default 1.

    Returns:
        A tensor of shape `(a, *sizes, b, *numbers of windows)`.

    Raises:
        ShapeError: if no window fits.
    """
    dilations = dilations or (1,) * len(sizes)
    counts = window_counts(name, x.shape[2:], sizes, strides, dilations)
    for axis in range(
        -1, -len(sizes) - 1, -1
    ):  # slices for each element of a window along the last axis first
        starts = [dilations[axis] * i for i in range(sizes[axis])]
        x = tk.stack(_parts(x, axis, starts, counts[axis], strides[axis]), 1)
    return x


def window_counts(name: str, lengths: Sizes, sizes: Sizes, strides: Sizes, dilations: Sizes) -> Sizes:
    """The numbers of windows along each axis.

    Args:
        name: of the caller, for error messages.
        lengths: of the axes with their padding.
        sizes, strides, dilations: as for `windows`.

    Raises:
        ShapeError: if no window fits.
    """
    axes = zip(lengths, sizes, strides, dilations, strict=True)
    counts = tuple([(n - dilation * (size - 1) - 1) // stride + 1 for n, size, stride, dilation in axes])
    if min(counts) < 1:
        with_dilation = f" with dilation {dilations}" if max(dilations) > 1 else ""
        raise ShapeError(
            f"{name}: inputs of {' x '.join(map(str, lengths))}, with padding, are smaller than windows of "
            f"{' x '.join(map(str, sizes))}{with_dilation}; pad the input or use smaller windows"
        )
    return counts


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


def with_remainders(
    sizes: Sizes, kernel: Sizes, strides: Sizes, pads: Pads, dilations: Sizes, ceil_mode: bool
) -> Pads:
    """The padding; in ceil mode with elements behind each axis for a window that begins before its end."""
    if not ceil_mode:
        return pads
    around = []
    for n, width, stride, (before, after), step in zip(sizes, kernel, strides, pads, dilations, strict=True):
        length, reach = n + before + after, step * (width - 1) + 1
        last = -(-(length - reach) // stride) * stride  # the start of the last window
        last = last - stride if last >= n + before else last
        around.append((before, after + max(last + reach - length, 0)))
    return tuple(around)
