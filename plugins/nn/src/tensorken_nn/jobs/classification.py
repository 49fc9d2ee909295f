"""What jobs that tell classes apart have in common: their figures, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tensorken import Tensor
from tensorken_nn.losses import cross_entropy
from tensorken_nn.metrics import accuracy, confusion, table
from tensorken_nn.training import Shown

Examples: TypeAlias = tuple[Tensor, Tensor]
"""Inputs of shape (n, ...) and labels of shape (n,), int."""


def classify(
    model: Any, examples: Examples, label_smoothing: float = 0.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """The cross-entropy and the accuracy."""
    inputs, labels = examples
    logits = model(inputs)
    return cross_entropy(logits, labels, label_smoothing), {"accuracy": accuracy(logits, labels)}


def evaluate(model: Any, examples: Examples, label_smoothing: float = 0.0) -> dict[str, Tensor]:
    """The figures of examples that were held out, all of them at once."""
    loss, figures = classify(model, examples, label_smoothing)
    return {"test_loss": loss, "test_accuracy": figures["accuracy"]}


def show(model: Any, examples: Examples, classes: Sequence[str]) -> Shown:
    """The confusion table of examples that were held out."""
    inputs, labels = examples
    counts = confusion(labels.tolist(), model(inputs).argmax(-1).tolist(), len(classes))
    heading = "confusion table of the test: the class (row) and what it was taken for (column)"
    names = [f"{i:4} is {name}" for i, name in enumerate(classes) if str(i) != name]
    return Shown(("", heading, *table(counts), *names, ""), {"confusion": counts})
