"""`stop_gradient`: treat a value as a constant in derivatives."""

from __future__ import annotations

from typing import Any

from tensorken_core import tree
from tensorken_core.language.op import Op
from tensorken_core.tensor.dispatch import apply
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "stop_gradient",
]

_STOP_GRADIENT = Op("stop_gradient", 1, lambda x: x, lambda x: x, body=lambda x: x)


def stop_gradient(x: Any) -> Any:
    """x as a constant: no derivative passes through it.

    Args:
        x: a tensor, or a pytree of tensors.

    >>> import tensorken as tk
    >>> tk.grad(lambda x: x * tk.stop_gradient(x))(3.0).item()
    3.0
    """
    if isinstance(x, Tensor) and x.dtype.kind != "complex":
        return apply(_STOP_GRADIENT, (x,))
    return tree.map(lambda leaf: apply(_STOP_GRADIENT, (as_tensor(leaf),)), x)
