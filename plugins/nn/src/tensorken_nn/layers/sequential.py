"""Modules one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken.errors import ArgumentError
from tensorken_nn.initializers import Initializer, he_normal
from tensorken_nn.layers.linear import Linear
from tensorken_nn.module import Function, Module, shown


class Sequential(Module):
    """Modules, and functions without parameters, one after the other.

    Args:
        layers: modules or functions of one tensor.

    >>> keys = tk.random.split(tk.random.key(0))
    >>> model = Sequential(Linear(2, 3, key=keys[0]), tk.tanh, Linear(3, 1, bias=False, key=keys[1]))
    >>> model(tk.ones((5, 2))).shape
    (5, 1)
    >>> model
    Sequential(
      Linear(weight=float32 (3, 2), bias=float32 (3,)),
      Function(tanh),
      Linear(weight=float32 (1, 3), bias=None),
    )
    """

    layers: tuple[Any, ...]

    def __init__(self, *layers: Callable[..., Any]) -> None:
        self.layers = tuple([layer if isinstance(layer, Module) else Function(layer) for layer in layers])

    def __call__(self, x: Any, *, key: Tensor | None = None) -> Any:
        """The output of the last layer.

        Args:
            x: what the first layer takes.
            key: for what is random while training, as in `Dropout`: each layer that takes a key gets one of its own.
        """
        for i, layer in enumerate(self.layers):
            if key is not None and takes_key(type(layer)):
                x = layer(x, key=tk.random.fold_in(key, i))
            else:
                x = layer(x)
        return x

    def __repr__(self) -> str:
        return shown("Sequential", self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Any:
        return self.layers[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


@cache
def takes_key(kind: type[Module]) -> bool:
    """Whether modules of this class take a `key` when they are called."""
    return "key" in inspect.signature(kind.__call__).parameters


def mlp(
    sizes: Sequence[int],
    activation: Callable[[Tensor], Tensor] = tk.relu,
    *,
    key: Tensor,
    weight_initializer: Initializer = he_normal,
    dtype: Any = tk.float32,
) -> Sequential:
    """A multilayer perceptron: linear layers between these sizes, the activation after each but the last.

    >>> [layer.weight.shape for layer in mlp((64, 32, 10), key=tk.random.key(0)) if isinstance(layer, Linear)]
    [(32, 64), (10, 32)]
    """
    if len(sizes) < 2:
        raise ArgumentError(f"mlp: need at least the sizes of input and output, got {tuple(sizes)}")
    layers: list[Callable[..., Any]] = []
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        own = tk.random.fold_in(key, i)
        layers += [
            Linear(inputs, outputs, key=own, weight_initializer=weight_initializer, dtype=dtype),
            activation,
        ]
    return Sequential(*layers[:-1])
