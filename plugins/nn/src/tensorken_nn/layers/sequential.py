"""Sequences of modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.initializers import Initializer, he_normal
from tensorken_nn.layers.linear import Linear
from tensorken_nn.module import Function, Module, format_module


class Sequential(Module):
    """A sequence of modules, or functions without parameters, applied in order.

    Args:
        layers: modules or functions of one tensor.

    >>> from tensorken_nn import BatchNorm
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

    If a layer has a state, such as running statistics, it is passed and returned explicitly:

    >>> model = Sequential(Linear(2, 3, key=keys[0]), BatchNorm(3), tk.relu)
    >>> state = model.initial_state()
    >>> y, state = model.train(tk.ones((5, 2)), state)
    >>> model(tk.ones((5, 2)), state).shape
    (5, 3)
    """

    layers: tuple[Any, ...]

    def __init__(self, *layers: Module | Callable[..., Any]) -> None:
        self.layers = tuple([layer if isinstance(layer, Module) else Function(layer) for layer in layers])

    def initial_state(self) -> tuple[Any, ...]:
        """The state before training: a tuple with the state of each layer, None for a layer without one."""
        return tuple([layer.initial_state() if has_state(layer) else None for layer in self.layers])

    def __call__(self, x: Any, state: Any = None, *, key: Tensor | None = None) -> Any:
        """The output of the last layer.

        Args:
            x: the input of the first layer.
            state: the state of the layers; needed only if a layer has one.
            key: for randomness in training, as in `Dropout`; each layer that takes a key gets its own.

        Raises:
            ArgumentError: if the state does not fit the layers.
        """
        for i, (layer, layer_state) in enumerate(self._with_states(state)):
            keywords = _key_of_layer(key, i, type(layer).__call__)
            x = layer(x, layer_state, **keywords) if has_state(layer) else layer(x, **keywords)
        return x

    def train(self, x: Any, state: Any, *, key: Tensor | None = None) -> tuple[Any, tuple[Any, ...]]:
        """The output of the last layer and the new state; layers with a state, such as `BatchNorm`, run `train`.

        Args:
            x, state, key: as in a call.

        Raises:
            ArgumentError: if the state does not fit the layers.
        """
        states = []
        for i, (layer, layer_state) in enumerate(self._with_states(state)):
            if has_state(layer):
                x, layer_state = layer.train(x, layer_state, **_key_of_layer(key, i, type(layer).train))
            else:
                x = layer(x, **_key_of_layer(key, i, type(layer).__call__))
            states.append(layer_state)
        return x, tuple(states)

    def _with_states(self, state: Any) -> Iterator[tuple[Any, Any]]:
        """Each layer with its state."""
        states = (None,) * len(self.layers) if state is None else state
        if not isinstance(states, tuple) or len(states) != len(self.layers):
            got = f"{len(states)} parts" if isinstance(states, tuple) else type(states).__name__
            raise ArgumentError(
                f"{type(self).__name__}: the state must be a tuple with a part for each of {len(self.layers)} layers, "
                f"got {got}; initial_state() gives the first, train(x, state) the next"
            )
        return zip(self.layers, states, strict=True)

    def __repr__(self) -> str:
        return format_module(type(self).__name__, self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int | slice) -> Any:
        return Sequential(*self.layers[i]) if isinstance(i, slice) else self.layers[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


def has_state(layer: Any) -> bool:
    """Whether a layer has a state."""
    return hasattr(type(layer), "initial_state")


def _key_of_layer(key: Tensor | None, i: int, method: Callable[..., Any]) -> dict[str, Tensor]:
    """The keyword arguments for a method of layer i: the key of the layer, if there is one and the method takes it."""
    return {"key": tk.random.fold_in(key, i)} if key is not None and takes_key(method) else {}


@cache
def takes_key(method: Callable[..., Any]) -> bool:
    """Whether a method takes a `key`."""
    return "key" in inspect.signature(method).parameters


def mlp(
    sizes: Sequence[int],
    activation: Callable[[Tensor], Tensor] = tk.relu,
    *,
    key: Tensor,
    weight_initializer: Initializer = he_normal,
    dtype: Any = tk.float32,
) -> Sequential:
    """A multilayer perceptron: linear layers of these sizes, with an activation between them.

    >>> [layer.weight.shape for layer in mlp((64, 32, 10), key=tk.random.key(0)) if isinstance(layer, Linear)]
    [(32, 64), (10, 32)]
    """
    if len(sizes) < 2:
        raise ArgumentError(f"mlp: need at least the sizes of input and output, got {tuple(sizes)}")
    layers: list[Module | Callable[..., Any]] = []
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        layer_key = tk.random.fold_in(key, i)
        layers += [
            Linear(inputs, outputs, key=layer_key, weight_initializer=weight_initializer, dtype=dtype),
            activation,
        ]
    return Sequential(*layers[:-1])
