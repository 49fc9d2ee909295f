"""Bodies of norms."""

from __future__ import annotations

import math
from typing import Any

from tensorken_core.language.bodies.matrices import scale_of
from tensorken_core.language.shapes import Axes

Tensor = Any


def norm(x: Tensor, axes: Axes) -> Tensor:
    """The elements are first divided by the largest size, so that no square overflows and not all of them vanish."""
    if math.prod([x.shape[i] for i in axes]) == 0:
        return x.sum(axes, keepdims=True)
    scale = scale_of(x, axes)
    return (x / scale).square().sum(axes, keepdims=True).sqrt() * scale
