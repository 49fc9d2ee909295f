"""Gradient descent, with momentum or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.optimizers.decay import Mask, decays
from tensorken_nn.optimizers.optimizer import (
    check_fractions,
    check_not_negative,
    check_state,
    each,
    number,
    zeros,
)
from tensorken_nn.scalars import Scalar, until
from tensorken_nn.schedules import Schedule, value


class SGDState(NamedTuple):
    """How many steps were taken, and the velocity of each parameter (None without momentum)."""

    step: int | Tensor  # a tensor after a step that is compiled
    velocity: Any


@dataclass(frozen=True, slots=True)
class SGD:
    """Gradient descent, p -= rate * v, where v = momentum * v + (1 - dampening) * g; of the first step, v = g.

    With `nesterov`, p -= rate * (g + momentum * v): about the gradient where the momentum will have led.

    Source: Sutskever, Martens, Dahl, Hinton, On the Importance of Initialization and Momentum in Deep Learning
    (2013), section 2; written, as in PyTorch, with the rate outside of the velocity.

    Args:
        learning_rate: a number or a schedule.
        momentum: how much of the velocity remains from step to step.
        dampening: how much of the gradient does not enter the velocity.
        weight_decay: this times the parameter is added to its gradient.
        nesterov: whether to look ahead; needs momentum, and no dampening.
        mask: which parameters decay.

    Raises:
        ArgumentError: if a number is not in its range.

    >>> import tensorken as tk
    >>> optimizer = SGD(learning_rate=0.1)
    >>> parameters = {"w": tk.tensor([1.0])}
    >>> parameters, state = optimizer.update(parameters, {"w": tk.tensor([2.0])}, optimizer.init(parameters))
    >>> parameters["w"].tolist()
    [0.800000011920929]
    """

    learning_rate: Schedule = 1e-3
    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    mask: Mask = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        check_not_negative(name, learning_rate=self.learning_rate, weight_decay=self.weight_decay)
        check_fractions(name, momentum=self.momentum, dampening=self.dampening)
        if self.nesterov and (not self.momentum or self.dampening):
            raise ArgumentError(
                f"{name}: nesterov needs a momentum and no dampening, "
                f"got momentum={self.momentum}, dampening={self.dampening}"
            )

    def init(self, parameters: Any) -> SGDState:
        """No velocity yet."""
        return SGDState(0, zeros(parameters) if self.momentum else None)

    def update(self, parameters: Any, gradients: Any, state: SGDState) -> tuple[Any, SGDState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is none of this optimiser's, or a gradient no tensor.
            StructureError, ShapeError: if the gradients are not of the parameters' structure and shapes.
        """
        check_state(self, state, SGDState)
        step = state.step + 1
        now = number(step, parameters)
        scalars = value(self.learning_rate, now), until(1, now, 1.0, 1.0 - self.dampening)
        decay = decays(self.weight_decay, self.mask, parameters)
        moved, velocity = each(self._move, scalars, parameters, gradients, decay, state.velocity)
        return moved, SGDState(step, velocity)

    def _move(
        self, scalars: tuple[Scalar, ...], p: Tensor, g: Tensor, decay: float, v: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        rate, share = scalars
        g = g + p * decay if decay else g
        if v is None:
            return p - g * rate, None
        v = v * self.momentum + (g * share if self.dampening else g)
        direction = g + v * self.momentum if self.nesterov else v
        return p - direction * rate, v


@dataclass(frozen=True, slots=True)
class MomentumSGD(SGD):
    """Gradient descent with momentum: `SGD`, with the momentum that is most used.

    >>> MomentumSGD(0.1).momentum, MomentumSGD(0.1, nesterov=True).nesterov
    (0.9, True)
    """

    momentum: float = 0.9
