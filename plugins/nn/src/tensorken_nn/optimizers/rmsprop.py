"""RMSProp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorken import Tensor
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
from tensorken_nn.scalars import Scalar
from tensorken_nn.schedules import Schedule, rate_at


class RMSPropState(NamedTuple):
    """The number of steps taken, and for each parameter:

    the moving averages of its squared gradients and of its gradients (None unless centered), and its velocity (None
    without momentum).
    """

    step: int | Tensor  # a tensor after a compiled step
    square: Any
    mean: Any
    velocity: Any


@dataclass(frozen=True, slots=True)
class RMSProp:
    """Divide the gradient by its root mean square: p -= rate * g / (sqrt(s) + epsilon), s = alpha * s + (1 - alpha)
    * g**2.

    Source: Hinton, Neural Networks for Machine Learning (2012), lecture 6e; centered: Graves, Generating Sequences
    With Recurrent Neural Networks (2013), equations 38-45.

    Args:
        learning_rate: a number or a schedule.
        alpha: the decay rate of the mean square.
        epsilon: added to the root.
        weight_decay: the factor of the parameter that is added to its gradient.
        momentum: the decay rate of the velocity, to which the quotient is added.
        centered: whether to divide by the standard deviation instead: the square of the mean gradient is subtracted
            from the mean square.
        mask: which parameters decay.

    Raises:
        ArgumentError: if a number is not in its range.

    >>> import tensorken as tk
    >>> optimizer, parameters = RMSProp(0.1), tk.tensor([1.0, 1.0])
    >>> parameters, _ = optimizer.update(parameters, tk.tensor([1e-3, -1e3]), optimizer.init(parameters))
    >>> [f"{p:.3f}" for p in parameters]
    ['0.000', '2.000']
    """

    learning_rate: Schedule = 1e-2
    alpha: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False
    mask: Mask = None

    def __post_init__(self) -> None:
        check_not_negative(
            "RMSProp",
            learning_rate=self.learning_rate,
            epsilon=self.epsilon,
            weight_decay=self.weight_decay,
        )
        check_fractions("RMSProp", alpha=self.alpha, momentum=self.momentum)

    def init(self, parameters: Any) -> RMSPropState:
        """The state before the first step, with averages and velocities of zero."""
        return RMSPropState(
            first_step(parameters),
            zeros(parameters),
            zeros(parameters) if self.centered else None,
            zeros(parameters) if self.momentum else None,
        )

    def update(self, parameters: Any, gradients: Any, state: RMSPropState) -> tuple[Any, RMSPropState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is not one of this optimiser, or a gradient is not a tensor.
            StructureError, ShapeError: if the gradients differ from the parameters in structure or shapes.
        """
        check_state(self, state, RMSPropState)
        step = state.step + 1
        scalars = (rate_at(self.learning_rate, step_number(step, parameters)),)
        decay = weight_decays(self.weight_decay, self.mask, parameters)
        moved, *slots = update_each(self._update_parameter, scalars, parameters, gradients, decay, *state[1:])
        return moved, RMSPropState(step, *slots)

    def _update_parameter(
        self,
        scalars: tuple[Scalar, ...],
        p: Tensor,
        g: Tensor,
        decay: float,
        s: Tensor,
        m: Tensor | None,
        v: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        (rate,) = scalars
        g = g + p * decay if decay else g
        s = s * self.alpha + g.square() * (1.0 - self.alpha)
        variance = s
        if m is not None:
            m = m * self.alpha + g * (1.0 - self.alpha)
            variance = (s - m.square()).maximum(0.0)  # rounding may make the difference negative
        direction = g / (variance.sqrt() + self.epsilon)
        if v is not None:
            direction = v = v * self.momentum + direction
        return p - direction * rate, s, m, v
