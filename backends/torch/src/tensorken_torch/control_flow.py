"""Loops and branches in Python, whose bodies are compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tensorken_core.language.higher_order import Loop

Run = Callable[[Sequence[Tensor]], Sequence[Tensor]]
"""A compiled program."""


def branch(if_true: Run, if_false: Run) -> Callable[..., Sequence[Tensor]]:
    """A function that runs the first program if its first operand is True, else the second."""

    def run_branch(predicate: Tensor, *xs: Tensor) -> Sequence[Tensor]:
        return (if_true if predicate.item() else if_false)(xs)

    return run_branch


def loop(
    loop: Loop, condition: Run | None, body: Run, empty: Sequence[Tensor]
) -> Callable[..., Sequence[Tensor]]:
    """A function from the operands of a loop to its results, whose stacked results are `empty` without steps."""

    def run_loop(*operands: Tensor) -> Sequence[Tensor]:
        inputs = [*operands]
        slices = [(i, operands[i].unbind(axis)) for i, axis in loop.sliced]
        stacks: list[list[Tensor]] = [[] for _ in loop.stacked]
        results = {result: operands[i] for i, result in loop.carried}
        steps: Any = _forever() if loop.length is None else range(loop.length)
        for step in reversed(steps) if loop.reverse else steps:
            if condition is not None and not condition(inputs)[0].item():
                break
            for i, xs in slices:
                inputs[i] = xs[step]
            ys = body(inputs)
            for i, result in loop.carried:
                inputs[i] = results[result] = ys[result]
            for stack, (result, _) in zip(stacks, loop.stacked, strict=True):
                stack.append(ys[result])
        for stack, (result, axis), none in zip(stacks, loop.stacked, empty, strict=True):
            results[result] = torch.stack(stack[::-1] if loop.reverse else stack, axis) if stack else none
        return tuple([results[i] for i in range(len(results))])

    return run_loop


def _forever() -> Any:
    step = 0
    while True:
        yield step
        step += 1
