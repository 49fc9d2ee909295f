"""The two experiments: compiled training agrees with training by vertices."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn.experiments as experiments
from tensorken_core.host.plugin import Capabilities
from tensorken_nn.experiments import (
    Data,
    Experiment,
    Result,
    draw_linear,
    draw_nonlinear,
    linear_data,
    linear_experiment,
    nonlinear_data,
    nonlinear_experiment,
    predict,
    progress,
    run,
    widest_float,
)
from tensorken_nn.vertex import (
    Adam,
    Linear,
    Matrix,
    MomentumSGD,
    Optimiser,
    Sequential,
    Vector,
    Vertex,
    relu,
    squared_error,
)
from tensorken_numpy.backend import Numpy

SAMPLES, EPOCHS = 20, 2


def linear_network() -> tuple[Sequential, Optimiser]:
    model = Sequential([Linear(5, 1, bias=False)])
    return model, MomentumSGD(model.parameters, nu=0.01, momentum=0.9)


def deep_network() -> tuple[Sequential, Optimiser]:
    sizes = [1, *[10] * 9, 1]
    seeds = [*range(1, 10), 5]
    layers = [
        Linear(i, o, activation=relu if o > 1 else None, seed=seed)
        for i, o, seed in zip(sizes[:-1], sizes[1:], seeds, strict=True)
    ]
    model = Sequential(layers)
    return model, Adam(model.parameters, nu=0.001, beta_1=0.9, beta_2=0.999)


def by_vertices(model: Sequential, optimiser: Optimiser, data: Data) -> list[float]:
    """Train with an optimiser step after each sample; returns the loss of each epoch."""
    X, y, losses = Matrix(data.inputs), Vector(data.targets), []
    for _ in range(EPOCHS):
        total = 0.0
        for x, target in zip(X, y, strict=True):
            loss = squared_error(model(x)[0], target) / len(X)
            total += loss.value
            loss.backward()
            optimiser.step()
            loss.zero_grad()
        losses.append(total)
    return losses


def numbers(parameters: Any) -> list[float]:
    """The numbers in nested vertices or tensors, in the order of layers, weights before biases."""
    if isinstance(parameters, Vertex):
        return [parameters.value]
    if isinstance(parameters, tk.Tensor):
        return parameters.ravel().tolist()  # type: ignore[no-any-return]
    parts: Iterable[Any] = parameters.values() if isinstance(parameters, dict) else parameters
    return [x for part in parts for x in numbers(part)]


EXPERIMENTS = {
    "linear": (linear_network, linear_experiment, lambda: linear_data(SAMPLES)[0]),
    "nonlinear": (deep_network, nonlinear_experiment, lambda: nonlinear_data(SAMPLES)),
}


@pytest.mark.feature(153, 158, 159, 160)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_compiled_training_agrees_with_vertices(name: str) -> None:
    network, experiment, data = EXPERIMENTS[name]
    model, optimiser = network()
    start = numbers(model.parameters)
    losses = by_vertices(model, optimiser, data())
    with tk.use_backend("numpy"):
        setup = experiment(data())
        assert numbers(tk.tree.leaves(setup.model)) == start
        result = run(setup, EPOCHS)
    assert result.losses == pytest.approx(losses, rel=1e-12)
    learned = numbers(model.parameters)
    assert numbers(tk.tree.leaves(result.model)) == pytest.approx(learned, rel=1e-12, abs=1e-12)
    assert max(abs(a - b) for a, b in zip(start, learned, strict=True)) > 0.01


@pytest.mark.feature(3, 159)
def test_the_same_experiment_runs_on_the_reference_backend() -> None:
    results = []
    for backend in ("numpy", "reference"):
        with tk.use_backend(backend):
            results.append(run(linear_experiment(linear_data(SAMPLES)[0]), EPOCHS))
    assert results[1].losses == pytest.approx(results[0].losses, rel=1e-13)
    assert results[1].model[0].weight.backend == "reference"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_in_float32_the_numbers_agree_to_six_digits(name: str) -> None:
    _, experiment, data = EXPERIMENTS[name]
    with tk.use_backend("numpy"):
        wide, narrow = run(experiment(data()), EPOCHS), run(experiment(data(), tk.float32), EPOCHS)
    assert {x.dtype for x in tk.tree.leaves(narrow.model)} == {tk.float32}
    assert narrow.losses == pytest.approx(wide.losses, rel=1e-6) and narrow.losses != wide.losses
    assert numbers(tk.tree.leaves(narrow.model)) == pytest.approx(
        numbers(tk.tree.leaves(wide.model)), abs=1e-6
    )


def test_without_float64_float32_is_used() -> None:
    class Small(Numpy):
        capabilities = Capabilities(dtypes=("bool", "int32", "float32"))

    with tk.use_backend(Small()):
        assert widest_float() is tk.float32
        result = run(linear_experiment(linear_data(SAMPLES)[0]), EPOCHS)
        assert result.model[0].weight.dtype is tk.float32


@pytest.mark.feature(159, 160)
def test_the_data_follow_their_functions() -> None:
    data, slopes = linear_data(100)
    for x, clean in zip(data.inputs, data.clean, strict=True):
        assert clean == pytest.approx(sum(a * b for a, b in zip(x, slopes, strict=True)), rel=1e-13)
    for samples in (data, nonlinear_data(100)):
        noise = [y - clean for y, clean in zip(samples.targets, samples.clean, strict=True)]
        assert 0.0 < max(map(abs, noise)) < 0.5 and abs(sum(noise)) / 100 < 0.03
        assert all(-1.0 <= x <= 1.0 for row in samples.inputs for x in row)
    assert linear_data(100) == (data, slopes)


@pytest.mark.feature(161)
def test_progress_is_reported_after_every_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    with tk.use_backend("numpy"):
        result = run(
            linear_experiment(linear_data(SAMPLES)[0]), 3, lambda i, loss: print(progress(i, 3, loss))
        )
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r"\d+ / 3 - loss_total=\d+\.\d+(e-\d+)?", line) for line in lines)
    assert lines == [f"{i} / 3 - loss_total={loss!r}" for i, loss in enumerate(result.losses, start=1)]


# ---- plots --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[Callable[..., None], Data, Result]]:
    linear, deep = linear_data(SAMPLES)[0], nonlinear_data(SAMPLES)

    def result(experiment: Experiment) -> Result:
        return run(experiment, EPOCHS)

    with tk.use_backend("numpy"):
        return {
            "linear": (draw_linear, linear, result(linear_experiment(linear))),
            "nonlinear": (draw_nonlinear, deep, result(nonlinear_experiment(deep))),
        }


@pytest.mark.feature(159, 160)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_plots_show_function_data_and_fit(
    name: str, results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    figures: list[Any] = []
    canvas = experiments.canvas

    def recorded(*size: float) -> Any:
        figures.append(canvas(*size))
        return figures[-1]

    monkeypatch.setattr(experiments, "canvas", recorded)
    draw, data, result = results[name]
    draw(data, result, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    left, right = figures[0].axes
    assert left.get_legend_handles_labels()[1] == ["data", "true function", "fit"]
    lines = {line.get_label(): line for line in left.lines}
    assert list(lines["data"].get_ydata()) == data.targets
    if name == "nonlinear":
        points = list(lines["fit"].get_xdata())
        assert (points[0], points[-1]) == (-1.0, 1.0)
        assert list(lines["fit"].get_ydata()) == predict(result.model, points)
    assert list(right.lines[0].get_ydata()) == list(result.losses)


def test_without_matplotlib_there_is_no_plot(
    results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    draw, data, result = results["linear"]
    with pytest.raises(ImportError):
        draw(data, result, tmp_path / "picture.png")
