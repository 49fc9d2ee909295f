"""Pooling of signals, images and volumes to a given size, or to one number for each channel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ShapeError
from tensorken_nn.layers.max_pooling import least_of
from tensorken_nn.layers.windows import as_batch, for_rank, sizes_for, with_leading_axes
from tensorken_nn.module import Module, static

AdaptiveSizes = int | None | Sequence[int | None]
"""The number of windows along all axes, or along each; None keeps the size of the axis."""

# ---- functions ------------------------------------------------------------------------------------


def _adaptive_max_pool(rank: int, x: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """The maximum of each of a given number of windows, which cover each axis; equal maxima share the derivative.

    Args:
        x: of shape `(..., channels, *sizes)`.
        output_size: the number of windows along all axes, or along each; None keeps the size of an axis. Window i of
            m windows of an axis of size n has the elements from floor(i * n / m) to ceil((i + 1) * n / m), exclusive.

    Returns:
        A tensor of shape `(..., channels, *output_size)`.

    Raises:
        ShapeError: if x has too few axes, or an empty one.
        ArgumentError: if a size is not positive.

    >>> adaptive_max_pool1d(tk.tensor([[1, 3, 2, 0, 5]]), 2).tolist()
    [[3, 5]]
    """
    return adapted("max", rank, x, output_size)


def _adaptive_avg_pool(rank: int, x: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """The mean of each of a given number of windows, which cover each axis.

    Args:
        x, output_size: as for `adaptive_max_pool2d`.

    Returns:
        A tensor of shape `(..., channels, *output_size)`.

    Raises:
        ShapeError, ArgumentError: as `adaptive_max_pool2d`.

    >>> adaptive_avg_pool1d(tk.tensor([[1.0, 3.0, 2.0, 0.0, 5.0]]), 2).tolist()
    [[2.0, 2.3333332538604736]]
    """
    return adapted("avg", rank, x, output_size)


def adapted(kind: str, rank: int, x: Tensor, output_size: AdaptiveSizes) -> Tensor:
    """Adaptive pooling of a kind, "max" or "avg", along `rank` axes."""
    name = f"adaptive_{kind}_pool{rank}d"
    y = as_batch(name, rank, x)
    sizes = y.shape[2:]
    given = output_size if isinstance(output_size, Sequence) else (output_size,) * rank
    if len(given) == rank:
        given = [n if wanted is None else wanted for wanted, n in zip(given, sizes, strict=True)]
    counts = sizes_for(name, "output_size", rank, given)  # type: ignore[arg-type]  # it refuses None
    if not all(sizes):
        raise ShapeError(
            f"{name}: shape {x.shape} has an empty axis, whose windows have no elements; drop it"
        )
    inside, widths = None, []
    for axis, (n, m) in enumerate(
        zip(sizes, counts, strict=True)
    ):  # each becomes two: windows and their elements
        place = 2 + 2 * axis
        bounds = [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        width = max([end - start for start, end in bounds])
        if n % m:
            indices = [min(start + j, end - 1) for start, end in bounds for j in range(width)]
            y = tk.take(y, indices, axis=place)
            of_axis = [start + j < end for start, end in bounds for j in range(width)]
            mask = y.constant(of_axis, tk.bool_, (m, width, *[1] * (2 * (rank - axis - 1))))
            inside = mask if inside is None else inside & mask
        y = y.reshape((*y.shape[:place], m, width, *y.shape[place + 1 :]))
        widths.append([end - start for start, end in bounds])
    within = tuple(range(3, 3 + 2 * rank, 2))
    if kind == "max":
        y = (y if inside is None else inside.where(y, least_of(y))).max(within)
    elif inside is None:
        y = y.mean(within)
    else:
        y = inside.where(y, 0).sum(within)
        divisors = [math.prod(numbers) for numbers in itertools.product(*widths)]
        y = y / y.constant(divisors, y.dtype, counts)
    return with_leading_axes(y, x, rank)


adaptive_max_pool1d = for_rank(_adaptive_max_pool, 1, "adaptive_max_pool1d")
adaptive_max_pool2d = for_rank(_adaptive_max_pool, 2, "adaptive_max_pool2d")
adaptive_max_pool3d = for_rank(_adaptive_max_pool, 3, "adaptive_max_pool3d")
adaptive_avg_pool1d = for_rank(_adaptive_avg_pool, 1, "adaptive_avg_pool1d")
adaptive_avg_pool2d = for_rank(_adaptive_avg_pool, 2, "adaptive_avg_pool2d")
adaptive_avg_pool3d = for_rank(_adaptive_avg_pool, 3, "adaptive_avg_pool3d")

# ---- modules -----------------------------------------------------------------------------------------------


class AdaptivePool(Module):
    """The base class of adaptive pooling: `adaptive_max_pool1d` and so on as modules."""

    output_size: int | tuple[int | None, ...] | None = static()

    rank: ClassVar[int]
    kind: ClassVar[str]

    def __init__(self, output_size: AdaptiveSizes) -> None:
        self.output_size = tuple(output_size) if isinstance(output_size, Sequence) else output_size

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., channels, *sizes)` to `(..., channels, *output_size)`."""
        return adapted(self.kind, self.rank, x, self.output_size)


