"""Threefry-2x32, the generator of random bits, computed in place on unsigned words, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Bits by which the second word is rotated in each of four rounds, in even and in odd groups of rounds."""

_PARITY = 0x1BD11BDA
"""Combined with the two words of the key by exclusive or, this gives the third word of the key schedule."""

_GROUPS = 5
"""Groups of four rounds, each followed by the addition of two words of the key schedule."""

_BLOCK = 1 << 15
"""How many pairs of words are computed at a time: few enough for the cache, many enough to amortise calls."""

_UINT32 = [np.uint32(i) for i in range(33)]


def threefry2x32(key: Array, counter: Array) -> Array:
    """Threefry-2x32 with 20 rounds.  Keys that strides repeat are expanded once."""
    result = np.empty(counter.shape, np.uint32)
    pairs, counters = result.reshape(-1, 2), counter.view(np.uint32).reshape(-1, 2)
    keys = _compact(key.view(np.uint32))
    keys = keys.reshape(1, 2) if keys.size == 2 else np.broadcast_to(keys, counter.shape).reshape(-1, 2)
    scratch = np.empty(min(_BLOCK, len(pairs)), np.uint32)
    for start in range(0, len(pairs), _BLOCK):
        block = slice(start, start + _BLOCK)
        x, y = np.array(counters[block, 0]), np.array(counters[block, 1])
        first, second = (keys if len(keys) == 1 else keys[block]).T
        _encipher(x, y, first, second, scratch[: len(x)])
        pairs[block, 0], pairs[block, 1] = x, y
    return result.view(np.int32)


def _encipher(x: Array, y: Array, first: Array, second: Array, scratch: Array) -> None:
    """Run the rounds in place on the two words of many pairs."""
    schedule = (first, second, first ^ second ^ np.uint32(_PARITY))
    x += schedule[0]
    y += schedule[1]
    for group in range(_GROUPS):
        for rotation in _ROTATIONS[group % 2]:
            x += y
            np.left_shift(y, _UINT32[rotation], scratch)
            np.right_shift(y, _UINT32[32 - rotation], y)
            y |= scratch
            y ^= x
        x += schedule[(group + 1) % 3]
        y += schedule[(group + 2) % 3] + _UINT32[group + 1]


def _compact(keys: Any) -> Array:
    """The keys with size 1 along axes that strides repeat, except the last, which holds the two words of a key."""
    y: Array = keys[tuple([slice(0, 1) if stride == 0 else slice(None) for stride in keys.strides[:-1]])]
    return y
