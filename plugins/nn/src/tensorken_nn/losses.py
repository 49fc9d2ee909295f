"""Losses: one number for how far the outputs of a network are from what was wanted."""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor
from tensorken.errors import ArgumentError, DTypeError, ShapeError


def cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The mean of -log(the probability that softmax gives to the right class), the mean running over all labels.

    With `label_smoothing` s, a label stands for the right class with probability 1 - s and for any class, drawn
    evenly, with s; that keeps a network from being too sure (Szegedy et al., Rethinking the Inception
    Architecture, 2016, section 7).

    Args:
        logits: shape (..., classes), float; the network's output before any softmax.
        labels: shape (...), int; each in [0, classes), which is not checked.
        label_smoothing: from 0 to 1.

    Raises:
        ShapeError, DTypeError, ArgumentError: if the arguments are not of that kind.

    >>> cross_entropy(tk.zeros((3, 2)), tk.tensor([0, 1, 1])).item()
    0.6931471824645996
    """
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"cross_entropy: labels of shape {labels.shape} for logits of shape {logits.shape}; "
            f"need one label for each row of logits"
        )
    if labels.dtype.kind != "int":
        raise DTypeError(f"cross_entropy: labels must be ints, got {labels.dtype}; cast them (labels.astype)")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing}")
    log_probabilities = tk.log_softmax(logits)
    is_class = labels.reshape((*labels.shape, 1)) == list(range(logits.shape[-1]))
    loss = -tk.where(is_class, log_probabilities, 0.0).sum(-1).mean()
    if label_smoothing:
        loss = loss * (1.0 - label_smoothing) - log_probabilities.mean() * label_smoothing
    return loss


def least_cross_entropy(classes: int, label_smoothing: float) -> float:
    """What no logits can go below: the entropy of a smoothed label.

    >>> round(least_cross_entropy(10, 0.1), 4)
    0.5003
    """
    other = label_smoothing / classes
    chances = [1.0 - label_smoothing + other] + [other] * (classes - 1)
    return -sum([p * math.log(p) for p in chances if p > 0.0])
