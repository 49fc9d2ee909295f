"""Functions with derivatives of the user's own: an Op value, which needs no place in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.creation import as_tensor
from tensorken.dispatch import apply
from tensorken.errors import ShapeError
from tensorken.spec.dtype_rules import floating
from tensorken.spec.op import Op
from tensorken.tensor import Tensor

__all__ = [
    "elementwise",
]


def elementwise(
    f: Callable[[Tensor], Tensor], derivative: Callable[[Tensor], Tensor]
) -> Callable[[Any], Tensor]:
    """The elementwise function f with a derivative given by hand; it works in every mode and to any order.

    Args:
        f: from a tensor of floats to one of the same shape; no derivative is taken through it.
        derivative: f's derivative, from f's argument to a tensor of its shape; higher orders differentiate it.

    Raises:
        ShapeError: when called, if f changes the shape.

    >>> import tensorken as tk
    >>> softplus = tk.elementwise(lambda x: tk.log1p(tk.exp(x)), tk.sigmoid)
    >>> tk.grad(softplus)(0.0).item(), tk.grad(tk.grad(softplus))(0.0).item()
    (0.5, 0.25)
    """
    name = getattr(f, "__name__", "elementwise").strip("<>")

    def body(x: Tensor) -> Tensor:
        y = f(x)
        if y.shape != x.shape:
            raise ShapeError(f"{name}: an elementwise function must keep the shape {x.shape}, got {y.shape}")
        return y

    def rule(t: Tensor, y: Tensor, x: Tensor) -> Tensor:
        return t * derivative(x)

    op = Op(name, 1, lambda x: x, floating, jvp=(rule,), vjp=(rule,), body=body)

    def call(x: Any) -> Tensor:
        result: Tensor = apply(op, (as_tensor(x),))
        return result

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f.__doc__
    return call
