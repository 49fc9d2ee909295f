"""Optimisers: pure functions from parameters, gradients and a state to new parameters and a new state.

Parameters and gradients are trees of the same structure, and a state is a tree that contains such trees. For float16
parameters, steps and states are in float32.
"""

from tensorken_nn.optimizers.adagrad import Adagrad, AdagradState
from tensorken_nn.optimizers.adam import Adam, AdamState, AdamW
from tensorken_nn.optimizers.decay import Mask, only_matrices
from tensorken_nn.optimizers.lion import Lion, LionState
from tensorken_nn.optimizers.optimizer import Optimizer
from tensorken_nn.optimizers.rmsprop import RMSProp, RMSPropState
from tensorken_nn.optimizers.sgd import SGD, MomentumSGD, SGDState

__all__ = [
    "SGD",
    "Adagrad",
    "AdagradState",
    "Adam",
    "AdamState",
    "AdamW",
    "Lion",
    "LionState",
    "Mask",
    "MomentumSGD",
    "Optimizer",
    "RMSProp",
    "RMSPropState",
    "SGDState",
    "only_matrices",
]
