"""Training: a loop of steps over batches, with metrics after each period. It can stop after any step and resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.optimizers import Optimizer

Metrics: TypeAlias = Mapping[str, Any]
"""Metrics by name, such as loss or test_accuracy: Python numbers or tensors of shape ()."""

Step: TypeAlias = Callable[[Any, Any, Tensor], tuple[Any, Metrics]]
"""A function from a state, a batch and a key to the next state and the metrics, tensors of shape ()."""

Objective: TypeAlias = Callable[[Any, Any, Tensor], tuple[Tensor, Metrics]]
"""A function from a model, a batch and a key to the loss, of shape (), and further metrics."""


LOSS = "loss"  # always the first metric


class Learner(NamedTuple):
    """The usual state of training: a model and its optimiser's state."""

    model: Any
    optimizer: Any


ValueAndGrad: TypeAlias = Callable[[Any, Any, Tensor], tuple[tuple[Tensor, Metrics], Any]]
"""A function from a model, a batch and a key to the pair of loss and metrics, and the gradients."""


@dataclass(frozen=True, slots=True)
class GradientStep:
    """A step that updates a `Learner` by the gradient of an objective; made by `gradient_step`."""

    objective: Objective
    optimizer: Optimizer
    clip: Callable[[Any], Any]
    value_and_grad: ValueAndGrad
    update: Callable[[Learner, Any], Learner]

    def __call__(self, learner: Learner, batch: Any, key: Tensor) -> tuple[Learner, Metrics]:
        """The next learner, and the metrics, of which the first is the loss."""
        (loss, metrics), gradients = self.value_and_grad(learner.model, batch, key)
        return self.update(learner, gradients), {LOSS: loss, **metrics}


def gradient_step(
    objective: Objective,
    optimizer: Optimizer,
    clip: Callable[[Any], Any] = lambda gradients: gradients,
    value_and_grad: ValueAndGrad | None = None,
) -> GradientStep:
    """A step that updates a `Learner` by the gradient of an objective; its first metric is the loss.

    Args:
        objective: a function from a model, a batch and a key to the loss and further metrics.
        optimizer: updates the model.
        clip: applied to the gradients before the update, such as `clip_by_global_norm`.
        value_and_grad: computes the loss, metrics and gradients in place of the derivative of the objective, such as
            from parts of the batch in other processes (`tensorken_nn.parts`).  The step then compiles the update by
            the optimiser itself, so that `value_and_grad` may be a function that `tk.jit` cannot trace.

    >>> from tensorken_nn import SGD
    >>> step = gradient_step(lambda w, x, key: (((w - x) ** 2).sum(), {}), SGD(0.25))
    >>> learner, metrics = step(
    ...     Learner(tk.tensor([1.0]), SGD(0.25).init(0)), tk.tensor([3.0]), tk.random.key(0)
    ... )
    >>> learner.model.tolist(), metrics["loss"].item()
    ([2.0], 4.0)
    """

    def update(learner: Learner, gradients: Any) -> Learner:
        return Learner(*optimizer.update(learner.model, clip(gradients), learner.optimizer))

    if value_and_grad is not None:
        return GradientStep(objective, optimizer, clip, value_and_grad, tk.jit(update))
    return GradientStep(objective, optimizer, clip, tk.value_and_grad(objective, has_aux=True), update)


