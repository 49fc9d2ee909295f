"""Argument checks and reductions, shared by the losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from tensorken import Tensor
from tensorken.arrays.indexing.checks import require
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError

Reduction: TypeAlias = Literal["mean", "sum", "none"]

REDUCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda losses: losses.mean(),
    "sum": lambda losses: losses.sum(),
    "none": lambda losses: losses,
}


def reduce_losses(name: str, losses: Tensor, reduction: Reduction) -> Tensor:
    """Reduce individual losses.

    Raises:
        ArgumentError: if the reduction is unknown.

    >>> import tensorken as tk
    >>> reduce_losses("l1", tk.tensor([1.0, 3.0]), "mean").item()
    2.0
    """
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"{name}: reduction must be one of {', '.join(map(repr, REDUCTIONS))}, got {reduction!r}"
        )
    return REDUCTIONS[reduction](losses)


def match_targets(name: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """The targets in the dtype of the outputs; their shapes must be equal, as broadcasting would hide mistakes.

    Raises:
        ShapeError: if the shapes differ.
        DTypeError: if the outputs are not floats.
    """
    if outputs.shape != targets.shape:
        raise ShapeError(
            f"{name}: targets of shape {targets.shape} for outputs of shape {outputs.shape}; "
            f"need one shape, reshape one of them"
        )
    check_float(name, outputs)
    return targets.astype(outputs.dtype)


def check_float(name: str, outputs: Tensor) -> None:
    """Check that the outputs of a network are floats.

    Raises:
        DTypeError: if not.
    """
    if outputs.dtype.kind != "float":
        raise DTypeError(f"{name}: outputs must be floats, got {outputs.dtype}; cast them (outputs.astype)")


def share_of(amount: Tensor, values: Tensor) -> Tensor:
    """amount * values, where an amount of 0 of an infinite value is 0.

    >>> import tensorken as tk
    >>> share_of(tk.tensor([0.0, 0.5]), tk.tensor([math.inf, 3.0])).tolist()
    [0.0, 1.5]
    """
    none = amount.eq(0.0) & values.abs().eq(math.inf)
    return amount * none.where(0.0, values)


def rescale(name: str, losses: Tensor, weight: Tensor | None) -> Tensor:
    """The losses times a weight, None for 1, whose shape must broadcast to theirs.

    Raises:
        ShapeError: if it does not.
    """
    if weight is None:
        return losses
    fits = all([n in (1, size) for n, size in zip(weight.shape[::-1], losses.shape[::-1], strict=False)])
    if weight.ndim > losses.ndim or not fits:
        raise ShapeError(
            f"{name}: a weight of shape {weight.shape} does not broadcast to losses of shape {losses.shape}; reshape it"
        )
    return losses * weight.astype(losses.dtype)


def check_classes(name: str, labels: Tensor, classes: int, ignored: int | None = None) -> None:
    """Raise ArgumentError if a label is known, and is neither in [0, classes) nor the label to ignore."""
    valid = (labels >= 0) & (labels < classes)
    if ignored is not None:
        valid = valid | (labels == ignored)
    needed = f"from 0 to {classes - 1}" + ("" if ignored is None else f", or {ignored}, which is ignored")
    require(name, "labels", valid, needed, labels)
