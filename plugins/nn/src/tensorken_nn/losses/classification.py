"""Losses of predicted probabilities."""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor
from tensorken.arrays.indexing.checks import require
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_nn.losses.reduction import (
    Reduction,
    check_classes,
    check_float,
    match_targets,
    reduce_losses,
    rescale,
    share_of,
)

LEAST_LOG = -100.0
"""The smallest logarithm in `binary_cross_entropy`, as in PyTorch."""


def cross_entropy(
    logits: Tensor,
    labels: Tensor,
    label_smoothing: float = 0.0,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """-log(softmax(logits)[label]) for each label; or, for probabilities p of the classes, -sum(p * log(softmax)).

    With `label_smoothing` s, the target distribution is 1 - s times the label plus s times the uniform distribution
    (Szegedy et al., Rethinking the Inception Architecture, 2016, section 7).

    Args:
        logits: shape (..., classes), float, before softmax.
        labels: shape (...), int, each in [0, classes), which is checked where the labels are known; or probabilities,
            float, of the shape of the logits.
        label_smoothing: from 0 to 1.
        weight: shape (classes,), a factor for each class. With labels, the mean is the sum of the losses divided by
            the sum of the labels' weights, as in PyTorch.
        ignore_index: a label to ignore, whether a class or not: its loss is 0, and it does not count in the mean,
            which is NaN if all labels are ignored.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> cross_entropy(tk.zeros((3, 2)), tk.tensor([0, 1, 1])).item()
    0.6931471824645996
    >>> cross_entropy(tk.zeros((1, 2)), tk.tensor([[0.75, 0.25]]), weight=tk.tensor([1.0, 0.0])).item()
    0.519860...
    """
    name = "cross_entropy"
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"{name}: label_smoothing must be from 0 to 1, got {label_smoothing}")
    if labels.shape != logits.shape or labels.dtype.kind != "float" or not logits.ndim:
        _check_labels(name, logits, labels, ignore_index)
        return _of_labels(
            name, tk.log_softmax(logits), labels, label_smoothing, weight, ignore_index, reduction
        )
    check_float(name, logits)
    if ignore_index is not None:
        raise ArgumentError(f"{name}: ignore_index needs labels, got probabilities of shape {labels.shape}")
    chances, log_probabilities = labels.astype(logits.dtype), tk.log_softmax(logits)
    if label_smoothing:
        chances = chances * (1.0 - label_smoothing) + label_smoothing / logits.shape[-1]
    # A chance of 0 times an infinite logarithm is 0.
    log_probabilities = ((chances == 0.0) & (log_probabilities == -math.inf)).where(0.0, log_probabilities)
    losses = chances * log_probabilities
    if weight is not None:
        losses = losses * _checked_weight(name, weight, logits)
    return reduce_losses(name, 0.0 - losses.sum(-1), reduction)


def negative_log_likelihood(
    log_probabilities: Tensor,
    labels: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """-log_probabilities[label] for each label: `cross_entropy` of the results of `tk.log_softmax`.

    Args:
        log_probabilities: shape (..., classes), float.
        labels, weight, ignore_index, reduction: as for `cross_entropy`, with labels alone.

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> negative_log_likelihood(tk.log(tk.tensor([[0.5, 0.5], [1.0, 0.0]])), tk.tensor([1, 0])).item()
    0.3465735912322998
    """
    name = "negative_log_likelihood"
    _check_labels(name, log_probabilities, labels, ignore_index)
    return _of_labels(name, log_probabilities, labels, 0.0, weight, ignore_index, reduction)


def _check_labels(name: str, logits: Tensor, labels: Tensor, ignore_index: int | None) -> None:
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"{name}: labels of shape {labels.shape} for logits of shape {logits.shape}; "
            f"need one label for each row of logits"
        )
    check_float(name, logits)
    if labels.dtype.kind != "int":
        raise DTypeError(f"{name}: labels must be ints, got {labels.dtype}; cast them (labels.astype)")
    check_classes(name, labels, logits.shape[-1], ignore_index)


def _checked_weight(name: str, weight: Tensor, logits: Tensor) -> Tensor:
    if weight.shape != logits.shape[-1:]:
        raise ShapeError(
            f"{name}: got a weight of shape {weight.shape}, need ({logits.shape[-1]},), one for each class"
        )
    return weight.astype(logits.dtype)


