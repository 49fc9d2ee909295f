"""Metrics and summaries shared by the classification jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tensorken import Tensor
from tensorken_nn.losses import cross_entropy
from tensorken_nn.metrics import accuracy, confusion, format_confusion
from tensorken_nn.training import Summary

Examples: TypeAlias = tuple[Tensor, Tensor]
"""Inputs of shape (n, ...) and labels of shape (n,), int."""


def classify(
    model: Any, examples: Examples, label_smoothing: float = 0.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """The cross-entropy and accuracy of a model on examples."""
    inputs, labels = examples
    logits = model(inputs)
    return cross_entropy(logits, labels, label_smoothing), {"accuracy": accuracy(logits, labels)}


def evaluate(model: Any, examples: Examples, label_smoothing: float = 0.0) -> dict[str, Tensor]:
    """The metrics on the test set, computed in one batch."""
    loss, metrics = classify(model, examples, label_smoothing)
    return {"test_loss": loss, "test_accuracy": metrics["accuracy"]}


def summarize(model: Any, examples: Examples, classes: Sequence[str]) -> Summary:
    """The confusion table of the test set."""
    inputs, labels = examples
    counts = confusion(labels.tolist(), model(inputs).argmax(-1).tolist(), len(classes))
    heading = "confusion table of the test set: class (row) and prediction (column)"
    names = [f"{i:4} is {name}" for i, name in enumerate(classes) if str(i) != name]
    return Summary(("", heading, *format_confusion(counts), *names, ""), {"confusion": counts})
