"""Residual connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken import Tensor
from tensorken_core.errors import ShapeError
from tensorken_nn.layers.sequential import Sequential
from tensorken_nn.module import Module


class Residual(Sequential):
    """A sequence of layers whose input is added to its output: x + layers(x).

    Source: He, Zhang, Ren, Sun, Deep Residual Learning for Image Recognition (2015).

    Args:
        layers: modules or functions of one tensor; together they must keep its shape.

    >>> import tensorken as tk
    >>> Residual(tk.relu)(tk.tensor([-1.0, 2.0])).tolist()
    [-1.0, 4.0]
    """

    def __init__(self, *layers: Module | Callable[..., Any]) -> None:
        super().__init__(*layers)

    def __call__(self, x: Any, state: Any = None, *, key: Tensor | None = None) -> Any:
        """As for `Sequential`.

        Raises:
            ShapeError: if the layers change the shape.
        """
        return _sum(x, super().__call__(x, state, key=key))

    def train(self, x: Any, state: Any, *, key: Tensor | None = None) -> tuple[Any, tuple[Any, ...]]:
        """As for `Sequential`.

        Raises:
            ShapeError: if the layers change the shape.
        """
        y, state = super().train(x, state, key=key)
        return _sum(x, y), state


def _sum(x: Tensor, y: Tensor) -> Tensor:
    if x.shape != y.shape:
        raise ShapeError(f"Residual: the layers map shape {x.shape} to {y.shape}; they must keep the shape")
    return x + y