def _of_labels(
    name: str,
    log_probabilities: Tensor,
    labels: Tensor,
    label_smoothing: float,
    weight: Tensor | None,
    ignore_index: int | None,
    reduction: Reduction,
) -> Tensor:
    """The losses of labels, reduced."""
    is_class = labels.reshape((*labels.shape, 1)) == list(range(log_probabilities.shape[-1]))
    losses = 0.0 - tk.where(is_class, log_probabilities, 0.0).sum(-1)  # not -0 for probability 1
    amounts = None
    if weight is not None:
        factors = _checked_weight(name, weight, log_probabilities)
        amounts = tk.where(is_class, factors, 0.0).sum(-1)
        losses = losses * amounts
        log_probabilities = log_probabilities * factors
    if label_smoothing:
        losses = losses * (1.0 - label_smoothing) - log_probabilities.mean(-1) * label_smoothing
    if ignore_index is not None:
        counts = labels != ignore_index
        losses = tk.where(counts, losses, 0.0)
        amounts = counts.astype(losses.dtype) if amounts is None else tk.where(counts, amounts, 0.0)
    if amounts is None or reduction != "mean":
        return reduce_losses(name, losses, reduction)
    return losses.sum() / amounts.sum()


def minimum_cross_entropy(classes: int, label_smoothing: float) -> float:
    """The minimum of the cross-entropy with a smoothed label: its entropy.

    >>> round(minimum_cross_entropy(10, 0.1), 4)
    0.5003
    """
    other = label_smoothing / classes
    probabilities = [1.0 - label_smoothing + other] + [other] * (classes - 1)
    return -sum([p * math.log(p) for p in probabilities if p > 0.0])


def binary_cross_entropy_with_logits(
    logits: Tensor,
    targets: Tensor,
    *,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """-target * log(p) - (1 - target) * log(1 - p), where p = sigmoid(logit), elementwise.

    Accurate to the last digits also for large logits.

    Args:
        logits: any shape, float, before sigmoid.
        targets: of the same shape: bool, 0 or 1, or probabilities.
        weight: a factor for each loss, of a shape that broadcasts to that of the logits.
        pos_weight: a factor for the term of the target, likewise, usually one for each class along the last axis.
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
    positive = rescale(name, share_of(targets, tk.softplus(-logits)), pos_weight)
    negative = share_of(1.0 - targets, tk.softplus(logits))
    return reduce_losses(name, rescale(name, positive + negative, weight), reduction)


def binary_cross_entropy(
    probabilities: Tensor, targets: Tensor, *, weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    """-target * log(p) - (1 - target) * log(1 - p) of probabilities p, elementwise.

    `binary_cross_entropy_with_logits` is more accurate, and has a derivative everywhere. A logarithm is at least -100,
    as in PyTorch; the derivative of one that is limited is 0.

    Args:
        probabilities: any shape, float, from 0 to 1, which is checked where they are known.
        targets, weight, reduction: as for `binary_cross_entropy_with_logits`.

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> binary_cross_entropy(tk.tensor([0.5, 0.0]), tk.tensor([1.0, 1.0]), reduction="none").tolist()
    [0.6931471824645996, 100.0]
    """
    name = "binary_cross_entropy"
    targets = match_targets(name, probabilities, targets)
    require(name, "probabilities", _is_probability(probabilities), "from 0 to 1", probabilities)
    log_p, log_not_p = _limited(probabilities), _limited(1.0 - probabilities)
    losses = 0.0 - targets * log_p - (1.0 - targets) * log_not_p
    return reduce_losses(name, rescale(name, losses, weight), reduction)


def _is_probability(p: Tensor) -> Tensor:
    """Whether numbers are from 0 to 1, or NaN, whose loss is NaN."""
    return ~((p < 0.0) | (p > 1.0))


def _limited(p: Tensor) -> Tensor:
    """The logarithm of p, at least `LEAST_LOG`."""
    is_positive = p > math.exp(LEAST_LOG)
    return is_positive.where(tk.log(is_positive.where(p, 1.0)), LEAST_LOG)


def kl_divergence(
    log_probabilities: Tensor, targets: Tensor, *, log_target: bool = False, reduction: Reduction = "mean"
) -> Tensor:
    """The sum over classes of target * (log(target) - log_probability) for each row; the mean is over rows.

    Source: Kullback, Leibler, On Information and Sufficiency (1951). A target of 0 adds 0, also to derivatives.

    Args:
        log_probabilities: shape (..., classes), float, such as the result of `tk.log_softmax`.
        targets: of the same shape: probabilities, whose sum along the last axis is 1.
        log_target: whether the targets are the logarithms of these.
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
    is_positive = targets > (-math.inf if log_target else 0.0)
    # Where the target is 0, neither log(0) nor an infinite log-probability may enter the derivatives.
    safe = tk.where(is_positive, targets, 0.0 if log_target else 1.0)
    log_ratios = (safe if log_target else tk.log(safe)) - tk.where(is_positive, log_probabilities, 0.0)
    chances = tk.where(is_positive, tk.exp(safe), 0.0) if log_target else targets
    return reduce_losses("kl_divergence", (chances * log_ratios).sum(-1), reduction)
