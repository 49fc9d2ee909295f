"""Stochastic gradient descent, with or without momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.optimizers.decay import Mask, weight_decays
from tensorken_nn.optimizers.optimizer import (
    check_fractions,
    check_not_negative,
    check_state,
    first_step,
    step_number,
    update_each,
    zeros,
)
from tensorken_nn.scalars import Scalar, switch_after
from tensorken_nn.schedules import Schedule, rate_at


class SGDState(NamedTuple):
    """The number of steps taken, and the velocity of each parameter (None without momentum)."""

    step: int | Tensor  # a tensor after a compiled step
    velocity: Any


@dataclass(frozen=True, slots=True)
class SGD:
    """Gradient descent: p -= rate * v, where v = momentum * v + (1 - dampening) * g; in the first step, v = g.

    With `nesterov`, p -= rate * (g + momentum * v), about the gradient at the point to which the momentum leads.

    Source: Sutskever, Martens, Dahl, Hinton, On the Importance of Initialization and Momentum in Deep Learning
    (2013), section 2; as in PyTorch, the velocity does not include the rate.

    Args:
        learning_rate: a number or a schedule.
        momentum: the decay rate of the velocity.
        dampening: the fraction of the gradient that is not added to the velocity.
        weight_decay: the factor of the parameter that is added to its gradient.
        nesterov: whether to use Nesterov momentum; needs momentum and no dampening.
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
        """The state before the first step, with velocities of zero."""
        return SGDState(first_step(parameters), zeros(parameters) if self.momentum else None)

    def update(self, parameters: Any, gradients: Any, state: SGDState) -> tuple[Any, SGDState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is not one of this optimiser, or a gradient is not a tensor.
            StructureError, ShapeError: if the gradients differ from the parameters in structure or shapes.
        """
        check_state(self, state, SGDState)
        step = state.step + 1
        now = step_number(step, parameters)
        scalars = rate_at(self.learning_rate, now), switch_after(1, now, 1.0, 1.0 - self.dampening)
        decay = weight_decays(self.weight_decay, self.mask, parameters)
        moved, velocity = update_each(
            self._update_parameter, scalars, parameters, gradients, decay, state.velocity
        )
        return moved, SGDState(step, velocity)

    def _update_parameter(
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
    """`SGD` with a default momentum of 0.9.

    >>> MomentumSGD(0.1).momentum, MomentumSGD(0.1, nesterov=True).nesterov
    (0.9, True)
    """

    momentum: float = 0.9
