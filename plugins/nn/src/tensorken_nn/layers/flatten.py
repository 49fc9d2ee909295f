"""Flatten axes."""

from __future__ import annotations

import math

from tensorken import Tensor
from tensorken_core.errors import AxisError
from tensorken_nn.module import Module, static


class Flatten(Module):
    """Join the axes from `start` to `end`, both included, into one; by default all but the first.

    >>> import tensorken as tk
    >>> Flatten()(tk.ones((32, 3, 8, 8))).shape
    (32, 192)
    """

    start: int = static(default=1)
    end: int = static(default=-1)

    def __call__(self, x: Tensor) -> Tensor:
        """Reshape x.

        Raises:
            AxisError: if x lacks one of the axes, or the first comes after the last.
        """
        start, end = (axis + x.ndim if axis < 0 else axis for axis in (self.start, self.end))
        if not 0 <= start <= end < x.ndim:
            raise AxisError(
                f"Flatten: got shape {x.shape}, need the axes from {self.start} to {self.end}; choose others"
            )
        return x.reshape((*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))
