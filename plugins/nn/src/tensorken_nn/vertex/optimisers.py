"""Optimisers that update parameters in place."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.vertex.node import Value, Vertex


class Optimiser(ABC):
    """The base class of optimisers of vertices, vectors, matrices, and nested lists and dicts of these.

    A subclass defines the change of a parameter; it may keep state for each parameter.

    Args:
        parameters: to update; a vertex that occurs twice is one parameter.
        nu: the learning rate.

    Raises:
        ArgumentError: if the parameters contain anything other than vertices and containers.
    """

    def __init__(self, parameters: Any, nu: float) -> None:
        self.nu = nu
        self.steps = 0
        self._parameters = list(dict.fromkeys(_vertices(parameters)))

    def step(self) -> None:
        """Update the value of each parameter; its `grad` is not changed."""
        self.steps += 1
        for index, parameter in enumerate(self._parameters):
            parameter.value = parameter.value - self._change(index, parameter.grad)

    @abstractmethod
    def _change(self, index: int, grad: Value) -> Value:
        """The amount to subtract from a parameter, given by its index."""


class SGD(Optimiser):
    """Gradient descent: w = w - nu * g.

    >>> w = Vertex(1.0)
    >>> w.grad = 2.0
    >>> SGD(w, nu=0.25).step()
    >>> w
    Vertex(0.5)
    """

    def __init__(self, parameters: Any, nu: float = 0.01) -> None:
        super().__init__(parameters, nu)

    def _change(self, index: int, grad: Any) -> Value:
        return self.nu * grad  # type: ignore[no-any-return]


class MomentumSGD(Optimiser):
    """Gradient descent with momentum: v = momentum * v + g, and w = w - nu * v.

    >>> w = Vertex(1.0)
    >>> optimiser = MomentumSGD({"w": w}, nu=0.5, momentum=0.5)
    >>> for _ in range(2):
    ...     w.grad = 1.0
    ...     optimiser.step()
    ...     print(w)
    Vertex(0.5)
    Vertex(-0.25)
    """

    def __init__(self, parameters: Any, nu: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__(parameters, nu)
        self.momentum = momentum
        self._velocities: list[Any] = [0.0] * len(self._parameters)

    def _change(self, index: int, grad: Any) -> Value:
        velocity = self._velocities[index] = self.momentum * self._velocities[index] + grad
        return self.nu * velocity  # type: ignore[no-any-return]


class Adam(Optimiser):
    """Adam: divide a moving average of the gradient by its root mean square; parameters move by about nu.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization (2015), algorithm 1.

    >>> v, w = Vertex(1.0), Vertex(1.0)
    >>> v.grad, w.grad = 1e-3, -1e3
    >>> Adam([v, w], nu=0.5).step()
    >>> f"{v:.3f}, {w:.3f}"
    '0.500, 1.500'
    """

    def __init__(
        self,
        parameters: Any,
        nu: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(parameters, nu)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self._means: list[Any] = [0.0] * len(self._parameters)
        self._squares: list[Any] = [0.0] * len(self._parameters)

    def _change(self, index: int, grad: Any) -> Value:
        b1, b2, t = self.beta_1, self.beta_2, self.steps
        mean = self._means[index] = b1 * self._means[index] + (1.0 - b1) * grad
        square = self._squares[index] = b2 * self._squares[index] + (1.0 - b2) * grad * grad
        root = _sqrt(square / (1.0 - b2**t))
        change: Value = self.nu * (mean / (1.0 - b1**t)) / (root + self.epsilon)
        return change


def _sqrt(x: Value) -> Value:
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _vertices(parameters: Any, path: str = "parameters") -> Iterable[Vertex]:
    """The vertices in nested dicts and sequences, in order."""
    if isinstance(parameters, Vertex):
        yield parameters
    elif isinstance(parameters, Mapping):
        for name, part in parameters.items():
            yield from _vertices(part, f"{path}[{name!r}]")
    elif isinstance(parameters, Iterable) and not isinstance(parameters, (str, Tensor)):
        for i, part in enumerate(parameters):
            yield from _vertices(part, f"{path}[{i}]")
    else:
        raise ArgumentError(
            f"{path} is of type {type(parameters).__name__}, need a Vertex, Vector or Matrix, or a dict or list of them"
        )
