"""The jobs `linear` and `nonlinear`: a function is found again from noisy samples of it, one sample a step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import tensorken as tk
from tensorken import Tensor
from tensorken_nn import experiments, folder
from tensorken_nn.experiments import Data, Experiment, Result
from tensorken_nn.module import size
from tensorken_nn.options import count, option, seed
from tensorken_nn.pictures import attempt
from tensorken_nn.training import LOSS, Learner, Shown, Task

PICTURE = "fit.png"

Lines: TypeAlias = Callable[[Any], Shown]
Draw: TypeAlias = Callable[[Data, Result, Path], None]


@dataclass(frozen=True, slots=True)
class Linear:
    """What can be chosen of the job `linear`."""

    epochs: int = option(100, count, "how often all samples are seen", extends=True)
    samples: int = option(10_000, count, "how many there are")
    seed: int = option(experiments.SEED, seed, "for the samples (default: that of the published numbers)")


@dataclass(frozen=True, slots=True)
class Nonlinear:
    """What can be chosen of the job `nonlinear`."""

    epochs: int = option(100, count, "how often all samples are seen", extends=True)
    samples: int = option(1000, count, "how many there are")
    seed: int = option(experiments.SEED, seed, "for the samples (default: that of the published numbers)")


def prepare_linear(settings: Linear) -> Task:
    """Samples of a linear law, and a linear layer."""
    data, slopes = experiments.linear_data(settings.samples, seed=settings.seed)

    def lines(model: Any) -> Shown:
        weights: list[float] = model[0].weight.tolist()[0]
        rows = [f"  {true:+.6f}   {learned:+.6f}" for true, learned in zip(slopes, weights, strict=True)]
        return Shown(
            ["", "slopes: the true ones, and those that were learned", *rows, ""], {"slopes": weights}
        )

    task = _task("linear", experiments.linear_experiment(data), data, settings.epochs)
    return task(lines, experiments.draw_linear)


def prepare_nonlinear(settings: Nonlinear) -> Task:
    """Samples of a function with a jump, and a network of ten layers."""
    data = experiments.nonlinear_data(settings.samples, settings.seed)

    def lines(model: Any) -> Shown:
        fit = experiments.fitted(model, [x for (x,) in data.inputs])
        error = sum((a - b) ** 2 for a, b in zip(fit, data.clean, strict=True)) / len(fit)
        return Shown([f"mean squared error against the true function: {error:.4f}"], {"clean_error": error})

    task = _task("nonlinear", experiments.nonlinear_experiment(data), data, settings.epochs)
    return task(lines, experiments.draw_nonlinear)


def _task(name: str, experiment: Experiment, data: Data, epochs: int) -> Callable[[Lines, Draw], Task]:
    """A task of which a step is an epoch; what is missing are the lines and the picture of a model."""
    samples = (experiment.inputs, experiment.targets)
    epoch = experiments.epoch_step(experiment.optimizer)

    def step(learner: Learner, batch: Any, key: Tensor) -> tuple[Learner, Mapping[str, Tensor]]:
        learner, figures = epoch(learner, batch, key)
        return learner, {LOSS: figures["loss_total"]}

    def task(lines: Lines, draw: Draw) -> Task:
        def show(learner: Learner, place: Path) -> Shown:
            shown = lines(learner.model)
            losses = tuple([row[LOSS] for row in folder.read(place / folder.METRICS)])
            result = Result(learner.model, losses)
            problem = attempt(lambda file: draw(data, result, file), place / PICTURE)
            return shown._replace(lines=[*shown.lines, *problem])

        return Task(
            description=(
                f"{name}: {len(data.targets)} noisy samples; the noise has the variance {experiments.NOISE**2:g}",
                f"model: {size(experiment.model)} parameters; a step of the optimiser after each sample",
            ),
            state=experiments.start(experiment),
            step=step,
            batches=lambda epoch: itertools.repeat(samples),
            steps=epochs,
            period=1,
            key=tk.random.key(0),
            watched=LOSS,
            show=show,
        )

    return task
