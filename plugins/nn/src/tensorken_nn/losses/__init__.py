"""Losses: one number for how far the outputs of a network are from what was wanted.

All take `reduction`: "mean" over the single losses, their "sum", or "none", which gives each of them.
"""

from tensorken_nn.losses.classification import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    kl_divergence,
    least_cross_entropy,
)
from tensorken_nn.losses.reduction import Reduction
from tensorken_nn.losses.regression import huber, l1, squared_error

__all__ = [
    "Reduction",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber",
    "kl_divergence",
    "l1",
    "least_cross_entropy",
    "squared_error",
]
