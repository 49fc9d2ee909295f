"""Training: steps over batches, with figures after every period, which can stop at any step and go on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.optimizers import Optimizer

Figures: TypeAlias = Mapping[str, Any]
"""Numbers by their name, such as loss or test_accuracy: tensors of shape () or Python's."""

Step: TypeAlias = Callable[[Any, Any, Tensor], tuple[Any, Figures]]
"""From the state, a batch and a key to the state after the step, and to its figures, tensors of shape ()."""

Objective: TypeAlias = Callable[[Any, Any, Tensor], tuple[Tensor, Figures]]
"""From a model, a batch and a key to the loss, of shape (), and to further figures."""


LOSS = "loss"  # the first of figures


class Learner(NamedTuple):
    """What most trainings change: a model and the state of its optimiser."""

    model: Any
    optimizer: Any


def gradient_step(
    objective: Objective, optimizer: Optimizer, clip: Callable[[Any], Any] = lambda gradients: gradients
) -> Step:
    """A step of a `Learner` against the gradient of an objective; the first of its figures is the loss.

    Args:
        objective: from a model, a batch and a key to the loss and further figures.
        optimizer: what makes a step of gradients.
        clip: what is done to the gradients before, as by `clip_by_global_norm`.

    >>> from tensorken_nn import SGD
    >>> step = gradient_step(lambda w, x, key: (((w - x) ** 2).sum(), {}), SGD(0.25))
    >>> learner, figures = step(
    ...     Learner(tk.tensor([1.0]), SGD(0.25).init(0)), tk.tensor([3.0]), tk.random.key(0)
    ... )
    >>> learner.model.tolist(), figures["loss"].item()
    ([2.0], 4.0)
    """
    value_and_gradient = tk.value_and_grad(objective, has_aux=True)

    def step(learner: Learner, batch: Any, key: Tensor) -> tuple[Learner, Figures]:
        (loss, figures), gradients = value_and_gradient(learner.model, batch, key)
        learner = Learner(*optimizer.update(learner.model, clip(gradients), learner.optimizer))
        return learner, {LOSS: loss, **figures}

    return step


class Shown(NamedTuple):
    """What there is to see of a state: lines to read, and results to keep, as JSON has them."""

    lines: Iterable[str] = ()
    results: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """A training: where it begins, what its steps are, and what is looked at on the way.

    All of it lives on the backend that is to compute.
    """

    description: tuple[str, ...]  # what is trained on what, in lines
    state: Any  # all that a step changes, as a tree, to begin with
    step: Step
    batches: Callable[[int], Iterator[Any]]  # from how many steps were done: the batches of all others
    steps: int
    period: int  # the number of steps between looks at the figures
    key: Tensor  # step i, from 0, draws with fold_in(key, i)
    watched: str  # the figure that tells how good the state is: a loss, or something that should be large
    evaluate: Callable[[Any], Figures] = lambda state: {}  # of a state after a period: what no step tells
    unit: str = "epoch"  # what people call a period, or "step" for those that count steps
    glimpse: Callable[[Any], str] | None = None  # of a state after a period: something to read
    show: Callable[[Any, Path], Shown] = lambda state, folder: (
        Shown()
    )  # of the last state; writes pictures into a folder
    facts: Mapping[str, Any] = field(
        default_factory=dict
    )  # what is needed to use the state later, as JSON has it
    compiled: bool = True  # whether the step is one program

    def __post_init__(self) -> None:
        if self.steps < 1 or self.period < 1:
            raise ArgumentError(
                f"Task: need one step or more, in periods of one or more, got {self.steps} in periods of {self.period}"
            )

    def shown(self, step: int) -> tuple[int, int]:
        """How far a training is after so many steps, in its unit, and how far it goes."""
        if self.unit == "step":
            return step, self.steps
        return -(-step // self.period), -(-self.steps // self.period)


class Progress(NamedTuple):
    """A training after some steps: with it, the training goes on as if it had never stopped."""

    step: int  # how many were done
    state: Any
    sums: Mapping[str, Any]  # of the figures of this period's steps so far


@dataclass(frozen=True, slots=True)
class Record:
    """The figures after a period; those of its steps are means over them, while the state changed."""

    step: int  # how many were done
    figures: dict[str, float]


def fit(
    task: Task,
    progress: Progress | None = None,
    *,
    every: int | None = None,
    after_step: Callable[[], object] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Progress, Record | None]]:
    """Train; yields how far it came after each period, with that period's figures.

    Args:
        task: what to train.
        progress: where to go on (None: at the beginning).
        every: yields after each so many steps too, without figures.
        after_step: called after every step.
        stop: asked after every step; when it says yes, what is yielded next is the last.
    """
    if every is not None and every < 1:
        raise ArgumentError(f"fit: `every` must be 1 or more, got {every}; None yields after periods alone")
    step, state, sums = progress or Progress(0, task.state, {})
    advance = tk.jit(task.step) if task.compiled else task.step
    batches = task.batches(step)
    while step < task.steps:
        try:
            batch = next(batches)
        except StopIteration:
            raise ArgumentError(
                f"fit: the batches ended before step {step + 1} of {task.steps}; give more, as loader.from_step does"
            ) from None
        state, figures = advance(state, batch, tk.random.fold_in(task.key, step))
        # The sums stay on the backend: a device that computes on its own would have to be waited for at every step.
        sums = {name: sums.get(name, 0.0) + value for name, value in figures.items()}
        step += 1
        after_step()
        stopped = stop()
        if step % task.period == 0 or step == task.steps:
            count = (step - 1) % task.period + 1
            means = {name: float(sums[name]) / count for name in sorted(sums, key=LOSS.__ne__)}
            sums = {} if step % task.period == 0 else sums  # a training may go on further than was planned
            after = {name: float(value) for name, value in task.evaluate(state).items()}
            yield Progress(step, state, sums), Record(step, {**means, **after})
        elif stopped or (every is not None and step % every == 0):
            yield Progress(step, state, sums), None
        if stopped:
            return


def stalled(records: Iterable[Record], watched: str) -> int:
    """For how many records the watched figure has not become better: smaller for a loss, else larger.

    >>> records = [Record(i, {"test_loss": loss}) for i, loss in enumerate([3.0, 1.0, 2.0, 1.5])]
    >>> stalled(records, "test_loss")
    2
    """
    worth = [goodness(watched, record.figures[watched]) for record in records]
    return len(worth) - 1 - max(range(len(worth)), key=worth.__getitem__) if worth else 0


def goodness(name: str, value: float) -> float:
    """A figure's value, or for a loss its opposite; NaN is worst.

    >>> goodness("test_loss", 2.0), goodness("accuracy", 0.5), goodness("loss", float("nan"))
    (-2.0, 0.5, -inf)
    """
    if value != value:
        return float("-inf")
    return -value if name.endswith("loss") else value
