"""Batch normalisation, with running statistics."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.layers.normalization import affine_transform, constant_parameter
from tensorken_nn.module import Module, static
from tensorken_nn.precision import widen


class BatchStatistics(NamedTuple):
    """Running statistics of the batches: the state of `BatchNorm`."""

    mean: Tensor  # (channels,)
    variance: Tensor  # (channels,): unbiased, that is, with divisor count - 1
    batches: Tensor  # the number of batches, int32 of shape ()


class BatchNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel, along axis 1, over all other axes.

    In training (`train`), mean and variance are those of the batch, and the state's running statistics are updated.
    A call uses the running statistics.

    Source: Ioffe and Szegedy, Batch Normalization (2015).

    Args:
        channels: the size of axis 1.
        eps: added to the variance, so that the divisor is not 0.
        momentum: the weight of a new batch in the running statistics; None for the mean over all batches.
        affine: whether there are a weight, initially ones, and a bias, initially zeros.
        key: a key on whose backend the parameters are made; by default the backend in use.
        dtype: of parameters and state, a float.

    Raises:
        ArgumentError: if `channels` is not positive.

    >>> norm = BatchNorm(2)
    >>> state = norm.initial_state()
    >>> x = tk.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> y, state = norm.train(x, state)
    >>> print(f"{y:.2f}")
    [[-1.00 -1.00]
     [ 1.00  1.00]]
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
        self.weight = constant_parameter(1.0, (channels,), dtype, key) if affine else None
        self.bias = constant_parameter(0.0, (channels,), dtype, key) if affine else None

    def initial_state(self) -> BatchStatistics:
        """The state before any batch, with mean 0 and variance 1, on the backend of the parameters."""
        if self.weight is None:
            zeros, no_batches = tk.zeros((self.channels,), self.dtype), tk.zeros((), tk.int32)
        else:
            zeros, no_batches = tk.zeros_like(self.weight), tk.zeros_like(self.weight, tk.int32, shape=())
        return BatchStatistics(zeros, tk.ones_like(zeros), no_batches)

    def __call__(self, x: Tensor, state: BatchStatistics | None = None) -> Tensor:
        """Normalise x, of shape (count, channels, ...), by the running statistics.

        Raises:
            ShapeError: if x has no axis of channels.
            ArgumentError: if there is no state.
        """
        self._check(x)
        mean, variance, _ = self._check_state(state)
        return self._normalized(widen(x) - _per_channel(mean, x), _per_channel(variance, x), x.dtype)

    def train(self, x: Tensor, state: BatchStatistics) -> tuple[Tensor, BatchStatistics]:
        """Normalise x, of shape (count, channels, ...), by its own mean and variance; also returns the new state.

        No derivative flows through the state.

        Raises:
            ShapeError: if x has no axis of channels, or fewer than two numbers for a channel.
            ArgumentError: if there is no state.
        """
        self._check(x)
        state = self._check_state(state)
        axes = tuple([axis for axis in range(x.ndim) if axis != 1])
        count = math.prod([x.shape[axis] for axis in axes])
        if count < 2:
            raise ShapeError(
                f"BatchNorm: shape {x.shape} has {count} numbers for each channel, training needs two or more; "
                f"use a larger batch"
            )
        y = widen(x)
        mean = y.mean(axes, keepdims=True)
        y = y - mean
        variance = (y * y).mean(axes, keepdims=True)
        unbiased = variance.reshape((self.channels,)) * (count / (count - 1))
        new_state = self._update_statistics(state, mean.reshape((self.channels,)), unbiased)
        return self._normalized(y, variance, x.dtype), new_state

    def _check(self, x: Tensor) -> None:
        if x.shape[1:2] != (self.channels,):
            raise ShapeError(
                f"BatchNorm: got shape {x.shape}, need (count, {self.channels}, ...); move the channels to axis 1"
            )

    def _check_state(self, state: BatchStatistics | None) -> BatchStatistics:
        if not isinstance(state, BatchStatistics):
            raise ArgumentError(
                f"BatchNorm: needs a state, got {type(state).__name__}; initial_state() gives the first, "
                f"train(x, state) the next"
            )
        return state

    def _normalized(self, centered: Tensor, variance: Tensor, dtype: Any) -> Tensor:
        x = (centered / tk.sqrt(variance + self.eps)).astype(dtype)
        return affine_transform(
            x, *[p if p is None else _per_channel(p, x) for p in (self.weight, self.bias)]
        )

    def _update_statistics(self, state: BatchStatistics, mean: Tensor, variance: Tensor) -> BatchStatistics:
        """The running statistics updated by a batch."""
        batches = state.batches + 1
        share = 1.0 / batches.astype(state.mean.dtype) if self.momentum is None else self.momentum
        mean, variance = (
            old + (tk.stop_gradient(new).astype(old.dtype) - old) * share
            for old, new in ((state.mean, mean), (state.variance, variance))
        )
        return BatchStatistics(mean, variance, batches)


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    """Reshape one value for each channel to broadcast with x."""
    return values.reshape((values.size, *[1] * (x.ndim - 2)))
