"""Training of classifiers: epochs of steps, each a gradient and an update, with figures after every epoch."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_nn.data import batches
from tensorken_nn.metrics import correct
from tensorken_nn.optimizers import Optimizer

Examples: TypeAlias = tuple[Tensor, Tensor]
"""Inputs of shape (n, ...) and labels of shape (n,), int."""

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From logits and labels: their mean loss, of shape ()."""


@dataclass(frozen=True, slots=True)
class Task:
    """All that a training needs; its examples and its model live on the backend that is to compute."""

    description: tuple[str, ...]  # what is trained on what, in lines
    model: Any  # to begin with; gives logits of shape (n, classes)
    train: Examples
    test: Examples  # looked at after every epoch, never learned from
    classes: int
    loss: Loss
    optimizer: Optimizer
    epochs: int
    batch_size: int
    rng: random.Random  # where the order of the examples comes from

    @property
    def steps(self) -> int:
        """The number of steps of the whole training."""
        return self.epochs * math.ceil(self.train[1].size / self.batch_size)


@dataclass(frozen=True, slots=True)
class Epoch:
    """The figures of an epoch; those of training are means over its steps, while the model learned."""

    number: int  # from 1
    loss: float
    accuracy: float  # from 0 to 1
    test_loss: float
    test_accuracy: float


def fit(task: Task, after_step: Callable[[], object] = lambda: None) -> Iterator[tuple[Epoch, Any]]:
    """Train; after each epoch, yields its figures and the model so far.

    Args:
        task: what to train, and how; its `rng` is used up, so a task serves once.
        after_step: called after every step.
    """

    def objective(model: Any, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = model(inputs)
        return task.loss(logits, labels), logits

    value_and_gradient = tk.value_and_grad(objective, has_aux=True)
    model = task.model
    state = task.optimizer.init(model)
    count = task.train[1].size
    for number in range(1, task.epochs + 1):
        # The sums stay on the backend: a device that computes on its own would have to be waited for at every step.
        total_loss: Any = 0.0
        total_correct: Any = 0
        for inputs, labels in batches(task.train, task.batch_size, task.rng):
            (loss, logits), gradients = value_and_gradient(model, inputs, labels)
            model, state = task.optimizer.update(model, gradients, state)
            total_loss = loss * labels.size + total_loss
            total_correct = correct(logits, labels) + total_correct
            after_step()
        figures = float(total_loss) / count, int(total_correct) / count
        yield Epoch(number, *figures, *evaluate(task, model)), model


def evaluate(task: Task, model: Any) -> tuple[float, float]:
    """The mean loss and the accuracy on the examples held out, all of them at once."""
    inputs, labels = task.test
    logits = model(inputs)
    return float(task.loss(logits, labels)), int(correct(logits, labels)) / labels.size


def predict(task: Task, model: Any) -> list[int]:
    """The class of the largest logit for each example held out."""
    logits = model(task.test[0])
    classes: list[int] = logits.argmax(-1).tolist()
    return classes
