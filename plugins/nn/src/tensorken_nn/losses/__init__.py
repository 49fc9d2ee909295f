"""Loss functions.

All take a `reduction` of the individual losses: "mean", "sum" or "none".
"""

from tensorken_nn.losses.classification import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    kl_divergence,
    minimum_cross_entropy,
    negative_log_likelihood,
)
from tensorken_nn.losses.margins import (
    cosine_embedding,
    cosine_similarity,
    hinge,
    hinge_embedding,
    margin_ranking,
    multi_margin,
    pairwise_distance,
    soft_margin,
    triplet_margin,
)
from tensorken_nn.losses.reduction import Reduction
from tensorken_nn.losses.regression import (
    gaussian_negative_log_likelihood,
    huber,
    l1,
    poisson_negative_log_likelihood,
    smooth_l1,
    squared_error,
)
from tensorken_nn.losses.sequences import ctc

__all__ = [
    "Reduction",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding",
    "cosine_similarity",
    "cross_entropy",
    "ctc",
    "gaussian_negative_log_likelihood",
    "hinge",
    "hinge_embedding",
    "huber",
    "kl_divergence",
    "l1",
    "margin_ranking",
    "minimum_cross_entropy",
    "multi_margin",
    "negative_log_likelihood",
    "pairwise_distance",
    "poisson_negative_log_likelihood",
    "smooth_l1",
    "soft_margin",
    "squared_error",
    "triplet_margin",
]
