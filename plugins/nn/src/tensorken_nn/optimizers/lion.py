"""Lion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorken as tk
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


class LionState(NamedTuple):
    """The number of steps taken, and for each parameter the moving average of its gradients."""

    step: int | Tensor  # a tensor after a compiled step
    mean: Any


@dataclass(frozen=True, slots=True)
class Lion:
    """Move each parameter by the learning rate against the sign of a moving average of gradients.

    p -= rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p), then m = beta2 * m + (1 - beta2) * g. It needs
    a learning rate 3 to 10 times smaller than Adam, and a weight decay larger by the same factor.

    Source: Chen et al., Symbolic Discovery of Optimization Algorithms (2023), algorithm 2.

    Args:
        learning_rate: a number or a schedule.
        beta1: the weight of the average in the step.
        beta2: the decay rate of the average.
        weight_decay: the decoupled weight decay.
        mask: which parameters decay.

    Raises:
        ArgumentError: if a number is not in its range.

    >>> import tensorken as tk
    >>> optimizer, parameters = Lion(0.5, weight_decay=0.0), tk.tensor([1.0, 1.0, 1.0])
    >>> parameters, _ = optimizer.update(parameters, tk.tensor([1e-3, -1e3, 0.0]), optimizer.init(parameters))
    >>> parameters.tolist()
    [0.5, 1.5, 1.0]
    """

    learning_rate: Schedule = 1e-4
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 1e-3
    mask: Mask = None

    def __post_init__(self) -> None:
        check_not_negative("Lion", learning_rate=self.learning_rate, weight_decay=self.weight_decay)
        check_fractions("Lion", beta1=self.beta1, beta2=self.beta2)

    def init(self, parameters: Any) -> LionState:
        """The state before the first step, with averages of zero."""
        return LionState(first_step(parameters), zeros(parameters))

    def update(self, parameters: Any, gradients: Any, state: LionState) -> tuple[Any, LionState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is not one of this optimiser, or a gradient is not a tensor.
            StructureError, ShapeError: if the gradients differ from the parameters in structure or shapes.
        """
        check_state(self, state, LionState)
        step = state.step + 1
        scalars = (rate_at(self.learning_rate, step_number(step, parameters)),)
        decay = weight_decays(self.weight_decay, self.mask, parameters)
        moved, mean = update_each(self._update_parameter, scalars, parameters, gradients, decay, state.mean)
        return moved, LionState(step, mean)

    def _update_parameter(
        self, scalars: tuple[Scalar, ...], p: Tensor, g: Tensor, decay: float, m: Tensor
    ) -> tuple[Tensor, ...]:
        (rate,) = scalars
        direction = tk.sign(m * self.beta1 + g * (1.0 - self.beta1))
        direction = direction + p * decay if decay else direction
        return p - direction * rate, m * self.beta2 + g * (1.0 - self.beta2)
