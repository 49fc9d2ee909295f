"""Layers: immutable descriptions that make their parameters and apply them.

`layer.init(rng)` gives the parameters, nested dicts of tensors; `layer(parameters, x)` is a pure function of both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import tensorken as tk
from tensorken import Tensor, tree
from tensorken.errors import ArgumentError, ShapeError
from tensorken_nn.initializers import Initializer, he, zeros

Parameters: TypeAlias = dict[str, Any]
"""Tensors by name, or the parameters of parts by the part's name."""

Activation: TypeAlias = Callable[[Tensor], Tensor]


class Layer(Protocol):
    """What can be part of a network."""

    def init(self, rng: random.Random, dtype: Any = tk.float32, backend: Any = None) -> Parameters:
        """Parameters to begin with."""

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """The output for the input x."""


@dataclass(frozen=True, slots=True)
class Linear:
    """x @ W.T + b along the last axis, then the activation.

    Its parameters are `W` of shape (outputs, inputs) and, if it has a bias, `b` of shape (outputs,).

    >>> layer = Linear(2, 3, activation=tk.relu)
    >>> parameters = layer.init(random.Random(0))
    >>> layer(parameters, tk.ones((5, 2))).shape
    (5, 3)
    """

    inputs: int
    outputs: int
    bias: bool = True
    activation: Activation | None = None
    weight_initializer: Initializer = he

    def __post_init__(self) -> None:
        if self.inputs < 1 or self.outputs < 1:
            raise ArgumentError(
                f"Linear: need one input and one output or more, got {self.inputs}, {self.outputs}"
            )

    def init(self, rng: random.Random, dtype: Any = tk.float32, backend: Any = None) -> Parameters:
        """Weights from the initialiser, zeros for the biases."""
        parameters = {"W": self.weight_initializer((self.outputs, self.inputs), rng, dtype, backend)}
        if self.bias:
            parameters["b"] = zeros((self.outputs,), rng, dtype, backend)
        return parameters

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """From shape (..., inputs) to (..., outputs).

        Raises:
            ShapeError: if x has another last axis.
        """
        if x.shape[-1:] != (self.inputs,):
            raise ShapeError(f"Linear: got shape {x.shape}, need (..., {self.inputs}); reshape the input")
        y = x @ parameters["W"].T
        if self.bias:
            y = y + parameters["b"]
        return y if self.activation is None else self.activation(y)


@dataclass(frozen=True, slots=True)
class Sequential:
    """Layers one after the other; their parameters are named "0", "1", ...

    >>> model = Sequential((Linear(2, 3, activation=tk.tanh), Linear(3, 1, bias=False)))
    >>> {name: list(parameters) for name, parameters in model.init(random.Random(0)).items()}
    {'0': ['W', 'b'], '1': ['W']}
    """

    layers: tuple[Layer, ...]

    def __init__(self, layers: Sequence[Layer]) -> None:
        object.__setattr__(self, "layers", tuple(layers))

    def init(self, rng: random.Random, dtype: Any = tk.float32, backend: Any = None) -> Parameters:
        """The parameters of all layers, drawn in their order."""
        return {str(i): layer.init(rng, dtype, backend) for i, layer in enumerate(self.layers)}

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        """The output of the last layer."""
        for i, layer in enumerate(self.layers):
            x = layer(parameters[str(i)], x)
        return x


def mlp(sizes: Sequence[int], activation: Activation = tk.relu) -> Sequential:
    """A multilayer perceptron: linear layers between these sizes, each but the last with the activation.

    >>> [(layer.inputs, layer.outputs) for layer in mlp((64, 32, 10)).layers]
    [(64, 32), (32, 10)]
    """
    if len(sizes) < 2:
        raise ArgumentError(f"mlp: need at least the sizes of input and output, got {tuple(sizes)}")
    *hidden, last = pairwise(sizes)
    return Sequential([*[Linear(m, n, activation=activation) for m, n in hidden], Linear(*last)])


def size(parameters: Any) -> int:
    """How many numbers a tree of tensors holds.

    >>> size(mlp((64, 32, 10)).init(random.Random(0)))
    2410
    """
    return sum(leaf.size for leaf in tree.leaves(parameters))