class Summary(NamedTuple):
    """A summary of a state: lines to print, and results to save as JSON."""

    lines: Iterable[str] = ()
    results: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """A training task: the initial state, the step, the batches and the evaluation.

    All tensors are on the backend that computes.
    """

    description: tuple[str, ...]  # lines to print first: the data and the model
    state: Any  # the initial state, a tree of everything that a step changes
    step: Step
    batches: Callable[[int], Iterator[Any]]  # from the number of steps done, the batches that follow
    steps: int
    period: int  # the number of steps between evaluations
    key: Tensor  # step i, from 0, gets fold_in(key, i)
    monitor: str  # the metric that ranks states: a loss should be small, any other metric large
    evaluate: Callable[[Any], Metrics] = lambda state: {}  # further metrics of a state after a period
    unit: str = "epoch"  # the name of a period, or "step" to count steps
    preview: Callable[[Any], str] | None = None  # a sample of a state's output after a period, to print
    # a summary of the last state; may write plots into the directory
    summarize: Callable[[Any, Path], Summary] = lambda state, directory: Summary()
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON values, saved for later use of the state
    compiled: bool = True  # whether to compile the step
    # the number of examples of a batch, over which the loss and the metrics are means; None: of its rows
    weight: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or self.period < 1:
            raise ArgumentError(
                f"Task: need one step or more, in periods of one or more, got {self.steps} in periods of {self.period}"
            )

    def progress(self, step: int) -> tuple[int, int]:
        """The position after this many steps, and the end, both in units."""
        if self.unit == "step":
            return step, self.steps
        return -(-step // self.period), -(-self.steps // self.period)


class Progress(NamedTuple):
    """A snapshot of training, from which it resumes as if it had never stopped."""

    step: int  # the number of steps done
    state: Any
    sums: Mapping[str, Any]  # of the metrics over the steps of this period so far


@dataclass(frozen=True, slots=True)
class Record:
    """The metrics after a period; metrics of steps are means over the period, during which the state changed."""

    step: int  # the number of steps done
    metrics: dict[str, float]


def fit(
    task: Task,
    progress: Progress | None = None,
    *,
    every: int | None = None,
    after_step: Callable[[], object] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Progress, Record | None]]:
    """Train; yields the progress after each period, with a record of its metrics.

    Args:
        task: the task to train.
        progress: where to resume; None for the start.
        every: also yield every `every` steps, without a record.
        after_step: called after each step.
        stop: called after each step; if true, training ends after one more yield.

    Raises:
        ConnectionError: if a step loses the processes that compute for it; after one more yield, of the last progress.
    """
    if every is not None and every < 1:
        raise ArgumentError(f"fit: `every` must be 1 or more, got {every}; None yields only after periods")
    step, state, sums = progress or Progress(0, task.state, {})
    advance = tk.jit(task.step) if task.compiled else task.step
    batches = task.batches(step)
    while step < task.steps:
        try:
            batch = next(batches)
        except StopIteration:
            raise ArgumentError(
                f"fit: the batches ended before step {step + 1} of {task.steps}; use loader.from_step"
            ) from None
        try:
            state, metrics = advance(state, batch, tk.random.fold_in(task.key, step))
        except ConnectionError:
            yield Progress(step, state, sums), None
            raise
        # The sums stay on the backend: reading them would wait for the device at each step.
        sums = {**sums, **{name: sums.get(name, 0.0) + value for name, value in metrics.items()}}
        step += 1
        after_step()
        stopped = stop()
        if step % task.period == 0 or step == task.steps:
            count = (step - 1) % task.period + 1
            means = {name: float(sums[name]) / count for name in sorted(sums, key=LOSS.__ne__)}
            sums = {} if step % task.period == 0 else sums  # a run may be resumed with more steps
            after = {name: float(value) for name, value in task.evaluate(state).items()}
            yield Progress(step, state, sums), Record(step, {**means, **after})
        elif stopped or (every is not None and step % every == 0):
            yield Progress(step, state, sums), None
        if stopped:
            return


def periods_without_improvement(records: Iterable[Record], monitor: str) -> int:
    """The number of records since the best value of the monitored metric: the smallest loss, else the largest.

    >>> records = [Record(i, {"test_loss": loss}) for i, loss in enumerate([3.0, 1.0, 2.0, 1.5])]
    >>> periods_without_improvement(records, "test_loss")
    2
    """
    scores = [score(monitor, record.metrics[monitor]) for record in records]
    return len(scores) - 1 - max(range(len(scores)), key=scores.__getitem__) if scores else 0


def score(name: str, value: float) -> float:
    """The value of a metric, negated for a loss; larger is better, and NaN is worst.

    >>> score("test_loss", 2.0), score("accuracy", 0.5), score("loss", float("nan"))
    (-2.0, 0.5, -inf)
    """
    if value != value:
        return float("-inf")
    return -value if name.endswith("loss") else value
