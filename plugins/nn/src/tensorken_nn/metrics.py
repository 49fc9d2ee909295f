"""Metrics of classifiers: what people want to know, though it has no derivative."""

from __future__ import annotations

from collections.abc import Sequence

from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """How many rows of logits, of shape (..., classes), are largest at their label; int32 of shape ().

    >>> import tensorken as tk
    >>> correct(tk.tensor([[0.0, 2.0], [3.0, 1.0]]), tk.tensor([1, 1])).item()
    1
    """
    return _right("correct", logits, labels).sum()


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """The share of rows of logits, of shape (..., classes), that are largest at their label; float32 of shape ().

    >>> import tensorken as tk
    >>> accuracy(tk.tensor([[0.0, 2.0], [3.0, 1.0]]), tk.tensor([1, 1])).item()
    0.5
    """
    return _right("accuracy", logits, labels).mean()


def confusion(labels: Sequence[int], predictions: Sequence[int], classes: int) -> list[list[int]]:
    """How often each class (row) was taken for each class (column).

    >>> confusion([0, 1, 1], [0, 1, 0], 2)
    [[1, 0], [1, 1]]
    """
    table = [[0] * classes for _ in range(classes)]
    for label, prediction in zip(labels, predictions, strict=True):
        if not (0 <= label < classes and 0 <= prediction < classes):
            raise ArgumentError(
                f"confusion: {label} taken for {prediction}, need classes from 0 to {classes - 1}"
            )
        table[label][prediction] += 1
    return table


def table(counts: Sequence[Sequence[int]]) -> list[str]:
    """A table of counts as lines, with a dot for 0.

    >>> for line in table([[12, 0], [1, 9]]):
    ...     print(line)
           0   1
       0  12   .
       1   1   9
    """
    width = max(3, *[len(str(count)) for row in counts for count in row])
    lines = ["    " + "".join([f" {i:{width}}" for i in range(len(counts))])]
    return lines + [
        f"{i:4}" + "".join([f" {count or '.':>{width}}" for count in row]) for i, row in enumerate(counts)
    ]


def _right(name: str, logits: Tensor, labels: Tensor) -> Tensor:
    """Whether each row of logits is largest at its label."""
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"{name}: got labels of shape {labels.shape} for logits of shape {logits.shape}; need one for each row"
        )
    return logits.argmax(-1) == labels
