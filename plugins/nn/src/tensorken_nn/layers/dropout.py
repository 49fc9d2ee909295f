"""Dropout."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.module import Module, static


class Dropout(Module):
    """In training, set each element to 0 with probability `rate`, else divide it by 1 - rate, which keeps the mean.

    Source: Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting (2014).

    Args:
        rate: from 0 to 1.

    Raises:
            ArgumentError: if the rate is out of range.

    >>> drop = Dropout(0.5)
    >>> x = tk.ones((8,))
    >>> drop(x).tolist() == x.tolist()
    True
    >>> set(drop(x, key=tk.random.key(0)).tolist()) == {0.0, 2.0}
    True
    """

    rate: float = static()

    def __init__(self, rate: float = 0.5) -> None:
        if not 0.0 <= rate <= 1.0:
            raise ArgumentError(f"Dropout: rate must be from 0 to 1, got {rate}")
        self.rate = float(rate)

    def __call__(self, x: Tensor, *, key: Tensor | None = None) -> Tensor:
        """Apply dropout to x, of any shape; without a key, return x."""
        if key is None or self.rate == 0.0:
            return x
        if self.rate == 1.0:
            return x.zeros_like()
        kept = tk.random.bernoulli(key, 1.0 - self.rate, x.shape)
        return kept.where(x / (1.0 - self.rate), 0.0)
