"""Rearrangements of channels and pixels."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.module import Module, static


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Images whose pixels are squares of r x r pixels, r being the factor, made of r**2 channels each.

    Source: Shi et al., Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
    Neural Network (2016).

    Args:
        x: of shape (..., channels * r**2, height, width).
        upscale_factor: r.

    Returns:
        A tensor of shape (..., channels, height * r, width * r).

    Raises:
        ShapeError: if x has too few axes, or r**2 does not divide the channels.
        ArgumentError: if r is not positive.

    >>> pixel_shuffle(tk.arange(4).reshape(4, 1, 1), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    r = _factor("pixel_shuffle", upscale_factor)
    if x.ndim < 3 or x.shape[-3] % r**2:
        raise ShapeError(
            f"pixel_shuffle: got shape {x.shape}, need (..., channels * {r**2}, height, width); reshape the input"
        )
    *rest, channels, height, width = x.shape
    y = x.reshape((*rest, channels // r**2, r, r, height, width))
    y = tk.moveaxis(y, (-4, -3), (-3, -1))
    return y.reshape((*rest, channels // r**2, height * r, width * r))


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`: each square of r x r pixels, r being the factor, becomes r**2 channels.

    Args:
        x: of shape (..., channels, height * r, width * r).
        downscale_factor: r.

    Returns:
        A tensor of shape (..., channels * r**2, height, width).

    Raises:
        ShapeError: if x has too few axes, or r does not divide height and width.
        ArgumentError: if r is not positive.

    >>> pixel_unshuffle(tk.tensor([[[0, 1], [2, 3]]]), 2).ravel().tolist()
    [0, 1, 2, 3]
    """
    r = _factor("pixel_unshuffle", downscale_factor)
    if x.ndim < 3 or x.shape[-1] % r or x.shape[-2] % r:
        raise ShapeError(
            f"pixel_unshuffle: got shape {x.shape}, need (..., channels, height * {r}, width * {r}); pad the input"
        )
    *rest, channels, height, width = x.shape
    y = x.reshape((*rest, channels, height // r, r, width // r, r))
    y = tk.moveaxis(y, (-3, -1), (-4, -3))
    return y.reshape((*rest, channels * r**2, height // r, width // r))


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """The channels of groups, in turn: the first of each group, then the second of each, and so on.

    Source: Zhang et al., ShuffleNet (2018), section 3.1.

    Args:
        x: of shape (count, channels, ...).
        groups: a divisor of the channels.

    Raises:
        ShapeError: if x has no axis of channels, or the groups do not divide it.
        ArgumentError: if `groups` is not positive.

    >>> channel_shuffle(tk.arange(6).reshape(1, 6), 2).tolist()
    [[0, 3, 1, 4, 2, 5]]
    """
    groups = _factor("channel_shuffle", groups)
    if x.ndim < 2 or x.shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: got shape {x.shape}, need (count, channels, ...) with channels that {groups} groups "
            f"divide; change the groups"
        )
    y = x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return y.swapaxes(1, 2).reshape(x.shape)


def _factor(name: str, factor: int) -> int:
    if type(factor) is not int or factor < 1:
        raise ArgumentError(f"{name}: need an int from 1, got {factor}")
    return factor


class PixelShuffle(Module):
    """`pixel_shuffle` as a module.

    >>> PixelShuffle(2)(tk.ones((8, 12, 5, 5))).shape
    (8, 3, 10, 10)
    """

    upscale_factor: int = static()

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., channels * r**2, height, width) to (..., channels, height * r, width * r)."""
        return pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """`pixel_unshuffle` as a module.

    >>> PixelUnshuffle(2)(tk.ones((8, 3, 10, 10))).shape
    (8, 12, 5, 5)
    """

    downscale_factor: int = static()

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., channels, height * r, width * r) to (..., channels * r**2, height, width)."""
        return pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """`channel_shuffle` as a module.

    >>> ChannelShuffle(2)(tk.ones((8, 6, 5, 5))).shape
    (8, 6, 5, 5)
    """

    groups: int = static()

    def __call__(self, x: Tensor) -> Tensor:
        """From any shape (count, channels, ...) to the same."""
        return channel_shuffle(x, self.groups)
