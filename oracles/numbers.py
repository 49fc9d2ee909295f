"""Numbers that need not be stored: the same ones on both sides of a comparison."""

from __future__ import annotations

import math

Shape = tuple[int, ...]


def numbers(shape: Shape, seed: int) -> list[float]:
    """Numbers between -2 and 2 for all elements of a shape, without a pattern.

    >>> numbers((2,), 0)
    [1.818595, -1.320884]
    """
    return [round(2.0 * math.sin(2.0 + 7.3 * seed + 1.863 * k), 6) for k in range(math.prod(shape))]


def weights(count: int) -> list[float]:
    """What the elements of a result are multiplied with, before they are added up to a loss.

    >>> weights(2)
    [1.0, 0.540302]
    """
    return [round(math.cos(k), 6) for k in range(count)]
