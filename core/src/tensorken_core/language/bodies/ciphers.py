"""Body of the cipher behind random numbers: additions, rotations and exclusive ors of 32-bit words that wrap."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.dtypes import int32, wrap_integer
from tensorken_core.language.op import OPS

Tensor = Any

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""How far the second word turns in each of four rounds, in the even and in the odd groups of four."""

PARITY = 0x1BD11BDA
"""What the words of the key are combined with to give one more, so that they never are all zero."""

GROUPS = 5
"""Groups of four rounds; a part of the key is added after each."""


def threefry2x32(key: Tensor, counter: Tensor) -> Tensor:
    """The words, the last axis, travel apart, each as a tensor with size 1 there."""
    first, second = _words(key)
    parts = (first, second, first ^ second ^ wrap_integer(PARITY, int32))
    x, y = _words(counter)
    x, y = x + parts[0], y + parts[1]
    for group in range(GROUPS):
        for places in ROTATIONS[group % 2]:
            x = x + y
            y = _rotated(y, places) ^ x
        x, y = x + parts[(group + 1) % 3], y + parts[(group + 2) % 3] + (group + 1)
    return x.apply(OPS["concatenate"], y, x.ndim - 1)


def _words(x: Tensor) -> list[Tensor]:
    rows = tuple([(0, n) for n in x.shape[:-1]])
    return [x.crop((*rows, (i, i + 1))) for i in range(2)]


def _rotated(x: Tensor, places: int) -> Tensor:
    """The bits moved up, those that leave at the top coming in at the bottom."""
    return (x << places) | x.apply(OPS["shift_right"], x.scalar(32 - places))
