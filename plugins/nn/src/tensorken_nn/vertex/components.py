"""Components: parts of a neural network with trainable parameters."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.vertex.initialisers import He, WeightInitialiser
from tensorken_nn.vertex.node import Vertex
from tensorken_nn.vertex.vector import Vector


class Component(ABC):
    """A function of vectors with parameters. A subclass stores them in `self._parameters` and defines `forward`.

    >>> class Shift(Component):
    ...     def __init__(self, by):
    ...         super().__init__()
    ...         self._parameters["by"] = Vertex(by)
    ...
    ...     def forward(self, x):
    ...         return x + self.parameters["by"]
    >>> shift = Shift(1.0)
    >>> shift(Vector(1.0, 2.0)), shift.parameters
    (Vector(2.0, 3.0), {'by': Vertex(1.0)})
    """

    def __init__(self) -> None:
        self._parameters: dict[str, Any] = {}

    def __call__(self, x: Vector) -> Vector:
        return self.forward(x)

    @property
    def parameters(self) -> dict[str, Any]:
        """The trainable parameters by name: vertices, vectors, matrices, and dicts of these."""
        return self._parameters

    @abstractmethod
    def forward(self, x: Vector) -> Vector:
        """Apply the component to a vector."""


class Linear(Component):
    """A linear layer, activation(W @ x + b).

    Its parameters are `W`, a matrix of shape (out_dim, in_dim), and `b`, a vector that is initially zeros.

    Args:
        in_dim: the size of the input.
        out_dim: the size of the output.
        bias: whether there is a `b`.
        activation: a function of a vertex, applied to each element; None for none.
        weight_initialiser: draws the weights.
        seed: of the random weights.

    >>> layer = Linear(2, 1)
    >>> layer.parameters
    {'W': Matrix([[-0.14409032957792836, -0.1729036003315193]]), 'b': Vector(0.0)}
    >>> layer(Vector(1.0, 1.0))
    Vector(-0.31699392990944764)
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        bias: bool = True,
        activation: Callable[[Vertex], Vertex] | None = None,
        weight_initialiser: WeightInitialiser = He(),  # noqa: B008 - stateless
        seed: int = 42,
    ) -> None:
        super().__init__()
        self._activation = activation
        self._parameters["W"] = weight_initialiser(out_dim, in_dim, random.Random(seed))
        if bias:
            self._parameters["b"] = Vector([0.0] * out_dim)

    def forward(self, x: Vector) -> Vector:
        """Apply the layer to a vector of size in_dim.

        Raises:
            ArgumentError: if x is not a vector.
            ShapeError: if x has another size.
        """
        W = self._parameters["W"]
        if not isinstance(x, Vector):
            raise ArgumentError(f"Linear: need a Vector, got {type(x).__name__}")
        if len(x) != len(W.cols):
            raise ShapeError(f"Linear: need a Vector of size {len(W.cols)}, got one of size {len(x)}")
        z: Vector = W @ x
        if "b" in self._parameters:
            z = z + self._parameters["b"]
        return z if self._activation is None else z.map(self._activation)


class Sequential(Component):
    """A sequence of components, applied in order; their parameters are named "0", "1", ...

    >>> model = Sequential([Linear(2, 3, bias=False), Linear(3, 1)])
    >>> [list(parameters) for parameters in model.parameters.values()]
    [['W'], ['W', 'b']]
    """

    def __init__(self, layers: Sequence[Component]) -> None:
        super().__init__()
        self._layers = tuple(layers)
        for i, layer in enumerate(self._layers):
            if not isinstance(layer, Component):
                raise ArgumentError(
                    f"Sequential: layer {i} is of type {type(layer).__name__}, need a Component"
                )
            self._parameters[str(i)] = layer.parameters

    def forward(self, x: Vector) -> Vector:
        """Apply the components in order."""
        for layer in self._layers:
            x = layer(x)
        return x
