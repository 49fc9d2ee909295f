"""Loss functions.

All take a `reduction` of the individual losses: "mean", "sum" or "none".
"""

from tensorken_nn.losses.classification import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    kl_divergence,
    minimum_cross_entropy,
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
    "minimum_cross_entropy",
    "squared_error",
]
