"""Adagrad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tensorken import Tensor
from tensorken_core import tree
from tensorken_nn.optimizers.decay import Mask, weight_decays
from tensorken_nn.optimizers.optimizer import (
    check_not_negative,
    check_state,
    first_step,
    step_number,
    update_each,
)
from tensorken_nn.precision import widen
from tensorken_nn.scalars import Scalar
from tensorken_nn.schedules import Schedule, rate_at


class AdagradState(NamedTuple):
    """The number of steps taken, and for each parameter the sum of its squared gradients."""

    step: int | Tensor  # a tensor after a compiled step
    total: Any


@dataclass(frozen=True, slots=True)
class Adagrad:
    """Divide the gradient by the root of the sum of all its squares so far: p -= rate * g / (sqrt(total) + epsilon).

    Source: Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization
    (2011), figure 1, with diagonal matrices.

    Args:
        learning_rate: a number or a schedule.
        epsilon: added to the root.
        weight_decay: the factor of the parameter that is added to its gradient.
        initial_accumulator: the initial sum of squares.
        mask: which parameters decay.

    Raises:
        ArgumentError: if a number is negative.

    >>> import tensorken as tk
    >>> optimizer, parameters = Adagrad(0.5), tk.tensor([1.0])
    >>> state = optimizer.init(parameters)
    >>> for gradient in (3.0, 4.0):
    ...     parameters, state = optimizer.update(parameters, tk.tensor([gradient]), state)
    >>> print(f"{parameters.item():.3f}")
    0.100
    """

    learning_rate: Schedule = 1e-2
    epsilon: float = 1e-10
    weight_decay: float = 0.0
    initial_accumulator: float = 0.0
    mask: Mask = None

    def __post_init__(self) -> None:
        check_not_negative(
            "Adagrad",
            learning_rate=self.learning_rate,
            epsilon=self.epsilon,
            weight_decay=self.weight_decay,
            initial_accumulator=self.initial_accumulator,
        )

    def init(self, parameters: Any) -> AdagradState:
        """The state before the first step, with sums of `initial_accumulator`."""
        return AdagradState(
            first_step(parameters), tree.map(lambda p: widen(p).scalar(self.initial_accumulator), parameters)
        )

    def update(self, parameters: Any, gradients: Any, state: AdagradState) -> tuple[Any, AdagradState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is not one of this optimiser, or a gradient is not a tensor.
            StructureError, ShapeError: if the gradients differ from the parameters in structure or shapes.
        """
        check_state(self, state, AdagradState)
        step = state.step + 1
        scalars = (rate_at(self.learning_rate, step_number(step, parameters)),)
        decay = weight_decays(self.weight_decay, self.mask, parameters)
        moved, total = update_each(self._update_parameter, scalars, parameters, gradients, decay, state.total)
        return moved, AdagradState(step, total)

    def _update_parameter(
        self, scalars: tuple[Scalar, ...], p: Tensor, g: Tensor, decay: float, total: Tensor
    ) -> tuple[Tensor, ...]:
        (rate,) = scalars
        g = g + p * decay if decay else g
        total = total + g.square()
        return p - g * rate / (total.sqrt() + self.epsilon), total
