"""Optimisers: pure functions from parameters, gradients and a state to new parameters and a new state.

Parameters and gradients are trees of one structure; a state holds such trees too, so it works like any other tree.
Steps of float16 are computed, and remembered, in float32.
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
