"""The layer that normalises each channel over all examples, and what it remembers of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.layers.normalization import filled, scaled
from tensorken_nn.module import Module, static
from tensorken_nn.precision import widened


class BatchStatistics(NamedTuple):
    """What has been gathered of the batches: the state of `BatchNorm`."""

    mean: Tensor  # (channels,)
    variance: Tensor  # (channels,): of a sample, that is, with count - 1 as the divisor
    batches: Tensor  # how many; int32 of shape ()


class BatchNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel, along axis 1, over all other axes.

    While training (`train`) mean and variance are those of the batch, and a state gathers them; afterwards (a call)
    they are the gathered ones.

    Source: Ioffe and Szegedy, Batch Normalization (2015).

    Args:
        channels: the size of axis 1.
        eps: what keeps the divisor from 0.
        momentum: the share of a new batch in what is gathered; None for the mean of all batches.
        affine: whether there are a weight and a bias.
        key: a key on whose backend the parameters are to live, which begin as ones and zeros; by default on the
            backend in use.
        dtype: of parameters and state, a float.

    Raises:
        ArgumentError: if there are no channels.

    >>> norm = BatchNorm(2)
    >>> state = norm.initial_state()
    >>> x = tk.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> y, state = norm.train(x, state)
    >>> print(f"{y:.2f}")
    [-1.00 -1.00]
    [ 1.00  1.00]
    >>> print(f"{state.mean:.2f}")
    [0.20 2.00]
    >>> norm(x, state).shape
    (2, 2)
    """

    weight: Tensor | None  # (channels,)
    bias: Tensor | None  # (channels,)
    channels: int = static()
    eps: float = static()
    momentum: float | None = static()
    dtype: Any = static()

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        *,
        key: Tensor | None = None,
        dtype: Any = tk.float32,
    ) -> None:
        if channels < 1:
            raise ArgumentError(f"BatchNorm: need one channel or more, got {channels}")
        self.channels = channels
        self.eps = eps
        self.momentum = momentum
        self.dtype = dtype
        self.weight = filled(1.0, (channels,), dtype, key) if affine else None
        self.bias = filled(0.0, (channels,), dtype, key) if affine else None

    def initial_state(self) -> BatchStatistics:
        """Before any batch: mean 0 and variance 1, beside the parameters."""
        if self.weight is None:
            zeros, none = tk.zeros((self.channels,), self.dtype), tk.zeros((), tk.int32)
        else:
            zeros, none = tk.zeros_like(self.weight), tk.zeros_like(self.weight, tk.int32, shape=())
        return BatchStatistics(zeros, tk.ones_like(zeros), none)

    def __call__(self, x: Tensor, state: BatchStatistics | None = None) -> Tensor:
        """x, of shape (count, channels, ...), normalised by what has been gathered.

        Raises:
            ShapeError: if x has no axis of channels.
            ArgumentError: if there is no state.
        """
        self._check(x)
        mean, variance, _ = self._needed(state)
        return self._normalized(widened(x) - _beside(mean, x), _beside(variance, x), x.dtype)

    def train(self, x: Tensor, state: BatchStatistics) -> tuple[Tensor, BatchStatistics]:
        """x, of shape (count, channels, ...), normalised by its own mean and variance; and the new state.

        The state is a constant to derivatives.

        Raises:
            ShapeError: if x has no axis of channels, or less than two numbers for each.
            ArgumentError: if there is no state.
        """
        self._check(x)
        state = self._needed(state)
        axes = tuple([axis for axis in range(x.ndim) if axis != 1])
        count = math.prod([x.shape[axis] for axis in axes])
        if count < 2:
            raise ShapeError(
                f"BatchNorm: shape {x.shape} has {count} numbers for each channel, training needs two or more; "
                f"use a larger batch"
            )
        y = widened(x)
        mean = y.mean(axes, keepdims=True)
        y = y - mean
        variance = (y * y).mean(axes, keepdims=True)
        of_sample = variance.reshape((self.channels,)) * (count / (count - 1))
        new_state = self._gathered(state, mean.reshape((self.channels,)), of_sample)
        return self._normalized(y, variance, x.dtype), new_state

    def _check(self, x: Tensor) -> None:
        if x.shape[1:2] != (self.channels,):
            raise ShapeError(
                f"BatchNorm: got shape {x.shape}, need (count, {self.channels}, ...); move the channels to axis 1"
            )

    def _needed(self, state: BatchStatistics | None) -> BatchStatistics:
        if not isinstance(state, BatchStatistics):
            raise ArgumentError(
                f"BatchNorm: needs a state, got {type(state).__name__}; initial_state() gives the first, "
                f"train(x, state) the next"
            )
        return state

    def _normalized(self, centered: Tensor, variance: Tensor, dtype: Any) -> Tensor:
        x = (centered / tk.sqrt(variance + self.eps)).astype(dtype)
        return scaled(x, *[p if p is None else _beside(p, x) for p in (self.weight, self.bias)])

    def _gathered(self, state: BatchStatistics, mean: Tensor, variance: Tensor) -> BatchStatistics:
        """The state with one batch more."""
        batches = state.batches + 1
        share = 1.0 / batches.astype(state.mean.dtype) if self.momentum is None else self.momentum
        mean, variance = (
            old + (tk.stop_gradient(new).astype(old.dtype) - old) * share
            for old, new in ((state.mean, mean), (state.variance, variance))
        )
        return BatchStatistics(mean, variance, batches)


def _beside(of_channels: Tensor, x: Tensor) -> Tensor:
    """A value for each channel in a shape that broadcasts along all other axes of x."""
    return of_channels.reshape((of_channels.size, *[1] * (x.ndim - 2)))
