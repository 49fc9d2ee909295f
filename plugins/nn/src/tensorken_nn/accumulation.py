"""Gradient accumulation: the gradient of a batch that is too large for the memory, from parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tensorken_core import tree
from tensorken_core.errors import ArgumentError


def accumulate(
    value_and_gradient: Callable[..., tuple[Any, Any]], parameters: Any, batches: Iterable[tuple[Any, ...]]
) -> tuple[Any, Any]:
    """The means of the values and of the gradients over batches, of which only one is computed at a time.

    If the batches are parts of one, all of one size, and the loss is a mean over examples, these are the loss and the
    gradient of the whole.

    Args:
        value_and_gradient: from the parameters and a batch, as `tk.value_and_grad` makes it, with `has_aux` or not.
        parameters: what it takes first.
        batches: what it takes else, as tuples.

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
