"""Gradient accumulation: the gradient of a batch too large for memory, computed from smaller batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError


def accumulate(
    value_and_gradient: Callable[..., tuple[Any, Any]], parameters: Any, batches: Iterable[tuple[Any, ...]]
) -> tuple[Any, Any]:
    """Average values and gradients over batches, computing one batch at a time.

    If the batches are equal parts of a larger batch and the loss is a mean over examples, the results are the loss and
    gradient of the larger batch.

    Args:
        value_and_gradient: a function of the parameters and a batch, made by `tk.value_and_grad`, with or without
            `has_aux`.
        parameters: its first argument.
        batches: its other arguments, a tuple for each batch.

    Raises:
        ArgumentError: if there is no batch.

    >>> import tensorken as tk
    >>> value_and_gradient = tk.value_and_grad(lambda w, x: (w * x).mean())
    >>> x = tk.tensor([1.0, 2.0, 3.0, 6.0])
    >>> loss, gradient = accumulate(value_and_gradient, tk.tensor(2.0), zip(tk.split(x, 2)))
    >>> loss.item(), gradient.item()
    (6.0, 3.0)
    """
    parts = iter(batches)
    first = next(parts, None)
    if first is None:
        raise ArgumentError("accumulate: there is no batch; need one or more")
    total, count = value_and_gradient(parameters, *first), 1
    for batch in parts:
        total = tree.map(lambda a, b: a + b, total, value_and_gradient(parameters, *batch))
        count += 1
    mean: tuple[Any, Any] = tree.map(lambda x: x / count, total)
    return mean
