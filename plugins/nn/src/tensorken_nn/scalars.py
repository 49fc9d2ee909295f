"""Scalars of a step: Python numbers where Python counts the steps, tensors of shape () where a compiled function does.

So one formula serves both: a number stays Python's, in double precision, and a tensor its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor

Scalar: TypeAlias = float | Tensor


def _either(of_numbers: Callable[..., float], of_tensors: Callable[..., Tensor]) -> Callable[..., Any]:
    """A function of scalars, the first of which decides whether it is of numbers or of tensors."""

    def function(x: Scalar, *rest: float) -> Scalar:
        return of_tensors(x, *rest) if isinstance(x, Tensor) else of_numbers(x, *rest)

    return function


cos = _either(math.cos, tk.cos)
floor = _either(math.floor, tk.floor)
maximum = _either(max, tk.maximum)
minimum = _either(min, tk.minimum)
sqrt = _either(math.sqrt, tk.sqrt)


def until(last: int, step: Scalar, before: Scalar, after: Scalar) -> Scalar:
    """`before` while the step is `last` at most, then `after`.

    >>> until(3, 3, 0.5, 0.25), until(3, tk.tensor(4), 0.5, 0.25).item()
    (0.5, 0.25)
    """
    if not isinstance(step, Tensor):
        return before if step <= last else after
    like = floating(step)
    return (step <= last).where(*[x if isinstance(x, Tensor) else like.scalar(x) for x in (before, after)])


def floating(x: Tensor) -> Tensor:
    """A tensor that is no float as one, float32.

    >>> floating(tk.tensor(3)).dtype.name, floating(tk.tensor(3.0, tk.float64)).dtype.name
    ('float32', 'float64')
    """
    return x if x.dtype.kind == "float" else x.astype(tk.float32)
