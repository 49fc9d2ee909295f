"""The linear layer."""

from __future__ import annotations

from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer, lecun_normal, zeros
from tensorken_nn.module import Module


class Linear(Module):
    """x @ weight.T + bias along the last axis.

    Args:
        inputs, outputs: the sizes of the last axis of input and output.
        bias: whether there is a bias.
        key: for the initial parameters, which are on the key's backend.
        weight_initializer, bias_initializer: of the parameters.
        dtype: of the parameters, a float.

    Raises:
        ArgumentError: if a size is not positive.

    >>> layer = Linear(2, 3, key=tk.random.key(0))
    >>> layer
    Linear(weight=float32 (3, 2), bias=float32 (3,))
    >>> layer(tk.ones((5, 2))).shape
    (5, 3)
    """

    weight: Tensor  # (outputs, inputs)
    bias: Tensor | None  # (outputs,)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        *,
        key: Tensor,
        weight_initializer: Initializer = lecun_normal,
        bias_initializer: Initializer = zeros,
        dtype: Any = tk.float32,
    ) -> None:
        if inputs < 1 or outputs < 1:
            raise ArgumentError(f"Linear: need one input and one output or more, got {inputs}, {outputs}")
        weight_key, bias_key = tk.random.split(key)
        self.weight = weight_initializer(weight_key, (outputs, inputs), dtype)
        self.bias = bias_initializer(bias_key, (outputs,), dtype) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., inputs) to (..., outputs).

        Raises:
            ShapeError: if x has another last axis.
        """
        inputs = self.weight.shape[1]
        if x.shape[-1:] != (inputs,):
            raise ShapeError(f"Linear: got shape {x.shape}, need (..., {inputs}); reshape the input")
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias
