"""Losses of predicted probabilities."""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.losses.reduction import Reduction, check_float, match_targets, reduce_losses


def cross_entropy(
    logits: Tensor,
    labels: Tensor,
    label_smoothing: float = 0.0,
    *,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """-log(softmax(logits)[label]) for each label.

    With `label_smoothing` s, the target distribution is 1 - s times the label plus s times the uniform distribution
    (Szegedy et al., Rethinking the Inception Architecture, 2016, section 7).

    Args:
        logits: shape (..., classes), float, before softmax.
        labels: shape (...), int, each in [0, classes), which is not checked.
        label_smoothing: from 0 to 1.
        ignore_index: a label to ignore, whether a class or not: its loss is 0, and it does not count in the mean,
            which is NaN if all labels are ignored.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> cross_entropy(tk.zeros((3, 2)), tk.tensor([0, 1, 1])).item()
    0.6931471824645996
    """
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"cross_entropy: labels of shape {labels.shape} for logits of shape {logits.shape}; "
            f"need one label for each row of logits"
        )
    check_float("cross_entropy", logits)
    if labels.dtype.kind != "int":
        raise DTypeError(f"cross_entropy: labels must be ints, got {labels.dtype}; cast them (labels.astype)")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing}")
    log_probabilities = tk.log_softmax(logits)
    is_class = labels.reshape((*labels.shape, 1)) == list(range(logits.shape[-1]))
    losses = 0.0 - tk.where(is_class, log_probabilities, 0.0).sum(-1)  # not -0 for probability 1
    if label_smoothing:
        losses = losses * (1.0 - label_smoothing) - log_probabilities.mean(-1) * label_smoothing
    if ignore_index is None:
        return reduce_losses("cross_entropy", losses, reduction)
    counts = labels != ignore_index
    losses = tk.where(counts, losses, 0.0)
    if reduction == "mean":
        return losses.sum() / counts.sum().astype(losses.dtype)
    return reduce_losses("cross_entropy", losses, reduction)


def minimum_cross_entropy(classes: int, label_smoothing: float) -> float:
    """The minimum of the cross-entropy with a smoothed label: its entropy.

    >>> round(minimum_cross_entropy(10, 0.1), 4)
    0.5003
    """
    other = label_smoothing / classes
    probabilities = [1.0 - label_smoothing + other] + [other] * (classes - 1)
    return -sum([p * math.log(p) for p in probabilities if p > 0.0])


def binary_cross_entropy_with_logits(
    logits: Tensor, targets: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """-target * log(p) - (1 - target) * log(1 - p), where p = sigmoid(logit), elementwise.

    Accurate to the last digits also for large logits.

    Args:
        logits: any shape, float, before sigmoid.
        targets: of the same shape: bool, 0 or 1, or probabilities.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> logits, targets = tk.tensor([0.0, 1e4, 1e4]), tk.tensor([True, True, False])
    >>> print(f"{binary_cross_entropy_with_logits(logits, targets, reduction='none'):.4f}")
    [    0.6931     0.0000 10000.0000]
    """
    name = "binary_cross_entropy_with_logits"
    targets = match_targets(name, logits, targets)
    # -log(p) and -log(1 - p), without differences of large numbers.
    losses = targets * tk.softplus(-logits) + (1.0 - targets) * tk.softplus(logits)
    return reduce_losses(name, losses, reduction)


def kl_divergence(log_probabilities: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """The sum over classes of target * (log(target) - log_probability) for each row; the mean is over rows.

    Source: Kullback, Leibler, On Information and Sufficiency (1951). A target of 0 adds 0, also to derivatives.

    Args:
        log_probabilities: shape (..., classes), float, such as the result of `tk.log_softmax`.
        targets: of the same shape: probabilities, whose sum along the last axis is 1.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> even = tk.log_softmax(tk.zeros((1, 2)))
    >>> kl_divergence(even, tk.tensor([[1.0, 0.0]])).item()
    0.6931471824645996
    """
    targets = match_targets("kl_divergence", log_probabilities, targets)
    if not targets.ndim:
        raise ShapeError("kl_divergence: got shape (), need an axis of classes")
    is_positive = targets > 0.0
    # Where the target is 0, neither log(0) nor an infinite log-probability may enter the derivatives.
    log_ratios = tk.log(tk.where(is_positive, targets, 1.0)) - tk.where(is_positive, log_probabilities, 0.0)
    return reduce_losses("kl_divergence", (targets * log_ratios).sum(-1), reduction)
