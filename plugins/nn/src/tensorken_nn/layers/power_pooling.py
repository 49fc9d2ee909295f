"""Pooling of signals, images and volumes by norms of windows."""

from __future__ import annotations

import math
from typing import ClassVar

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.layers.average_pooling import avg_pool1d, avg_pool2d, avg_pool3d
from tensorken_nn.layers.max_pooling import max_pool1d, max_pool2d, max_pool3d
from tensorken_nn.layers.windows import PerAxis, Sizes, for_rank, sizes_for
from tensorken_nn.module import Module, static
from tensorken_nn.precision import widen

MAX_POOLS = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
AVG_POOLS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}

# ---- functions ---------------------------------------------------------------------------------------------


def _lp_pool(
    rank: int,
    x: Tensor,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-th root of the sum of the p-th powers of each window: its norm of order p, where p is `norm_type`.

    As in PyTorch the powers are those of the numbers, not of their absolute values: for p = 3 give it abs(x). Where the
    sum is 0, so is the derivative.

    Args:
        x: of shape `(..., channels, *sizes)`.
        norm_type: p; 1 for sums, 2 for Euclidean norms, infinity for the largest absolute value. Not 0.
        kernel_size: the sizes of a window; one int for all axes, or one for each, as for the stride.
        stride: the distance between windows; by default their size.
        ceil_mode: whether there is one more window for remaining elements at the end of an axis; its sum is the mean
            of its powers times the number of elements of a whole window.

    Returns:
        A tensor of shape `(..., channels, *numbers of windows)`.

    Raises:
        ShapeError, ArgumentError: as `avg_pool2d`; an ArgumentError also for p = 0.

    >>> import tensorken as tk
    >>> lp_pool1d(tk.tensor([[3.0, 4.0, 0.0, -2.0]]), 2, 2).tolist()
    [[5.0, 2.0]]
    """
    name = f"lp_pool{rank}d"
    _check_norm_type(name, norm_type)
    if math.isinf(norm_type):
        largest, sign = MAX_POOLS[rank], math.copysign(1, norm_type)
        return largest(abs(x) * sign, kernel_size, stride, ceil_mode=ceil_mode) * sign
    kernel = sizes_for(name, "kernel_size", rank, kernel_size)
    means = AVG_POOLS[rank](widen(x) ** norm_type, kernel, stride, ceil_mode=ceil_mode)
    is_zero = means == 0
    roots = (is_zero.where(1, means) * math.prod(kernel)) ** (1.0 / norm_type)
    y = is_zero.where(0, roots)
    return y.astype(x.dtype) if x.dtype.kind == "float" else y


def _check_norm_type(name: str, norm_type: float) -> None:
    if norm_type == 0:
        raise ArgumentError(f"{name}: norm_type must not be 0")


lp_pool1d = for_rank(_lp_pool, 1, "lp_pool1d")
lp_pool2d = for_rank(_lp_pool, 2, "lp_pool2d")
lp_pool3d = for_rank(_lp_pool, 3, "lp_pool3d")

# ---- modules -----------------------------------------------------------------------------------------------


class LPPool(Module):
    """The base class of `LPPool1d`, `LPPool2d` and `LPPool3d`: `lp_pool1d` and so on as modules."""

    norm_type: float = static()
    kernel_size: Sizes = static()
    stride: Sizes = static()
    ceil_mode: bool = static()

    rank: ClassVar[int]

    def __init__(
        self,
        norm_type: float,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        ceil_mode: bool = False,
    ) -> None:
        name = type(self).__name__
        _check_norm_type(name, norm_type)
        self.norm_type = norm_type
        self.kernel_size = sizes_for(name, "kernel_size", self.rank, kernel_size)
        self.stride = self.kernel_size if stride is None else sizes_for(name, "stride", self.rank, stride)
        self.ceil_mode = ceil_mode

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., channels, *sizes)` to `(..., channels, *numbers of windows)`."""
        return _lp_pool(self.rank, x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(LPPool, init=False):
    """Norms of the windows of signals: `lp_pool1d` as a module.

    >>> import tensorken as tk
    >>> LPPool1d(2, 3, stride=2)(tk.ones((32, 16, 29))).shape
    (32, 16, 14)
    """

    rank = 1


class LPPool2d(LPPool, init=False):
    """Norms of the windows of images: `lp_pool2d` as a module.

    >>> import tensorken as tk
    >>> LPPool2d(1.5, 2)(tk.ones((32, 16, 28, 28))).shape
    (32, 16, 14, 14)
    """

    rank = 2


class LPPool3d(LPPool, init=False):
    """Norms of the windows of volumes: `lp_pool3d` as a module.

    >>> import tensorken as tk
    >>> LPPool3d(2, (1, 2, 2))(tk.ones((32, 16, 8, 28, 28))).shape
    (32, 16, 8, 14, 14)
    """

    rank = 3
