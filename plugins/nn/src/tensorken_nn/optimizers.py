"""Optimisers: pure functions from parameters, gradients and a state to new parameters and a new state.

Parameters and gradients are trees of one structure; a state holds such trees too, so it works like any other tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tensorken import Tensor, tree
from tensorken_nn.schedules import Schedule, value


class Optimizer(Protocol):
    """What training needs."""

    def init(self, parameters: Any) -> Any:
        """The state before the first step."""

    def update(self, parameters: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
        """The parameters and the state after a step."""


class SGDState(NamedTuple):
    """How many steps were taken, and the velocity of each parameter (None without momentum)."""

    step: int
    velocity: Any


@dataclass(frozen=True, slots=True)
class SGD:
    """Gradient descent, p -= rate * v, where v = momentum * v + g (not damped: the gradient counts in full).

    >>> import tensorken as tk
    >>> optimizer = SGD(learning_rate=0.1)
    >>> parameters = {"w": tk.tensor([1.0])}
    >>> parameters, state = optimizer.update(parameters, {"w": tk.tensor([2.0])}, optimizer.init(parameters))
    >>> parameters["w"].tolist()
    [0.800000011920929]
    """

    learning_rate: Schedule = 1e-2
    momentum: float = 0.0

    def init(self, parameters: Any) -> SGDState:
        """No velocity yet."""
        return SGDState(0, tree.map(Tensor.zeros_like, parameters) if self.momentum else None)

    def update(self, parameters: Any, gradients: Any, state: SGDState) -> tuple[Any, SGDState]:
        """The parameters and the state after a step.

        Raises:
            StructureError: if the gradients' structure is not that of the parameters.
        """
        step = state.step + 1
        rate = value(self.learning_rate, step)
        if self.momentum:
            velocity = tree.map(lambda v, g: v * self.momentum + g, state.velocity, gradients)
        else:
            velocity = None
        moved = tree.map(lambda p, v: p - v * rate, parameters, velocity if self.momentum else gradients)
        return moved, SGDState(step, velocity)


class AdamState(NamedTuple):
    """How many steps were taken, and the decaying means of each parameter's gradients and of their squares."""

    step: int
    mean: Any
    square: Any


@dataclass(frozen=True, slots=True)
class Adam:
    """Steps of about the learning rate's size in each parameter: the mean gradient over its root mean square.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization (2015), algorithm 1.

    >>> import tensorken as tk
    >>> optimizer = Adam(learning_rate=0.5)
    >>> parameters = tk.tensor([1.0, 1.0])
    >>> parameters, state = optimizer.update(parameters, tk.tensor([1e-3, -1e3]), optimizer.init(parameters))
    >>> [f"{p:.3f}" for p in parameters]
    ['0.500', '1.500']
    """

    learning_rate: Schedule = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def init(self, parameters: Any) -> AdamState:
        """Means of zero."""
        zeros = tree.map(Tensor.zeros_like, parameters)
        return AdamState(0, zeros, zeros)

    def update(self, parameters: Any, gradients: Any, state: AdamState) -> tuple[Any, AdamState]:
        """The parameters and the state after a step.

        Raises:
            StructureError: if the gradients' structure is not that of the parameters.
        """
        beta1, beta2 = self.beta1, self.beta2
        step = state.step + 1
        # Both means begin at 0; these factors take that bias out, here for all parameters at once.
        rate = value(self.learning_rate, step) / (1.0 - beta1**step)
        root = math.sqrt(1.0 - beta2**step)
        mean = tree.map(lambda m, g: m * beta1 + g * (1.0 - beta1), state.mean, gradients)
        square = tree.map(lambda s, g: s * beta2 + g.square() * (1.0 - beta2), state.square, gradients)
        moved = tree.map(
            lambda p, m, s: p - m * rate / (s.sqrt() / root + self.epsilon), parameters, mean, square
        )
        return moved, AdamState(step, mean, square)
