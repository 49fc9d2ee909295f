"""Divided batches: the gradient of a batch as the sum of those of its parts, computed here or in other processes.

Or each part trains alone for some steps, after which the mean of the states is the next state (local SGD).

A process computes its part of a batch from the settings of the run, the number of the step and the number of the part:
only parameters and gradients travel.  Gradients are added in the order of the parts, so the result has the same bits
wherever the parts are computed.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import tensorken as tk
from tensorken import Tensor
from tensorken_core import tree
from tensorken_core.errors import ArgumentError
from tensorken_nn.data import row_count
from tensorken_nn.jobs import JOBS
from tensorken_nn.training import LOSS, GradientStep, Learner, Metrics, Task, gradient_step

PartFunction = Callable[..., Any]
"""A function from the number of a part and further arguments to a result of the part."""

Combine = Callable[[Any, Any], Any]
"""A function from two results to one."""

MAX_SOURCES = 4
"""The number of runs whose data a process keeps."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the batches of a run.

    Args:
        job: the name of the job.
        settings: of the job.
        count: the number of parts of each batch.

    >>> from tensorken_nn.jobs.digits import Settings
    >>> parts = Parts("digits", Settings(limit=100), 4)
    >>> model = JOBS["digits"].prepare(parts.settings).state.model
    >>> (loss, metrics, weight), gradients = parts.sums(parts.load(0), model, 0, tk.random.key(0))
    >>> weight.item()  # a quarter of the 32 images
    8.0
    """

    job: str
    settings: Any
    count: int

    def load(self, number: int) -> int:
        """Read the data of the run in this process; returns the number of the part."""
        self._source()
        return number

    def sums(
        self, number: int, model: Any, step: int, key: Tensor
    ) -> tuple[tuple[Tensor, Metrics, Tensor], Any] | None:
        """The loss and metrics of a part of a batch times its number of examples, that number, and the gradient.

        None if the batch has fewer rows than parts, and none for this part.

        Args:
            number: of the part.
            model: the model.
            step: the number of the step, which determines the batch.
            key: of the step.
        """
        source = self._source()
        part = self._part(source.batch(step), number)
        if part is None:
            return None
        result: tuple[tuple[Tensor, Metrics, Tensor], Any] = source.sums(
            model, part, tk.random.fold_in(key, number)
        )
        return result

    def states(self, number: int, learner: Learner, first: int, count: int) -> Round | None:
        """The learner after some steps on a part of each batch alone; None if the part has no rows in any.

        Args:
            number: of the part.
            learner: before the first step.
            first: the number of the first step.
            count: the number of steps.
        """
        source = self._source()
        metrics: list[tuple[Metrics, Tensor] | None] = []
        for step, batch in enumerate(source.round(first, count), first):
            part = self._part(batch, number)
            if part is None:
                metrics.append(None)
                continue
            key = tk.random.fold_in(tk.random.fold_in(source.key, step), number)
            learner, sums, rows = source.step(learner, part, key)
            metrics.append((sums, rows))
        return (learner, 1, metrics) if any(metrics) else None

    def _part(self, batch: Any, number: int) -> Any:
        """The rows of a part; None if there are none."""
        rows = row_count("train", batch)
        first, last = (i * rows // self.count for i in (number, number + 1))
        return None if first == last else tree.map(lambda x: x[first:last], batch)

    def _source(self) -> _Source:
        chosen = tk.default_backend()
        return _source(self.job, self.settings, chosen.name, chosen.device)


def add(a: Any, b: Any) -> Any:
    """The sum of the results of two parts; None is that of a part without rows.

    >>> add((1.0, 2.0), None), add((1.0, 2.0), (3.0, 4.0))
    ((1.0, 2.0), (4.0, 6.0))
    """
    if a is None or b is None:
        return b if a is None else a
    return tree.map(lambda x, y: x + y, a, b)


Round = tuple[Learner, int, list[tuple[Metrics, Tensor] | None]]
"""The sum of the learners of parts after a round of local steps, the number of these parts, and for each step the sums
of the metrics over the examples, and the number of examples."""


def add_rounds(a: Round | None, b: Round | None) -> Round | None:
    """The sum of the rounds of two parts; integers are those of the first."""
    if a is None or b is None:
        return b if a is None else a
    learner = tree.map(lambda x, y: x + y if _is_float(x) else x, a[0], b[0])
    return learner, a[1] + b[1], [add(x, y) for x, y in zip(a[2], b[2], strict=True)]


def in_process(parts: Parts, f: PartFunction, combine: Combine) -> Callable[..., Any]:
    """A function from arguments to the results of `f(part, *arguments)` for all parts, combined in order here."""

    def combined(*arguments: Any) -> Any:
        return functools.reduce(combine, [f(i, *arguments) for i in range(parts.count)])

    return combined


def divided(task: Task, total: Callable[..., Any]) -> Task:
    """The task with steps whose gradients are means over all parts.

    Args:
        task: of a job, whose step was made by `gradient_step`.
        total: from a model, a step and a key to the sum of the results of all parts, such as
            `in_process(parts, parts.sums, add)`.

    Raises:
        ArgumentError: if the step was not made by `gradient_step`.
    """
    step = _gradient_step_of(task)

    def value_and_grad(model: Any, number: int, key: Tensor) -> tuple[tuple[Tensor, Metrics], Any]:
        (loss, metrics, weight), gradients = total(model, number, key)
        mean: tuple[tuple[Tensor, Metrics], Any] = _divide(((loss, metrics), gradients), weight)
        return mean

    by_parts = gradient_step(step.objective, step.optimizer, step.clip, value_and_grad)
    return replace(task, step=by_parts, batches=itertools.count, compiled=False)


def averaged(task: Task, total: Callable[..., Any], count: int) -> Task:
    """The task with rounds of `count` steps on each part alone, each followed by the mean of the learners of all parts.

    Step i computes the whole round if it is the first of one; the others change nothing.  So a run may stop within a
    round.  A round ends with its period, before the metrics of the period are computed.

    Args:
        task: of a job, whose step was made by `gradient_step`.
        total: from a learner, the number of the first step and the number of steps to the sum of the rounds of all
            parts, such as `in_process(parts, parts.states, add_rounds)`.
        count: the number of steps between two means.

    Raises:
        ArgumentError: if the step was not made by `gradient_step`, or training does not end with a round.
    """
    _gradient_step_of(task)
    if (rest := task.steps % task.period % count) != 0:
        raise ArgumentError(
            f"train: {task.steps} steps end {rest} steps into a round of {count} local steps; train "
            f"{task.steps - rest} or {task.steps - rest + count} steps, or choose other --local-steps"
        )

    def step(learner: Learner, number: int, key: Tensor) -> tuple[Learner, Metrics]:
        in_period = number % task.period
        if in_period % count:
            return learner, {}
        steps = min(count, task.period - in_period)
        state, parts, sums = total(learner, number, steps)
        mean = tree.map(lambda x: (x / parts).astype(x.dtype) if _is_float(x) else x, state)
        metrics = [_divide(*pair) for pair in sums]
        return mean, functools.reduce(add, metrics)

    return replace(task, step=step, batches=itertools.count, compiled=False)


def _gradient_step_of(task: Task) -> GradientStep:
    if not isinstance(task.step, GradientStep):
        raise ArgumentError(
            "train: the batches of this job cannot be divided; leave out --parts and --cluster"
        )
    return task.step


def _is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.kind == "float"


@tk.jit
def _divide(values: Any, weight: Tensor) -> Any:
    return tree.map(lambda x: (x / weight).astype(x.dtype), values)


class _Source:
    """The batches of a run, and the compiled function of a part, in this process."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.RLock()
        self._batches: Iterator[Any] = iter(())
        self._step = -2  # of the last batch
        self._batch: Any = None
        self._round: tuple[tuple[int, int], list[Any]] = (
            (-1, -1),
            [],
        )  # the last one: its first step, their number
        self.key = task.key
        self.sums = tk.jit(self._sums)
        self.step = tk.jit(self._step_of_part)

    def batch(self, step: int) -> Any:
        """The batch of a step; steps in sequence take it from one iterator."""
        with self._lock:
            if step != self._step:
                if step != self._step + 1:
                    self._batches = self._task.batches(step)
                self._step, self._batch = step, next(self._batches)
            return self._batch

    def round(self, first: int, count: int) -> list[Any]:
        """The batches of a round of steps, which are kept for other parts."""
        with self._lock:
            if self._round[0] != (first, count):
                self._round = (first, count), [self.batch(step) for step in range(first, first + count)]
            return self._round[1]

    def _step_of_part(self, learner: Learner, batch: Any, key: Tensor) -> tuple[Learner, Metrics, Tensor]:
        step, weight = self._task.step, self._weight(batch)
        learner, metrics = step(learner, batch, key)
        factor = tk.asarray(weight).astype(metrics[LOSS].dtype)
        return learner, tree.map(lambda x: x * factor, metrics), factor

    def _weight(self, batch: Any) -> Any:
        """The number of examples of a batch."""
        weight_of = self._task.weight
        return row_count("train", batch) if weight_of is None else weight_of(batch)

    def _sums(self, model: Any, batch: Any, key: Tensor) -> Any:
        step, weight = self._task.step, self._weight(batch)
        assert isinstance(step, GradientStep)

        def objective(model: Any) -> tuple[Tensor, Any]:
            loss, metrics = step.objective(model, batch, key)
            factor = tk.asarray(weight).astype(loss.dtype)
            return loss * factor, (tree.map(lambda x: x * factor, metrics), factor)

        (loss, (metrics, factor)), gradients = tk.value_and_grad(objective, has_aux=True)(model)
        return (loss, metrics, factor), gradients


@functools.lru_cache(maxsize=MAX_SOURCES)
def _source(job: str, settings: Any, backend: str, device: str | None) -> _Source:
    return _Source(JOBS[job].prepare(settings))
