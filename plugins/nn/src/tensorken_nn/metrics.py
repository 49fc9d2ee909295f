"""Metrics of classifiers, and the names and text of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorken import Tensor
from tensorken_core.errors import ArgumentError, ShapeError

TRAIN = "train"


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """The number of correct predictions, from logits of shape (..., classes); int32 of shape ().

    >>> import tensorken as tk
    >>> correct(tk.tensor([[0.0, 2.0], [3.0, 1.0]]), tk.tensor([1, 1])).item()
    1
    """
    return _is_correct("correct", logits, labels).sum()


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """The fraction of correct predictions, from logits of shape (..., classes); float32 of shape ().

    >>> import tensorken as tk
    >>> accuracy(tk.tensor([[0.0, 2.0], [3.0, 1.0]]), tk.tensor([1, 1])).item()
    0.5
    """
    return _is_correct("accuracy", logits, labels).mean()


def confusion(labels: Sequence[int], predictions: Sequence[int], classes: int) -> list[list[int]]:
    """The confusion matrix: how often each class (row) was predicted as each class (column).

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


def format_confusion(counts: Sequence[Sequence[int]]) -> list[str]:
    """A confusion matrix as lines of text, with a dot for 0.

    >>> for line in format_confusion([[12, 0], [1, 9]]):
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


def _is_correct(name: str, logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the largest logit of each row is at the row's label."""
    if not logits.ndim or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            f"{name}: got labels of shape {labels.shape} for logits of shape {logits.shape}; need one for each row"
        )
    return logits.argmax(-1) == labels


# ---- names and text of metrics ---------------------------------------------------------------------------


def split_name(name: str) -> tuple[str, str]:
    """The data set and the metric that a name such as `test_loss` consists of; without a data set, `train`.

    >>> split_name("test_loss"), split_name("accuracy")
    (('test', 'loss'), ('train', 'accuracy'))
    """
    data, _, kind = name.rpartition("_")
    return data or TRAIN, kind


def format_value(name: str, value: float) -> str:
    """The value of a metric with its unit.

    >>> format_value("test_accuracy", 0.5), format_value("loss", 2.0)
    ('50.0 %', '2.0000')
    """
    return f"{100 * value:.1f} %" if name.endswith("accuracy") else f"{value:.4f}"


def format(metrics: Mapping[str, float]) -> str:
    """Metrics in one line, grouped by data set.

    >>> format({"loss": 2.0, "accuracy": 0.5, "test_loss": 3.0})
    'train: loss 2.0000, accuracy  50.0 %   test: loss 3.0000'
    """
    groups: dict[str, list[str]] = {}
    for name, value in metrics.items():
        data, kind = split_name(name)
        groups.setdefault(data, []).append(
            f"{kind} {format_value(name, value):>{7 if kind == 'accuracy' else 6}}"
        )
    return "   ".join([f"{data}: {', '.join(parts)}" for data, parts in groups.items()])


def format_final(name: str, value: float) -> str:
    """The last line of a training run: a metric with its value.

    >>> format_final("test_accuracy", 0.975)
    'test accuracy: 97.5 %'
    """
    return f"{name.replace('_', ' ')}: {format_value(name, value)}"
