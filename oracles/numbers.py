"""Reproducible numbers, which both sides of a comparison compute instead of reading a file."""

from __future__ import annotations

import math

Shape = tuple[int, ...]


def numbers(shape: Shape, seed: int) -> list[float]:
    """Irregular numbers between -2 and 2, one for each element of a shape.

    >>> numbers((2,), 0)
    [1.818595, -1.320884]
    """
    return [round(2.0 * math.sin(2.0 + 7.3 * seed + 1.863 * k), 6) for k in range(math.prod(shape))]


def weights(count: int) -> list[float]:
    """Weights of the elements of a result, whose weighted sum is a loss.

    >>> weights(2)
    [1.0, 0.540302]
    """
    return [round(math.cos(k), 6) for k in range(count)]
