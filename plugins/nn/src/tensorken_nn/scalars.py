"""Scalars of a step: Python numbers in eager code, tensors of shape () in compiled functions.

One formula then works for both: numbers are computed in double precision, tensors in their dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor

Scalar: TypeAlias = float | Tensor


def _dispatch(of_numbers: Callable[..., float], of_tensors: Callable[..., Tensor]) -> Callable[..., Any]:
    """A function of scalars that dispatches on whether its first argument is a tensor."""

    def function(x: Scalar, *rest: float) -> Scalar:
        return of_tensors(x, *rest) if isinstance(x, Tensor) else of_numbers(x, *rest)

    return function


cos = _dispatch(math.cos, tk.cos)
floor = _dispatch(math.floor, tk.floor)
maximum = _dispatch(max, tk.maximum)
minimum = _dispatch(min, tk.minimum)
sqrt = _dispatch(math.sqrt, tk.sqrt)


def switch_after(last: int, step: Scalar, before: Scalar, after: Scalar) -> Scalar:
    """`before` up to and including step `last`, then `after`.

    >>> switch_after(3, 3, 0.5, 0.25), switch_after(3, tk.tensor(4), 0.5, 0.25).item()
    (0.5, 0.25)
    """
    if not isinstance(step, Tensor):
        return before if step <= last else after
    like = as_float(step)
    return (step <= last).where(*[x if isinstance(x, Tensor) else like.scalar(x) for x in (before, after)])


def as_float(x: Tensor) -> Tensor:
    """The tensor, converted to float32 if it is not a float.

    >>> as_float(tk.tensor(3)).dtype.name, as_float(tk.tensor(3.0, tk.float64)).dtype.name
    ('float32', 'float64')
    """
    return x if x.dtype.kind == "float" else x.astype(tk.float32)
