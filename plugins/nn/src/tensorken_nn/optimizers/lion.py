"""Lion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorken as tk
from tensorken import Tensor
from tensorken_nn.optimizers.decay import Mask, decays
from tensorken_nn.optimizers.optimizer import (
    check_fractions,
    check_not_negative,
    check_state,
    each,
    number,
    zeros,
)
from tensorken_nn.scalars import Scalar
from tensorken_nn.schedules import Schedule, value


class LionState(NamedTuple):
    """How many steps were taken, and the decaying mean of each parameter's gradients."""

    step: int | Tensor  # a tensor after a step that is compiled
    mean: Any


@dataclass(frozen=True, slots=True)
class Lion:
    """Steps of the learning rate's size in each parameter, against the sign of a mean of gradients.

    p -= rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p), then m = beta2 * m + (1 - beta2) * g. It wants
    a rate some 3 to 10 times smaller than Adam's, and a weight decay larger by as much.

    Source: Chen et al., Symbolic Discovery of Optimization Algorithms (2023), algorithm 2.

    Args:
        learning_rate: a number or a schedule.
        beta1: how much of the mean counts in the step.
        beta2: how much of it remains from step to step.
        weight_decay: beside the sign, so that it goes past the mean.
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
        """Means of zero."""
        return LionState(0, zeros(parameters))

    def update(self, parameters: Any, gradients: Any, state: LionState) -> tuple[Any, LionState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is none of this optimiser's, or a gradient no tensor.
            StructureError, ShapeError: if the gradients are not of the parameters' structure and shapes.
        """
        check_state(self, state, LionState)
        step = state.step + 1
        scalars = (value(self.learning_rate, number(step, parameters)),)
        decay = decays(self.weight_decay, self.mask, parameters)
        moved, mean = each(self._move, scalars, parameters, gradients, decay, state.mean)
        return moved, LionState(step, mean)

    def _move(
        self, scalars: tuple[Scalar, ...], p: Tensor, g: Tensor, decay: float, m: Tensor
    ) -> tuple[Tensor, ...]:
        (rate,) = scalars
        direction = tk.sign(m * self.beta1 + g * (1.0 - self.beta1))
        direction = direction + p * decay if decay else direction
        return p - direction * rate, m * self.beta2 + g * (1.0 - self.beta2)
