"""Body of the 2-norm."""

from __future__ import annotations

import math
from typing import Any

from tensorken_core.language.shapes import Axes

Tensor = Any


def scale_of(x: Tensor, axes: Any) -> Tensor:
    """A scale to divide by: the largest absolute value over axes, which are kept; 1 where that is 0 or infinite."""
    largest = x.abs().max(axes, keepdims=True)
    return (largest > 0.0).where(largest < float("inf"), False).where(largest, 1.0)


def norm(x: Tensor, axes: Axes) -> Tensor:
    """Divide by the largest absolute value first, so that no square overflows and not all squares underflow."""
    if math.prod([x.shape[i] for i in axes]) == 0:
        return x.sum(axes, keepdims=True)
    scale = scale_of(x, axes)
    return (x / scale).square().sum(axes, keepdims=True).sqrt() * scale
