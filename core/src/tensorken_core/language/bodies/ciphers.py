"""Body of the Threefry cipher, which generates random bits: wrapping additions, rotations and XORs of 32-bit words."""

from __future__ import annotations

from typing import Any

from tensorken_core.language.dtypes import int32, wrap_integer
from tensorken_core.language.op import OPS

Tensor = Any

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how many bits the second word is rotated in each of four rounds, for even and for odd groups of rounds."""

PARITY = 0x1BD11BDA
"""The constant that is XORed with the words of the key to make a third word, so that the three are never all zero."""

GROUPS = 5
"""The number of groups of four rounds; words of the key are added after each group."""


def threefry2x32(key: Tensor, counter: Tensor) -> Tensor:
    """The two words along the last axis are processed as two tensors, which have size 1 along that axis."""
    first, second = _words(key)
    parts = (first, second, first ^ second ^ wrap_integer(PARITY, int32))
    x, y = _words(counter)
    x, y = x + parts[0], y + parts[1]
    for group in range(GROUPS):
        for count in ROTATIONS[group % 2]:
            x = x + y
            y = _rotated(y, count) ^ x
        x, y = x + parts[(group + 1) % 3], y + parts[(group + 2) % 3] + (group + 1)
    return x.apply(OPS["concatenate"], y, x.ndim - 1)


def _words(x: Tensor) -> list[Tensor]:
    rows = tuple([(0, n) for n in x.shape[:-1]])
    return [x.crop((*rows, (i, i + 1))) for i in range(2)]


def _rotated(x: Tensor, count: int) -> Tensor:
    """The bits rotated to the left."""
    return (x << count) | x.apply(OPS["shift_right"], x.scalar(32 - count))
