"""Adam, and AdamW, which lets weights decay beside the gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
from tensorken_nn.scalars import Scalar, sqrt
from tensorken_nn.schedules import Schedule, value


class AdamState(NamedTuple):
    """How many steps were taken, and the decaying means of each parameter's gradients and of their squares."""

    step: int | Tensor  # a tensor after a step that is compiled
    mean: Any
    square: Any


@dataclass(frozen=True, slots=True)
class Adam:
    """Steps of about the learning rate's size in each parameter: the mean gradient over its root mean square.

    Source: Kingma, Ba, Adam: A Method for Stochastic Optimization (2015), algorithm 1.

    Args:
        learning_rate: a number or a schedule.
        beta1, beta2: how much of the means of gradients and of their squares remains from step to step.
        epsilon: added to the root mean square.
        weight_decay: this times the parameter is added to its gradient.
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
        """Means of zero."""
        return AdamState(0, zeros(parameters), zeros(parameters))

    def update(self, parameters: Any, gradients: Any, state: AdamState) -> tuple[Any, AdamState]:
        """The parameters and the state after a step.

        Raises:
            ArgumentError: if the state is none of this optimiser's, or a gradient no tensor.
            StructureError, ShapeError: if the gradients are not of the parameters' structure and shapes.
        """
        check_state(self, state, AdamState)
        step = state.step + 1
        now = number(step, parameters)
        rate = value(self.learning_rate, now)
        # Both means begin at 0; these factors take that bias out, here for all parameters at once.
        scalars = rate, rate / lived(self.beta1, now), sqrt(lived(self.beta2, now))
        decay = decays(self.weight_decay, self.mask, parameters)
        moved, mean, square = each(
            self._move, scalars, parameters, gradients, decay, state.mean, state.square
        )
        return moved, AdamState(step, mean, square)

    def _move(
        self, scalars: tuple[Scalar, ...], p: Tensor, g: Tensor, decay: float, m: Tensor, s: Tensor
    ) -> tuple[Tensor, ...]:
        rate, corrected, root = scalars
        g = g + p * decay if decay and not self.decoupled else g
        m = m * self.beta1 + g * (1.0 - self.beta1)
        s = s * self.beta2 + g.square() * (1.0 - self.beta2)
        change = m * corrected / (s.sqrt() / root + self.epsilon)
        # The decay is no factor of p, which would round it to a few digits of its own.
        return p - (change + p * (rate * decay) if decay and self.decoupled else change), m, s


@dataclass(frozen=True, slots=True)
class AdamW(Adam):
    """Adam whose weight decay goes past the means: p -= rate * weight_decay * p, beside the step of Adam.

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


def lived(beta: float, step: Scalar) -> Scalar:
    """1 - beta**step: the weight that a decaying mean which began at 0 has given away so far.

    >>> lived(0.5, 2)
    0.75
    """
    if not isinstance(step, Tensor):
        return float(1.0 - beta**step)
    if not beta:
        return 1.0
    return -(step * math.log(beta)).expm1()  # for betas near 1, the difference would lose digits of float32
