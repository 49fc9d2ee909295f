"""Divided batches: the gradient of a batch as the sum of those of its parts, computed here or in other processes.

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
from tensorken_nn.training import GradientStep, Metrics, Task, gradient_step

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
        batch = source.batch(step)
        rows = row_count("train", batch)
        first, last = (i * rows // self.count for i in (number, number + 1))
        if first == last:
            return None
        part = tree.map(lambda x: x[first:last], batch)
        result: tuple[tuple[Tensor, Metrics, Tensor], Any] = source.sums(
            model, part, tk.random.fold_in(key, number)
        )
        return result

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


def in_process(parts: Parts) -> Callable[..., Any]:
    """A function from a model, a step and a key to the sum of the results of all parts, computed here."""

    def total(model: Any, step: int, key: Tensor) -> Any:
        return functools.reduce(add, [parts.sums(i, model, step, key) for i in range(parts.count)])

    return total


def divided(task: Task, total: Callable[..., Any]) -> Task:
    """The task with steps whose gradients are means over all parts.

    Args:
        task: of a job, whose step was made by `gradient_step`.
        total: from a model, a step and a key to the sum of the results of all parts, such as `in_process(parts)`.

    Raises:
        ArgumentError: if the step was not made by `gradient_step`.
    """
    step = task.step
    if not isinstance(step, GradientStep):
        raise ArgumentError(
            "train: the batches of this job cannot be divided; leave out --parts and --cluster"
        )

    def value_and_grad(model: Any, number: int, key: Tensor) -> tuple[tuple[Tensor, Metrics], Any]:
        (loss, metrics, weight), gradients = total(model, number, key)
        mean: tuple[tuple[Tensor, Metrics], Any] = _divide((loss, metrics), gradients, weight)
        return mean

    by_parts = gradient_step(step.objective, step.optimizer, step.clip, value_and_grad)
    return replace(task, step=by_parts, batches=itertools.count, compiled=False)


@tk.jit
def _divide(values: Any, gradients: Any, weight: Tensor) -> Any:
    return tree.map(lambda x: (x / weight).astype(x.dtype), (values, gradients))


class _Source:
    """The batches of a run, and the compiled function of a part, in this process."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._batches: Iterator[Any] = iter(())
        self._step = -2  # of the last batch
        self._batch: Any = None
        self.sums = tk.jit(self._sums)

    def batch(self, step: int) -> Any:
        """The batch of a step; steps in sequence take it from one iterator."""
        with self._lock:
            if step != self._step:
                if step != self._step + 1:
                    self._batches = self._task.batches(step)
                self._step, self._batch = step, next(self._batches)
            return self._batch

    def _sums(self, model: Any, batch: Any, key: Tensor) -> Any:
        step, weight_of = self._task.step, self._task.weight
        assert isinstance(step, GradientStep)
        weight = row_count("train", batch) if weight_of is None else weight_of(batch)

        def objective(model: Any) -> tuple[Tensor, Any]:
            loss, metrics = step.objective(model, batch, key)
            factor = tk.asarray(weight).astype(loss.dtype)
            return loss * factor, (tree.map(lambda x: x * factor, metrics), factor)

        (loss, (metrics, factor)), gradients = tk.value_and_grad(objective, has_aux=True)(model)
        return (loss, metrics, factor), gradients


@functools.lru_cache(maxsize=MAX_SOURCES)
def _source(job: str, settings: Any, backend: str, device: str | None) -> _Source:
    return _Source(JOBS[job].prepare(settings))
