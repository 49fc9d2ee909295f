"""Gradient clipping: scale down gradients that are too large for a step.

Call it between the gradient and the optimiser's step:

    loss, gradients = value_and_gradient(model, x, y)
    model, state = optimizer.update(model, clip_by_global_norm(gradients, 1.0), state)
"""

from __future__ import annotations

import math
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_nn.precision import widen


def global_norm(gradients: Any) -> Tensor:
    """The Euclidean norm of all numbers of a tree, taken as one vector.

    float16 is summed in float32. No square overflows or underflows.

    >>> global_norm({"w": tk.tensor([[3.0]]), "b": tk.tensor(4.0)}).item()
    5.0
    """
    leaves = [widen(x) for x in tree.leaves(gradients)]
    if not leaves:
        return tk.zeros(())
    norm, *rest = [tk.linalg.vector_norm(x) for x in leaves]
    for part in rest:
        norm = tk.hypot(norm, part)
    return norm


def clip_by_global_norm(gradients: Any, limit: float) -> Any:
    """Scale the tree to the limit if its norm exceeds it; the direction stays the same.

    A NaN makes all gradients NaN, and an infinite gradient makes finite ones 0.

    Source: Pascanu, Mikolov, Bengio, On the Difficulty of Training Recurrent Neural Networks (2013), algorithm 1.

    Raises:
        ArgumentError: if the limit is not positive.
        DTypeError: if a gradient is not of floats.

    >>> clip_by_global_norm([tk.tensor([3.0, 4.0])], 2.5)[0].tolist()
    [1.5, 2.0]
    """
    _check_positive("clip_by_global_norm", limit)
    leaves = [widen(x) for x in tree.leaves(gradients) if x.size]
    for x in leaves:
        if x.dtype.kind not in ("float", "complex"):
            raise DTypeError(
                f"clip_by_global_norm: gradients must be floats, got {x.dtype}; cast them (gradients.astype)"
            )
    if not leaves:
        return gradients
    # All numbers are divided by the largest one, so that no square and no norm of finite numbers overflows.
    scale, *rest = [tk.abs(x).max() for x in leaves]
    for largest in rest:
        scale = tk.maximum(scale, largest)
    scale = tk.where((scale > 0.0) & (scale < math.inf), scale, 1.0)
    total, *others = [(x / scale).square().sum() for x in leaves]
    for part in others:
        total = total + part
    length = tk.sqrt(total)
    is_small = length <= limit / scale  # an infinite limit clips nothing
    factor = limit / length
    return tree.map(lambda x: tk.where(is_small, x, (widen(x) / scale * factor).astype(x.dtype)), gradients)


def clip_by_value(gradients: Any, limit: float) -> Any:
    """Clip each number of the tree to [-limit, limit].

    Raises:
        ArgumentError: if the limit is not positive.

    >>> clip_by_value([tk.tensor([3.0, -0.5, -4.0])], 1.0)[0].tolist()
    [1.0, -0.5, -1.0]
    """
    _check_positive("clip_by_value", limit)
    return tree.map(lambda x: tk.clip(x, -limit, limit), gradients)


def _check_positive(name: str, limit: float) -> None:
    if not limit > 0.0:
        raise ArgumentError(f"{name}: the limit must be positive, got {limit}")
