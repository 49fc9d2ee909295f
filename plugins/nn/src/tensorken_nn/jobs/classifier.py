"""The job `classifier`: a multilayer perceptron learns from a table of your own to which class a row belongs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.data import hold_out
from tensorken_nn.jobs.classification import classify, evaluate, show
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
    """What can be chosen."""

    csv: Path | None = option(None, Path, "a table, one row a line, whose last column is the class (needed)")
    epochs: int = option(50, count, "how often all rows are seen", extends=True)
    batch_size: int = option(32, count, "how many rows make a step")
    learning_rate: float = option(3e-3, rate, "of the first step; it falls to 0, as a cosine")
    hidden: tuple[int, ...] = option((64, 64), count, "the sizes of the hidden layers, if any", several=True)
    held_out: float = option(0.2, share, "the share of the rows that only test")
    seed: int = option(0, seed, "for all that is random")


class Standardized(Module):
    """Takes a mean from each column and divides by a deviation; neither is learned."""

    mean: Tensor  # (columns,)
    deviation: Tensor  # (columns,)

    @classmethod
    def of(cls, inputs: Tensor) -> Standardized:
        """By the mean and the standard deviation of these rows; a column that never changes is only moved.

        >>> Standardized.of(tk.tensor([[1.0, 5.0], [3.0, 5.0]]))(tk.tensor([2.0, 6.0])).tolist()
        [0.0, 1.0]
        """
        deviation = inputs.std(0)
        return cls(inputs.mean(0), tk.where(deviation > 0.0, deviation, 1.0))

    def __call__(self, x: Tensor) -> Tensor:
        """From and to shape (..., columns)."""
        y: Tensor = (x - tk.stop_gradient(self.mean)) / tk.stop_gradient(self.deviation)
        return y


def prepare(settings: Settings) -> Task:
    """The table, the model and the recipe, on the backend in use.

    Raises:
        ArgumentError: if there is no table, or all its rows are of one class.
        ContentError: if its cells are not what they should be.
    """
    if settings.csv is None:
        raise ArgumentError("classifier: there is nothing to learn from; give a table, as --csv FILE")
    rows = read_csv(settings.csv, labels=True)
    classes = len(rows.classes)
    if classes < 2:
        raise ArgumentError(
            f"classifier: all rows of {settings.csv} are of the class {rows.classes[0]!r}; give a table with others too"
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
        watched="test_accuracy",
        evaluate=lambda learner: evaluate(learner.model, test),
        show=lambda learner, folder: show(learner.model, test, rows.classes),
        facts={"classes": list(rows.classes), "columns": list(rows.columns)},
    )
