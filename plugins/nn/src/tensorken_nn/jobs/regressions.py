"""The jobs `linear` and `nonlinear`: fit a function to noisy samples, one sample a step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_nn import experiments, run_directory
from tensorken_nn.experiments import Data, Experiment, Result
from tensorken_nn.module import size
from tensorken_nn.options import count, option, seed
from tensorken_nn.plots import try_draw
from tensorken_nn.training import LOSS, Learner, Summary, Task

PICTURE = "fit.png"

Lines: TypeAlias = Callable[[Any], Summary]
Draw: TypeAlias = Callable[[Data, Result, Path], None]


@dataclass(frozen=True, slots=True)
class Linear:
    """The settings of the job `linear`."""

    epochs: int = option(100, count, "the number of passes over all samples", may_change=True)
    samples: int = option(10_000, count, "the number of samples")
    seed: int = option(experiments.SEED, seed, "of the samples (default: the seed of the published numbers)")


@dataclass(frozen=True, slots=True)
class Nonlinear:
    """The settings of the job `nonlinear`."""

    epochs: int = option(100, count, "the number of passes over all samples", may_change=True)
    samples: int = option(1000, count, "the number of samples")
    seed: int = option(experiments.SEED, seed, "of the samples (default: the seed of the published numbers)")


def prepare_linear(settings: Linear) -> Task:
    """Make the task: samples of a linear function, and a linear layer."""
    data, slopes = experiments.linear_data(settings.samples, seed=settings.seed)

    def lines(model: Any) -> Summary:
        weights: list[float] = model[0].weight.tolist()[0]
        rows = [f"  {true:+.6f}   {learned:+.6f}" for true, learned in zip(slopes, weights, strict=True)]
        return Summary(["", "slopes: true and learned", *rows, ""], {"slopes": weights})

    task = _task("linear", experiments.linear_experiment(data), data, settings.epochs)
    return task(lines, experiments.draw_linear)


def prepare_nonlinear(settings: Nonlinear) -> Task:
    """Make the task: samples of a function with a jump, and a network of ten layers."""
    data = experiments.nonlinear_data(settings.samples, settings.seed)

    def lines(model: Any) -> Summary:
        fit = experiments.predict(model, [x for (x,) in data.inputs])
        error = sum((a - b) ** 2 for a, b in zip(fit, data.clean, strict=True)) / len(fit)
        return Summary([f"mean squared error against the true function: {error:.4f}"], {"clean_error": error})

    task = _task("nonlinear", experiments.nonlinear_experiment(data), data, settings.epochs)
    return task(lines, experiments.draw_nonlinear)


def _task(name: str, experiment: Experiment, data: Data, epochs: int) -> Callable[[Lines, Draw], Task]:
    """A function from a model's lines and plot to a task whose steps are epochs."""
    samples = (experiment.inputs, experiment.targets)
    epoch = experiments.epoch_step(experiment.optimizer)

    def step(learner: Learner, batch: Any, key: Tensor) -> tuple[Learner, Mapping[str, Tensor]]:
        learner, metrics = epoch(learner, batch, key)
        return learner, {LOSS: metrics["loss_total"]}

    def task(lines: Lines, draw: Draw) -> Task:
        def summarize(learner: Learner, directory: Path) -> Summary:
            summary = lines(learner.model)
            losses = tuple(
                [row[LOSS] for row in run_directory.read_records(directory / run_directory.METRICS)]
            )
            result = Result(learner.model, losses)
            try_draw(lambda file: draw(data, result, file), directory / PICTURE)
            return summary

        return Task(
            description=(
                f"{name}: {len(data.targets)} noisy samples; the variance of the noise is {experiments.NOISE**2:g}",
                f"model: {size(experiment.model)} parameters; an optimiser step after each sample",
            ),
            state=experiments.start(experiment),
            step=step,
            batches=lambda epoch: itertools.repeat(samples),
            steps=epochs,
            period=1,
            key=tk.random.key(0),
            monitor=LOSS,
            summarize=summarize,
        )

    return task
