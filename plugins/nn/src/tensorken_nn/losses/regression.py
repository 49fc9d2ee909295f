"""Losses of predicted numbers."""

from __future__ import annotations

import math

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.losses.reduction import Reduction, match_targets, reduce_losses, rescale, share_of
from tensorken_nn.precision import widen


def squared_error(outputs: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """(output - target)**2.

    Args:
        outputs: any shape, float.
        targets: of the same shape.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> squared_error(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 5.0])).item()
    4.5
    """
    errors = outputs - match_targets("squared_error", outputs, targets)
    return reduce_losses("squared_error", errors.square(), reduction)


def l1(outputs: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """`|output - target|`; the derivative is 0 where they are equal, as in PyTorch.

    Args:
        outputs: any shape, float.
        targets: of the same shape.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> l1(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 5.0])).item()
    1.5
    """
    errors = outputs - match_targets("l1", outputs, targets)
    return reduce_losses("l1", errors * tk.sign(errors), reduction)


def huber(outputs: Tensor, targets: Tensor, delta: float = 1.0, *, reduction: Reduction = "mean") -> Tensor:
    """`error**2 / 2` up to delta, linear beyond it: `delta * (|error| - delta / 2)`.

    Source: Huber, Robust Estimation of a Location Parameter (1964).

    Args:
        outputs: any shape, float.
        targets: of the same shape.
        delta: positive.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> huber(tk.tensor([1.5, 2.0]), tk.tensor([1.0, 5.0]), reduction="none").tolist()
    [0.125, 2.5]
    """
    if not delta > 0.0:
        raise ArgumentError(f"huber: delta must be positive, got {delta}")
    errors = tk.abs(outputs - match_targets("huber", outputs, targets))
    near = errors.minimum(delta)  # so that large errors are not squared
    return reduce_losses("huber", near * (errors - near * 0.5), reduction)


def smooth_l1(
    outputs: Tensor, targets: Tensor, beta: float = 1.0, *, reduction: Reduction = "mean"
) -> Tensor:
    """`error**2 / (2 * beta)` up to beta, `|error| - beta / 2` beyond it: `huber` divided by delta.

    Source: Girshick, Fast R-CNN (2015), equation 3.

    Args:
        outputs: any shape, float.
        targets: of the same shape.
        beta: not negative; 0 gives `l1`.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> smooth_l1(tk.tensor([1.5, 2.0]), tk.tensor([1.0, 5.0]), 0.5, reduction="none").tolist()
    [0.25, 2.75]
    """
    if not beta >= 0.0:
        raise ArgumentError(f"smooth_l1: beta must not be negative, got {beta}")
    errors = tk.abs(outputs - match_targets("smooth_l1", outputs, targets))
    if beta == 0.0:
        return l1(outputs, targets, reduction=reduction)
    near = errors.minimum(beta)
    return reduce_losses("smooth_l1", near * (errors - near * 0.5) / beta, reduction)


def gaussian_negative_log_likelihood(
    outputs: Tensor,
    targets: Tensor,
    variances: Tensor,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Tensor:
    """(log(variance) + error**2 / variance) / 2: of targets with normal distributions around the outputs.

    Source: Nix and Weigend, Estimating the Mean and Variance of the Target Probability Distribution (1994).

    Args:
        outputs: the means, of any shape, float.
        targets: of the same shape.
        variances: of a shape that broadcasts to that of the outputs; smaller ones count as `eps`.
        full: whether to add the constant log(2 * pi) / 2.
        eps: positive.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> gaussian_negative_log_likelihood(tk.tensor([1.0]), tk.tensor([3.0]), tk.tensor([4.0])).item()
    1.1931471824645996
    """
    name = "gaussian_negative_log_likelihood"
    if not eps > 0.0:
        raise ArgumentError(f"{name}: eps must be positive, got {eps}")
    errors = outputs - match_targets(name, outputs, targets)
    variances = rescale(name, tk.ones_like(errors), variances).maximum(eps)
    losses = (tk.log(variances) + errors * errors / variances) * 0.5
    return reduce_losses(name, losses + 0.5 * math.log(2.0 * math.pi) if full else losses, reduction)


def poisson_negative_log_likelihood(
    outputs: Tensor,
    targets: Tensor,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Tensor:
    """rate - target * log(rate): of targets with Poisson distributions.

    Args:
        outputs: the logarithms of the rates, of any shape, float; or the rates, to whose logarithm's argument `eps` is
            added.
        targets: counts, of the same shape.
        log_input: whether the outputs are logarithms.
        full: whether to add an approximation of log(target!), Stirling's, for targets above 1.
        eps: not negative.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if an argument is invalid.

    >>> poisson_negative_log_likelihood(tk.tensor([0.0, 0.0]), tk.tensor([0, 3]), reduction="none").tolist()
    [1.0, 1.0]
    """
    name = "poisson_negative_log_likelihood"
    targets = match_targets(name, outputs, targets)
    if log_input:
        rates, logarithms = tk.exp(outputs), outputs
    else:  # eps is 0 in float16
        rates, logarithms = outputs, tk.log(widen(outputs) + eps).astype(outputs.dtype)
    losses = rates - share_of(targets, logarithms)
    if full:
        n = (targets > 1.0).where(targets, 1.0)
        terms = n * tk.log(n) - n + 0.5 * tk.log(2.0 * math.pi * n)
        losses = losses + (targets > 1.0).where(terms, 0.0)
    return reduce_losses(name, losses, reduction)
