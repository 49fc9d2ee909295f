"""Normalisation of each example: over its last axes, or over groups of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.module import Module, static
from tensorken_nn.precision import widen


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over an example's last axes.

    Source: Ba, Kiros, Hinton, Layer Normalization (2016).

    Args:
        shape: the sizes of these axes; an int for one axis.
        eps: added to the variance, so that the divisor is not 0.
        affine: whether there are a weight, initially ones, and a bias, initially zeros.
        bias: whether there is a bias, if there is a weight.
        key: a key on whose backend the parameters are made; by default the backend in use.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a size is not positive.

    >>> norm = LayerNorm(3)
    >>> norm
    LayerNorm(weight=float32 (3,), bias=float32 (3,), shape=(3,), eps=1e-05)
    >>> print(f"{norm(tk.tensor([[1.0, 2.0, 3.0], [30.0, 20.0, 10.0]])):.2f}")
    [[-1.22  0.00  1.22]
     [ 1.22  0.00 -1.22]]
    """

    weight: Tensor | None  # of shape `shape`
    bias: Tensor | None
    shape: tuple[int, ...] = static()
    eps: float = static()

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        affine: bool = True,
        bias: bool = True,
        *,
        key: Tensor | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        self.shape = sizes_of("LayerNorm", shape)
        self.eps = eps
        self.weight = constant_parameter(1.0, self.shape, dtype, key) if affine else None
        self.bias = constant_parameter(0.0, self.shape, dtype, key) if affine and bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., *shape)` to the same.

        Raises:
            ShapeError: if x has other last axes.
        """
        axes = last_axes("LayerNorm", x, self.shape)
        y = widen(x)
        y = y - y.mean(axes, keepdims=True)
        y = y / tk.sqrt((y * y).mean(axes, keepdims=True) + self.eps)
        return affine_transform(y.astype(x.dtype), self.weight, self.bias)


class RMSNorm(Module):
    """x / sqrt(mean(x**2) + eps) * weight, with the mean over an example's last axes.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization (2019).

    Args:
        shape: the sizes of these axes; an int for one axis.
        eps: added to the mean, so that the divisor is not 0; by default the machine epsilon of x's dtype.
        affine: whether there is a weight.
        key, dtype: as for `LayerNorm`.

    Raises:
        ArgumentError: if a size is not positive.

    >>> norm = RMSNorm(2)
    >>> print(f"{norm(tk.tensor([[3.0, 4.0], [1.0, -1.0]])):.2f}")
    [[ 0.85  1.13]
     [ 1.00 -1.00]]
    """

    weight: Tensor | None  # of shape `shape`
    shape: tuple[int, ...] = static()
    eps: float | None = static()

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float | None = None,
        affine: bool = True,
        *,
        key: Tensor | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        self.shape = sizes_of("RMSNorm", shape)
        self.eps = eps
        self.weight = constant_parameter(1.0, self.shape, dtype, key) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape `(..., *shape)` to the same.

        Raises:
            ShapeError: if x has other last axes.
        """
        axes = last_axes("RMSNorm", x, self.shape)
        eps = tk.finfo(x.dtype).eps if self.eps is None else self.eps
        y = widen(x)
        y = y / tk.sqrt((y * y).mean(axes, keepdims=True) + eps)
        return affine_transform(y.astype(x.dtype), self.weight, None)


class GroupNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over groups of an example's channels.

    Source: Wu and He, Group Normalization (2018).

    Args:
        groups: the number of groups, a divisor of the channels.
        channels: the size of axis 1.
        eps: added to the variance, so that the divisor is not 0.
        affine: whether there are a weight, initially ones, and a bias, initially zeros, for each channel.
        key, dtype: as for `LayerNorm`.

    Raises:
        ArgumentError: if a number is not positive, or the groups do not divide the channels.

    >>> norm = GroupNorm(2, 4)
    >>> print(f"{norm(tk.tensor([[1.0, 3.0, 10.0, 30.0]])):.2f}")
    [[-1.00  1.00 -1.00  1.00]]
    """

    weight: Tensor | None  # (channels,)
    bias: Tensor | None
    groups: int = static()
    channels: int = static()
    eps: float = static()

    def __init__(
        self,
        groups: int,
        channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        key: Tensor | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        name = type(self).__name__
        if groups < 1 or channels < 1 or channels % groups:
            raise ArgumentError(f"{name}: need groups that divide the channels, got {groups} and {channels}")
        self.groups = groups
        self.channels = channels
        self.eps = eps
        self.weight = constant_parameter(1.0, (channels,), dtype, key) if affine else None
        self.bias = constant_parameter(0.0, (channels,), dtype, key) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (count, channels, ...) to the same.

        Raises:
            ShapeError: if x has another number of channels.
        """
        if x.shape[1:2] != (self.channels,):
            raise ShapeError(
                f"{type(self).__name__}: got shape {x.shape}, need (count, {self.channels}, ...); "
                f"move the channels to axis 1"
            )
        y = widen(x).reshape((x.shape[0], self.groups, self.channels // self.groups, *x.shape[2:]))
        axes = tuple(range(2, y.ndim))
        y = y - y.mean(axes, keepdims=True)
        y = y / tk.sqrt((y * y).mean(axes, keepdims=True) + self.eps)
        per_channel = (self.channels, *[1] * (x.ndim - 2))
        parameters = [p if p is None else p.reshape(per_channel) for p in (self.weight, self.bias)]
        return affine_transform(y.reshape(x.shape).astype(x.dtype), *parameters)


class InstanceNorm(GroupNorm):
    """`GroupNorm` with a group for each channel, by default without weight and bias.

    Source: Ulyanov, Vedaldi, Lempitsky, Instance Normalization (2016).

    >>> print(f"{InstanceNorm(2)(tk.tensor([[[1.0, 3.0], [30.0, 10.0]]])):.2f}")
    [[[-1.00  1.00]
      [ 1.00 -1.00]]]
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        affine: bool = False,
        *,
        key: Tensor | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        super().__init__(channels, channels, eps, affine, key=key, dtype=dtype)


class LocalResponseNorm(Module):
    """x / (k + alpha * mean)**beta, with the mean of the squares of neighbouring channels: see `local_response_norm`.

    Source: Krizhevsky, Sutskever, Hinton, ImageNet Classification with Deep Convolutional Neural Networks (2012),
    section 3.3, where alpha stands for our alpha / size.

    Args:
        size: the number of channels whose mean is taken.
        alpha, beta, k: numbers of the formula.

    Raises:
        ArgumentError: if the size is not positive.

    >>> LocalResponseNorm(5)(tk.ones((2, 16, 8, 8))).shape
    (2, 16, 8, 8)
    """

    size: int = static()
    alpha: float = static()
    beta: float = static()
    k: float = static()

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        _check_size("LocalResponseNorm", size)
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (count, channels, ...) to the same.

        Raises:
            ShapeError: if x has no axis of channels.
        """
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)


def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha * mean)**beta, with the mean of the squares of `size` neighbouring channels.

    They are the size // 2 channels before a channel, the channel itself, and those behind it. A channel outside of x is
    0 and counts.

    Args:
        x: shape (count, channels, ...).
        size: the number of channels whose mean is taken.
        alpha, beta, k: numbers of the formula.

    Raises:
        ShapeError: if x has no axis of channels.
        ArgumentError: if the size is not positive.

    >>> local_response_norm(tk.tensor([[2.0, 2.0, 4.0]]), 2, alpha=1.0, beta=1.0, k=0.0).tolist()
    [[1.0, 0.5, 0.4000000059604645]]
    """
    _check_size("local_response_norm", size)
    if x.ndim < 2:
        raise ShapeError(
            f"local_response_norm: got shape {x.shape}, need (count, channels, ...); reshape the input"
        )
    y, channels = widen(x), x.shape[1]
    squares = (y * y).pad(((0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)))
    total = squares[:, :channels]
    for i in range(1, size):
        total = total + squares[:, i : i + channels]
    return (y / (k + total * (alpha / size)) ** beta).astype(x.dtype)


def _check_size(name: str, size: int) -> None:
    if size < 1:
        raise ArgumentError(f"{name}: need a size of one channel or more, got {size}")


# ---- shared functions ---------------------------------------------------------------------------------------


def sizes_of(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    """Check that sizes are positive, of one axis or more; an int becomes a tuple."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sizes or min(sizes) < 1:
        raise ArgumentError(f"{name}: need positive sizes of one axis or more, got {sizes}")
    return sizes


def last_axes(name: str, x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of the last axes, which must have these sizes."""
    if x.shape[-len(sizes) :] != sizes:
        needed = ", ".join(["...", *map(str, sizes)])
        raise ShapeError(f"{name}: got shape {x.shape}, need ({needed}); reshape the input")
    return tuple(range(-len(sizes), 0))


def constant_parameter(value: float, shape: tuple[int, ...], dtype: Any, key: Tensor | None) -> Tensor:
    """A constant parameter, on the backend of the key or, without one, the backend in use."""
    return tk.full(shape, value, dtype) if key is None else tk.full_like(key, value, dtype, shape=shape)


def affine_transform(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x * weight + bias, where either may be None."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
