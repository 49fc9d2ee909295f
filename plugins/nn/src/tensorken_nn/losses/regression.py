"""Losses of numbers: how far off each is."""

from __future__ import annotations

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.losses.reduction import Reduction, fitting, reduced


def squared_error(outputs: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """(output - target)**2.

    Args:
        outputs: any shape, float.
        targets: of that shape.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if the arguments are not of that kind.

    >>> squared_error(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 5.0])).item()
    4.5
    """
    errors = outputs - fitting("squared_error", outputs, targets)
    return reduced("squared_error", errors.square(), reduction)


def l1(outputs: Tensor, targets: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """`|output - target|`; its derivative is 0 where there is no error.

    Args:
        outputs: any shape, float.
        targets: of that shape.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if the arguments are not of that kind.

    >>> l1(tk.tensor([1.0, 2.0]), tk.tensor([1.0, 5.0])).item()
    1.5
    """
    errors = outputs - fitting("l1", outputs, targets)
    return reduced("l1", tk.abs(errors), reduction)


def huber(outputs: Tensor, targets: Tensor, delta: float = 1.0, *, reduction: Reduction = "mean") -> Tensor:
    """`error**2 / 2` up to delta, beyond it the tangent: `delta * (|error| - delta / 2)`.

    Source: Huber, Robust Estimation of a Location Parameter (1964).

    Args:
        outputs: any shape, float.
        targets: of that shape.
        delta: positive.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DTypeError, ArgumentError: if the arguments are not of that kind.

    >>> huber(tk.tensor([1.5, 2.0]), tk.tensor([1.0, 5.0]), reduction="none").tolist()
    [0.125, 2.5]
    """
    if not delta > 0.0:
        raise ArgumentError(f"huber: delta must be positive, got {delta}")
    errors = tk.abs(outputs - fitting("huber", outputs, targets))
    near = errors.minimum(delta)  # so what is far is never squared
    return reduced("huber", near * (errors - near * 0.5), reduction)
