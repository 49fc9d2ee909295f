"""The job `mytask` of `tensorken train`: its settings, its data, its model and its training task."""

from __future__ import annotations

from dataclasses import dataclass

import tensorken as tk
import tensorken_nn as nn
from tensorken import Tensor
from tensorken_nn.jobs import Job
from tensorken_nn.options import count, option, rate, seed
from tensorken_nn.training import Metrics

RADIUS = 0.8
"""Of the circle: about half of the points are within it."""

Batch = tuple[Tensor, Tensor]
"""Points, of shape (n, 2), and their labels, of shape (n,)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the job; each field is an option of the command, such as `--batch-size`."""

    epochs: int = option(20, count, "the number of passes over all points", may_change=True)
    points: int = option(500, count, "the number of points, of which a fifth is for the test")
    batch_size: int = option(32, count, "the number of points in a batch")
    learning_rate: float = option(1e-2, rate, "of the optimiser")
    hidden: int = option(32, count, "the size of the hidden layer")
    seed: int = option(0, seed, "of all random numbers")


def circle(number: int, key: Tensor) -> Batch:
    """Random points in [-1, 1)², of shape (number, 2), and whether each is within the circle: 0 or 1, int32.

    >>> points, labels = circle(3, tk.random.key(0))
    >>> points.shape, labels.shape
    ((3, 2), (3,))
    """
    points = tk.random.uniform(key, (number, 2), minval=-1.0)
    return points, (tk.square(points).sum(1) < RADIUS**2).astype(tk.int32)


def objective(model: nn.Sequential, batch: Batch, key: Tensor) -> tuple[Tensor, Metrics]:
    """The loss of a batch, and further metrics; the key is for layers such as dropout."""
    points, labels = batch
    logits = model(points)
    return nn.cross_entropy(logits, labels), {"accuracy": nn.accuracy(logits, labels)}


def prepare(settings: Settings) -> nn.Task:
    """Make the task, on the backend in use; equal settings give equal tasks."""
    point_key, split_key, model_key, order_key, step_key = tk.random.split(tk.random.key(settings.seed), 5)
    train, test = nn.hold_out(circle(settings.points, point_key), 0.2, split_key)
    model = nn.mlp((2, settings.hidden, 2), key=model_key)
    optimizer = nn.Adam(settings.learning_rate)
    loader = nn.DataLoader(train, settings.batch_size, key=order_key)

    def evaluate(learner: nn.Learner) -> Metrics:
        """The metrics on the points that are not used for training."""
        loss, metrics = objective(learner.model, test, step_key)
        return {"test_loss": loss, "test_accuracy": metrics["accuracy"]}

    return nn.Task(
        description=(f"mytask: {len(train[1])} points to train on, {len(test[1])} to test",),
        state=nn.Learner(model, optimizer.init(model)),
        step=nn.gradient_step(objective, optimizer),
        batches=loader.from_step,
        steps=settings.epochs * len(loader),
        period=len(loader),
        key=step_key,
        monitor="test_accuracy",
        evaluate=evaluate,
    )


JOB = Job("classify points within a circle", Settings, prepare)
"""The job, which the entry point in `pyproject.toml` names."""
