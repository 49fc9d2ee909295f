"""Adam, and AdamW with decoupled weight decay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
from tensorken_nn.scalars import Scalar, sqrt
from tensorken_nn.schedules import Schedule, rate_at


class AdamState(NamedTuple):
    """The number of steps taken, and for each parameter the moving averages of its gradients and of their squares."""

    step: int | Tensor  # a tensor after a compiled step
    mean: Any
    square: Any


@dataclass(frozen=True, slots=True)
class Adam:
    """Divide a moving average of the gradient by its root mean square; each parameter moves by about the learning rate.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization (2015), algorithm 1.

    Args:
        learning_rate: a number or a schedule.
        beta1, beta2: the decay rates of the moving averages of the gradients and of their squares.
        epsilon: added to the root mean square.
        weight_decay: the factor of the parameter that is added to its gradient.
        mask: which parameters decay.

    Raises:
        ArgumentError: if a number is not in its range.

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
    weight_decay: float = 0.0
    mask: Mask = None

    decoupled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_not_negative(
            type(self).__name__,
            learning_rate=self.learning_rate,
            epsilon=self.epsilon,
            weight_decay=self.weight_decay,
        )
        check_fractions(type(self).__name__, beta1=self.beta1, beta2=self.beta2)

    def init(self, parameters: Any) -> AdamState:
        """The state before the first step, with averages of zero."""
        return AdamState(first_step(parameters), zeros(parameters), zeros(parameters))

    def update(self, parameters: Any, gradients: Any, state: AdamState) -> tuple[Any, AdamState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is not one of this optimiser, or a gradient is not a tensor.
            StructureError, ShapeError: if the gradients differ from the parameters in structure or shapes.
        """
        check_state(self, state, AdamState)
        step = state.step + 1
        now = step_number(step, parameters)
        rate = rate_at(self.learning_rate, now)
        # Both averages start at 0; these factors correct that bias, computed once for all parameters.
        scalars = rate, rate / bias_correction(self.beta1, now), sqrt(bias_correction(self.beta2, now))
        decay = weight_decays(self.weight_decay, self.mask, parameters)
        moved, mean, square = update_each(
            self._update_parameter, scalars, parameters, gradients, decay, state.mean, state.square
        )
        return moved, AdamState(step, mean, square)

    def _update_parameter(
        self, scalars: tuple[Scalar, ...], p: Tensor, g: Tensor, decay: float, m: Tensor, s: Tensor
    ) -> tuple[Tensor, ...]:
        rate, corrected, root = scalars
        g = g + p * decay if decay and not self.decoupled else g
        m = m * self.beta1 + g * (1.0 - self.beta1)
        s = s * self.beta2 + g.square() * (1.0 - self.beta2)
        change = m * corrected / (s.sqrt() / root + self.epsilon)
        # Subtracted rather than a factor of p, in which a small decay would lose digits to rounding.
        return p - (change + p * (rate * decay) if decay and self.decoupled else change), m, s


@dataclass(frozen=True, slots=True)
class AdamW(Adam):
    """Adam with decoupled weight decay: besides the step of Adam, p -= rate * weight_decay * p.

    Source: Loshchilov, Hutter, Decoupled Weight Decay Regularization (2019), algorithm 2, with the learning rate
    as a factor of the decay, as in PyTorch.

    >>> import tensorken as tk
    >>> optimizer, parameters = AdamW(learning_rate=0.5, weight_decay=0.1), tk.tensor([10.0])
    >>> parameters, _ = optimizer.update(parameters, tk.tensor([0.0]), optimizer.init(parameters))
    >>> parameters.tolist()
    [9.5]
    """

    weight_decay: float = 1e-2

    decoupled: ClassVar[bool] = True


def bias_correction(beta: float, step: Scalar) -> Scalar:
    """1 - beta**step, the divisor that corrects the bias of a moving average that started at 0.

    >>> bias_correction(0.5, 2)
    0.75
    """
    if not isinstance(step, Tensor):
        return float(1.0 - beta**step)
    if not beta:
        return 1.0
    return -(step * math.log(beta)).expm1()  # for beta near 1, the difference would lose digits of float32
