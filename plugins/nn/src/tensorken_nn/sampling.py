"""Draw tokens from logits."""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError


def draw(key: Tensor, logits: Tensor, temperature: float | Tensor = 1.0, top_k: int | None = None) -> Tensor:
    """Draw an index for each row of logits from softmax(logits / temperature).

    Args:
        key: for the draws.
        logits: shape (..., tokens), float.
        temperature: positive; below 1 likely tokens become likelier, above 1 the distribution becomes more even. The
            number 0 takes the likeliest.
        top_k: draw only from the `top_k` likeliest tokens, and tokens as likely as the last of these; None: all.

    Returns:
        Shape (...), int.

    Raises:
        ArgumentError: if the temperature is negative or top_k not positive.

    >>> logits = tk.tensor([1.0, 5.0, 4.0])
    >>> draw(tk.random.key(0), logits, temperature=0.0).item()
    1
    >>> sorted({draw(tk.random.key(i), logits, top_k=2).item() for i in range(20)})
    [1, 2]
    """
    if not isinstance(temperature, Tensor) and not temperature >= 0.0:
        raise ArgumentError(
            f"draw: need a temperature from 0, got {temperature}; 1 keeps the probabilities as they are"
        )
    if top_k is not None and top_k < 1:
        raise ArgumentError(f"draw: need a top_k of 1 or more, got {top_k}; None lets all be drawn")
    if top_k == 1 or (not isinstance(temperature, Tensor) and temperature == 0.0):
        return logits.argmax(-1)
    logits = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        least = tk.topk(logits, top_k).values.min(-1, keepdims=True)
        logits = tk.where(logits < least, -math.inf, logits)
    return tk.random.categorical(key, logits)
