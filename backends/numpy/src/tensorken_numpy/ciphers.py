"""The cipher behind random numbers, in place on unsigned words, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_core.language.bodies.ciphers import GROUPS, PARITY, ROTATIONS
from tensorken_numpy.contraction import Array

_BLOCK = 1 << 15
"""How many pairs are computed at a time: so few that they stay in the cache, so many that calls cost little."""

_NUMBERS = [np.uint32(i) for i in range(33)]


def threefry2x32(key: Array, counter: Array) -> Array:
    """Threefry-2x32 with 20 rounds; a key that was repeated by strides is worked on once."""
    result = np.empty(counter.shape, np.uint32)
    pairs, whole = result.reshape(-1, 2), counter.view(np.uint32).reshape(-1, 2)
    keys = _once(key.view(np.uint32))
    keys = keys.reshape(1, 2) if keys.size == 2 else np.broadcast_to(keys, counter.shape).reshape(-1, 2)
    scratch = np.empty(min(_BLOCK, len(pairs)), np.uint32)
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        x, y = np.array(whole[block, 0]), np.array(whole[block, 1])
        first, second = (keys if len(keys) == 1 else keys[block]).T
        _encipher(x, y, first, second, scratch[: len(x)])
        pairs[block, 0], pairs[block, 1] = x, y
    return result.view(np.int32)


def _encipher(x: Array, y: Array, first: Array, second: Array, scratch: Array) -> None:
    """The rounds, on two words of many pairs at once."""
    parts = (first, second, first ^ second ^ np.uint32(PARITY))
    x += parts[0]
    y += parts[1]
    for group in range(GROUPS):
        for places in ROTATIONS[group % 2]:
            x += y
            np.left_shift(y, _NUMBERS[places], scratch)
            np.right_shift(y, _NUMBERS[32 - places], y)
            y |= scratch
            y ^= x
        x += parts[(group + 1) % 3]
        y += parts[(group + 2) % 3] + _NUMBERS[group + 1]


def _once(keys: Any) -> Array:
    """With size 1 along the axes that strides repeat, but for the last: that has the two words of a key."""
    y: Array = keys[tuple([slice(0, 1) if stride == 0 else slice(None) for stride in keys.strides[:-1]])]
    return y
