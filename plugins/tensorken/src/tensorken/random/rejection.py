"""Loops for samplers by rejection: each step draws for all elements, until each has been accepted once.

Step i draws with the key folded with i, and an element keeps the first number that was accepted for it.  So a number
depends only on its key, its index and its parameters: not on the other elements, nor on the examples of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.control_flow import while_loop
from tensorken.random.keys import fold_in
from tensorken_core.tensor.tensor import Tensor

Attempt = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From a key to numbers, and whether each is accepted."""


def first_accepted(key: Tensor, attempt: Attempt, start: Tensor, wanted: Tensor) -> Tensor:
    """For each element the first number that was accepted.

    Args:
        key: of the loop.
        attempt: one step.
        start: the result where no number is wanted.
        wanted: whether the element gets a number.
    """

    def body(state: Any) -> Any:
        step, value, wanted = state
        drawn, accepted = attempt(fold_in(key, step))
        return step + 1, (wanted & accepted).where(drawn, value), wanted & ~accepted

    first = key.constant([0], key.dtype, ())
    result: Tensor = while_loop(lambda state: state[2].any(), body, (first, start, wanted))[1]
    return result


def count_until(key: Tensor, advance: Callable[[Tensor], Tensor], limit: Tensor, wanted: Tensor) -> Tensor:
    """How many positive numbers can be added without exceeding the limit, elementwise; 0 where it is not wanted.

    Args:
        key: of the loop.
        advance: from a key to the next numbers.
        limit: of the sums.
        wanted: whether the element gets a count.
    """

    def body(state: Any) -> Any:
        step, total, count, wanted = state
        total = total + advance(fold_in(key, step))
        wanted = wanted & (total <= limit)
        return step + 1, total, wanted.where(count + 1.0, count), wanted

    first, zeros = key.constant([0], key.dtype, ()), limit.zeros_like()
    result: Tensor = while_loop(lambda state: state[3].any(), body, (first, zeros, zeros, wanted))[2]
    return result
