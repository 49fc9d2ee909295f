"""What jobs that tell classes apart have in common: their figures, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken import Tensor
from tensorken_nn.losses import cross_entropy
from tensorken_nn.metrics import accuracy, confusion, table
from tensorken_nn.training import Shown


def classify(
    model: Any, inputs: Tensor, labels: Tensor, label_smoothing: float = 0.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """The cross-entropy and the accuracy."""
    logits = model(inputs)
    return cross_entropy(logits, labels, label_smoothing), {"accuracy": accuracy(logits, labels)}


def evaluate(model: Any, inputs: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> dict[str, Tensor]:
    """The figures of examples that were held out, all of them at once."""
    loss, figures = classify(model, inputs, labels, label_smoothing)
    return {"test_loss": loss, "test_accuracy": figures["accuracy"]}


def show(model: Any, inputs: Tensor, labels: Tensor, classes: Sequence[str]) -> Shown:
    """The confusion table of examples that were held out."""
    counts = confusion(labels.tolist(), model(inputs).argmax(-1).tolist(), len(classes))
    heading = "confusion table of the test: the class (row) and what it was taken for (column)"
    names = [f"{i:4} is {name}" for i, name in enumerate(classes) if str(i) != name]
    return Shown(("", heading, *table(counts), *names, ""), {"confusion": counts})