class GlobalPool(Module):
    """The base class of pooling over all spatial axes."""

    rank: ClassVar[int]
    kind: ClassVar[str]

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., channels, *sizes)` to (..., channels)."""
        as_batch(type(self).__name__, self.rank, x)
        axes = tuple(range(-self.rank, 0))
        return x.max(axes) if self.kind == "max" else x.mean(axes)


class AdaptiveMaxPool1d(AdaptivePool, init=False):
    """Maxima of a given number of windows of signals: `adaptive_max_pool1d` as a module.

    >>> AdaptiveMaxPool1d(7)(tk.ones((4, 16, 28))).shape
    (4, 16, 7)
    """

    rank, kind = 1, "max"


class AdaptiveAvgPool1d(AdaptivePool, init=False):
    """Means of a given number of windows of signals: `adaptive_avg_pool1d` as a module.

    >>> AdaptiveAvgPool1d(7)(tk.ones((4, 16, 28))).shape
    (4, 16, 7)
    """

    rank, kind = 1, "avg"


class AdaptiveMaxPool2d(AdaptivePool, init=False):
    """Maxima of a given number of windows of images: `adaptive_max_pool2d` as a module.

    >>> AdaptiveMaxPool2d((7, 5))(tk.ones((4, 16, 28, 28))).shape
    (4, 16, 7, 5)
    """

    rank, kind = 2, "max"


class AdaptiveAvgPool2d(AdaptivePool, init=False):
    """Means of a given number of windows of images: `adaptive_avg_pool2d` as a module.

    >>> AdaptiveAvgPool2d((7, 5))(tk.ones((4, 16, 28, 28))).shape
    (4, 16, 7, 5)
    """

    rank, kind = 2, "avg"


class AdaptiveMaxPool3d(AdaptivePool, init=False):
    """Maxima of a given number of windows of volumes: `adaptive_max_pool3d` as a module.

    >>> AdaptiveMaxPool3d((2, 7, 5))(tk.ones((4, 16, 8, 28, 28))).shape
    (4, 16, 2, 7, 5)
    """

    rank, kind = 3, "max"


class AdaptiveAvgPool3d(AdaptivePool, init=False):
    """Means of a given number of windows of volumes: `adaptive_avg_pool3d` as a module.

    >>> AdaptiveAvgPool3d((2, 7, 5))(tk.ones((4, 16, 8, 28, 28))).shape
    (4, 16, 2, 7, 5)
    """

    rank, kind = 3, "avg"


class GlobalMaxPool1d(GlobalPool):
    """The maximum of each channel of signals.

    >>> GlobalMaxPool1d()(tk.ones((4, 16, 28))).shape
    (4, 16)
    """

    rank, kind = 1, "max"


class GlobalAvgPool1d(GlobalPool):
    """The mean of each channel of signals.

    >>> GlobalAvgPool1d()(tk.ones((4, 16, 28))).shape
    (4, 16)
    """

    rank, kind = 1, "avg"


class GlobalMaxPool2d(GlobalPool):
    """The maximum of each channel of images.

    >>> GlobalMaxPool2d()(tk.ones((4, 16, 28, 28))).shape
    (4, 16)
    """

    rank, kind = 2, "max"


class GlobalAvgPool2d(GlobalPool):
    """The mean of each channel of images.

    >>> GlobalAvgPool2d()(tk.ones((4, 16, 28, 28))).shape
    (4, 16)
    """

    rank, kind = 2, "avg"


class GlobalMaxPool3d(GlobalPool):
    """The maximum of each channel of volumes.

    >>> GlobalMaxPool3d()(tk.ones((4, 16, 8, 28, 28))).shape
    (4, 16)
    """

    rank, kind = 3, "max"


class GlobalAvgPool3d(GlobalPool):
    """The mean of each channel of volumes.

    >>> GlobalAvgPool3d()(tk.ones((4, 16, 8, 28, 28))).shape
    (4, 16)
    """

    rank, kind = 3, "avg"
