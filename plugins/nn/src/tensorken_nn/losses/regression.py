"""Losses of predicted numbers."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.losses.reduction import Reduction, match_targets, reduce_losses


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
    """`|output - target|`; the derivative is 0 where they are equal.

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
    return reduce_losses("l1", tk.abs(errors), reduction)


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
