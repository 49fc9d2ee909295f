"""The job `classifier`: train a multilayer perceptron on a CSV file to predict the class of a row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.data import hold_out
from tensorken_nn.jobs.classification import classify, evaluate, summarize
from tensorken_nn.layers import Sequential, mlp
from tensorken_nn.loader import DataLoader
from tensorken_nn.module import Module, size
from tensorken_nn.optimizers import AdamW, only_matrices
from tensorken_nn.options import count, option, rate, seed, share
from tensorken_nn.schedules import cosine
from tensorken_nn.tables import read_csv
from tensorken_nn.training import Learner, Task, gradient_step


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the job."""

    csv: Path | None = option(None, Path, "a CSV file whose last column is the class (required)")
    epochs: int = option(50, count, "the number of passes over all rows", may_change=True)
    batch_size: int = option(32, count, "the number of rows in a batch")
    learning_rate: float = option(3e-3, rate, "of the first step; it falls to 0 along a cosine")
    hidden: tuple[int, ...] = option((64, 64), count, "the sizes of the hidden layers, if any", multiple=True)
    held_out: float = option(0.2, share, "the fraction of the rows in the test set")
    seed: int = option(0, seed, "of all random numbers")


class Standardized(Module):
    """Subtracts a mean from each column and divides by a deviation; neither is trained."""

    mean: Tensor  # (columns,)
    deviation: Tensor  # (columns,)

    @classmethod
    def of(cls, inputs: Tensor) -> Standardized:
        """A module with the mean and standard deviation of these rows; a constant column is not scaled.

        >>> Standardized.of(tk.tensor([[1.0, 5.0], [3.0, 5.0]]))(tk.tensor([2.0, 6.0])).tolist()
        [0.0, 1.0]
        """
        deviation = inputs.std(0)
        return cls(inputs.mean(0), tk.where(deviation > 0.0, deviation, 1.0))

    def __call__(self, x: Tensor) -> Tensor:
        """Map shape (..., columns) to the same."""
        y: Tensor = (x - tk.stop_gradient(self.mean)) / tk.stop_gradient(self.deviation)
        return y


def prepare(settings: Settings) -> Task:
    """Make the task from the table, on the backend in use.

    Raises:
        ArgumentError: if there is no table, or all its rows have the same class.
        ContentError: if the table is malformed.
    """
    if settings.csv is None:
        raise ArgumentError("classifier: there is no data; pass a table with --csv FILE")
    rows = read_csv(settings.csv, labels=True)
    classes = len(rows.classes)
    if classes < 2:
        raise ArgumentError(
            f"classifier: all rows of {settings.csv} have the class {rows.classes[0]!r}; need two classes or more"
        )
    split_key, model_key, order_key, step_key = tk.random.split(tk.random.key(settings.seed), 4)
    train, test = hold_out((rows.inputs, rows.targets), settings.held_out, split_key)
    columns = rows.inputs.shape[1]
    sizes = (columns, *settings.hidden, classes)
    model = Sequential(Standardized.of(train[0]), *mlp(sizes, key=model_key))
    loader = DataLoader(train, settings.batch_size, key=order_key)
    steps = settings.epochs * len(loader)
    optimizer = AdamW(cosine(settings.learning_rate, 0.0, steps), mask=only_matrices)
    return Task(
        description=(
            f"classifier: {len(train[1])} rows to train on, {len(test[1])} to test; {columns} columns, "
            f"{classes} classes",
            f"model: perceptron with layers of {', '.join(map(str, sizes))}, {size(model.layers[1:])} parameters",
        ),
        state=Learner(model, optimizer.init(model)),
        step=gradient_step(lambda model, batch, key: classify(model, batch), optimizer),
        batches=loader.from_step,
        steps=steps,
        period=len(loader),
        key=step_key,
        monitor="test_accuracy",
        evaluate=lambda learner: evaluate(learner.model, test),
        summarize=lambda learner, folder: summarize(learner.model, test, rows.classes),
        facts={"classes": list(rows.classes), "columns": list(rows.columns)},
    )
