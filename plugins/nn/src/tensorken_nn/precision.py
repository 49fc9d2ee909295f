"""Precision: where narrow floats are computed with as wider ones."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor


def widened(x: Tensor) -> Tensor:
    """x, float16 as float32, which holds sums of squares: float16 ends at 65504, and small squares are 0 there.

    >>> widened(tk.ones(2, dtype=tk.float16)).dtype.name
    'float32'
    """
    return x.astype(tk.float32) if x.dtype is tk.float16 else x
