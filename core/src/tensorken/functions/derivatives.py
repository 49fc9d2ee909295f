"""What users tell the transforms: here a constant begins."""

from __future__ import annotations

from typing import Any

from tensorken.creation import as_tensor
from tensorken.dispatch import apply
from tensorken.spec.op import Op
from tensorken.tensor import Tensor

__all__ = [
    "stop_gradient",
]

_STOP_GRADIENT = Op("stop_gradient", 1, lambda x: x, lambda x: x, body=lambda x: x)


def stop_gradient(x: Any) -> Tensor:
    """x as a constant: no derivative passes through it.

    >>> import tensorken as tk
    >>> tk.grad(lambda x: x * tk.stop_gradient(x))(3.0).item()
    3.0
    """
    result: Tensor = apply(_STOP_GRADIENT, (as_tensor(x),))
    return result
