"""Two experiments that train sample by sample: a linear layer on a linear function, a deep network on one with a jump.

Data and initial parameters are drawn with Python's `random`, so they are the same on every backend. An epoch is one
compiled function: a scan over the samples with an optimiser step after each.

In float32, the parameters of the linear layer after a million steps are within 2e-5 of those in float64. The losses of
the deep network agree to 1e-5 for ten epochs; after that, rounding makes them diverge, with an equally good fit.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import tensorken as tk
from tensorken import DType, Tensor
from tensorken_core import tree
from tensorken_core.errors import DTypeError
from tensorken_nn.initializers import Initializer
from tensorken_nn.layers import Linear, Sequential
from tensorken_nn.optimizers import Adam, MomentumSGD, Optimizer
from tensorken_nn.plots import BLUE, GREEN, YELLOW, canvas
from tensorken_nn.training import Learner, Metrics, Step, gradient_step

SEED = 42
NOISE = 0.1
"""The standard deviation of the noise added to the targets."""

WIDTH, HIDDEN = 10, 9
"""The width and the number of the hidden layers of the deep network."""


# ---- data ------------------------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Samples of a function: inputs, exact values, and the targets, which are the values with noise."""

    inputs: list[list[float]]
    clean: list[float]
    targets: list[float]


def linear_data(samples: int = 10_000, inputs: int = 5, seed: int = SEED) -> tuple[Data, list[float]]:
    """Samples of a linear function, and its slopes, which are normal with mean -1.

    >>> data, slopes = linear_data(3)
    >>> len(data.targets), len(data.inputs[0]), len(slopes)
    (3, 5, 5)
    """
    rng = random.Random(seed)
    rows = [[rng.uniform(-1, 1) for _ in range(inputs)] for _ in range(samples)]
    slopes = [rng.gauss(-1, 1) for _ in range(inputs)]
    return _noisy(rows, [_dot(row, slopes) for row in rows], rng), slopes


def nonlinear_data(samples: int = 1000, seed: int = SEED) -> Data:
    """Samples of `jump` at uniform points of [-1, 1].

    >>> data = nonlinear_data(3)
    >>> [jump(x) for (x,) in data.inputs] == data.clean
    True
    """
    rng = random.Random(seed)
    rows = [[rng.uniform(-1, 1)] for _ in range(samples)]
    return _noisy(rows, [jump(x) for (x,) in rows], rng)


def jump(x: float) -> float:
    """-3 * x**2 - 2 for negative x, else exp(1.5 * x) * sin(10 * x); it jumps by 2 at 0.

    >>> jump(-1.0), jump(0.0)
    (-5.0, 0.0)
    """
    return -3 * x**2 - 2 if x < 0 else math.exp(1.5 * x) * math.sin(10 * x)


def _noisy(rows: list[list[float]], clean: list[float], rng: random.Random) -> Data:
    return Data(rows, clean, [y + rng.gauss(0, NOISE) for y in clean])


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    """The dot product, added from left to right; since Python 3.12 `sum` rounds differently."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


# ---- models ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Experiment:
    """A model, its optimiser and its data, all on the backend that was in use."""

    model: Sequential
    optimizer: Optimizer
    inputs: Tensor  # (samples, features)
    targets: Tensor  # (samples,)


def linear_experiment(data: Data, dtype: DType | None = None) -> Experiment:
    """A linear layer without bias, trained by stochastic gradient descent with momentum.

    Args:
        data: made by `linear_data`.
        dtype: of all numbers; None for float64, or float32 if the backend lacks float64.
    """
    layer = Linear(len(data.inputs[0]), 1, bias=False, **_layer_options(SEED, dtype))
    return _experiment(Sequential(layer), MomentumSGD(0.01, 0.9), data)


def nonlinear_experiment(
    data: Data,
    dtype: DType | None = None,
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 5),
    variance: float = 2.0,
) -> Experiment:
    """Ten linear layers with relu between them, trained by Adam.

    Args:
        data: made by `nonlinear_data`.
        dtype: of all numbers; None for float64, or float32 if the backend lacks float64.
        seeds: of the weights, one for each layer.
        variance: of the weights times the number of inputs of the layer; with 2, layers with relu keep the scale of
            their inputs.
    """
    sizes = [1, *[WIDTH] * HIDDEN, 1]
    layers: list[Callable[..., Any]] = []
    for inputs, outputs, seed in zip(sizes[:-1], sizes[1:], seeds, strict=True):
        layers += [Linear(inputs, outputs, **_layer_options(seed, dtype, variance)), tk.relu]
    return _experiment(Sequential(*layers[:-1]), Adam(1e-3), data)


def _experiment(model: Sequential, optimizer: Optimizer, data: Data) -> Experiment:
    dtype = model[0].weight.dtype
    return Experiment(model, optimizer, tk.tensor(data.inputs, dtype), tk.tensor(data.targets, dtype))


def _layer_options(seed: int, dtype: DType | None, variance: float = 2.0) -> dict[str, Any]:
    """The keyword arguments of a layer of an experiment."""
    return {
        "key": tk.random.key(0),  # not used: the weight initialiser draws with Python's random
        "weight_initializer": python_normal(seed, variance),
        "dtype": widest_float() if dtype is None else dtype,
    }


def python_normal(seed: int, variance: float = 2.0) -> Initializer:
    """An initialiser that draws with Python's `random`: normal numbers of variance `variance` / inputs, row by row.

    >>> python_normal(42)(tk.random.key(0), (1, 2), tk.float64).tolist()
    [[-0.14409032957792836, -0.1729036003315193]]
    """

    def initializer(key: Tensor, shape: tuple[int, ...], dtype: Any = tk.float32) -> Tensor:
        rng, deviation = random.Random(seed), math.sqrt(variance / shape[1])
        return tk.new(shape, [rng.gauss(0, deviation) for _ in range(math.prod(shape))], dtype)

    return initializer


def widest_float() -> DType:
    """float64, or float32 if the backend in use lacks float64.

    >>> widest_float()
    tensorken.float64
    """
    try:
        return tk.zeros((), tk.float64).dtype
    except DTypeError:
        return tk.float32


# ---- training --------------------------------------------------------------------------------------------------


def start(experiment: Experiment) -> Learner:
    """The model and its optimiser state before the first epoch."""
    return Learner(
        experiment.model, experiment.optimizer.init(Layout.of(experiment.model).ravel(experiment.model))
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a model's parameters in one vector.

    >>> layout = Layout.of({"a": tk.zeros((2, 3)), "b": tk.zeros(2)})
    >>> layout.unravel(tk.arange(8.0))["b"].tolist()
    [6.0, 7.0]
    """

    structure: tree.Structure
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, model: Any) -> Layout:
        """The layout of a model."""
        leaves, structure = tree.flatten(model)
        return cls(structure, tuple([x.shape for x in leaves]))

    def ravel(self, model: Any) -> Tensor:
        """The parameters of a model as one vector."""
        return tk.concatenate([x.reshape(-1) for x in tree.leaves(model)])

    def unravel(self, vector: Tensor) -> Any:
        """The model with the parameters in the vector."""
        ends = list(itertools.accumulate(map(math.prod, self.shapes)))
        slices = zip([0, *ends], ends, self.shapes, strict=False)
        return tree.unflatten(self.structure, [vector[i:j].reshape(shape) for i, j, shape in slices])


def epoch_step(optimizer: Optimizer) -> Step:
    """A function that trains for one epoch, with an optimiser step after each sample.

    It takes a `Learner` made by `start`, a pair of inputs and targets, and a key, which it ignores. Its metric is
    `loss_total`: the mean over the samples of the squared error before the sample's own step.

    Within the epoch the parameters are one vector, as each array has a cost per step and the deep network has twenty
    small ones.
    """

    def epoch(learner: Learner, samples: tuple[Tensor, Tensor], key: Tensor) -> tuple[Learner, Metrics]:
        layout, count = Layout.of(learner.model), samples[1].size

        def objective(vector: Tensor, sample: tuple[Tensor, Tensor], key: Tensor) -> tuple[Tensor, Metrics]:
            x, target = sample
            return (layout.unravel(vector)(x)[0] - target) ** 2 / count, {}

        step = gradient_step(objective, optimizer)

        def of_sample(
            carry: tuple[Learner, Tensor], sample: tuple[Tensor, Tensor]
        ) -> tuple[tuple[Learner, Tensor], None]:
            flat, total = carry
            flat, metrics = step(flat, sample, key)
            return (flat, total + metrics["loss"]), None

        flat = Learner(layout.ravel(learner.model), learner.optimizer)
        zero = samples[1].constant([0.0], samples[1].dtype, ())
        (flat, total), _ = tk.scan(of_sample, (flat, zero), samples)
        return Learner(layout.unravel(flat.model), flat.optimizer), {"loss_total": total}

    return epoch


@dataclass(frozen=True, slots=True)
class Result:
    """The trained model and its losses."""

    model: Any
    losses: tuple[float, ...]  # `loss_total` of each epoch


def run(
    experiment: Experiment, epochs: int = 100, after_epoch: Callable[[int, float], object] = lambda *_: None
) -> Result:
    """Train an experiment.

    Args:
        experiment: the model, optimiser and data.
        epochs: the number of passes over the samples, which are taken in order.
        after_epoch: called after each epoch with its number, from 1, and its loss.

    >>> data, slopes = linear_data(200)
    >>> result = run(linear_experiment(data), 2, lambda i, loss: print(progress(i, 2, round(loss, 3))))
    1 / 2 - loss_total=5.788
    2 / 2 - loss_total=5.126
    """
    advance = tk.jit(epoch_step(experiment.optimizer))
    learner = start(experiment)
    samples, key, losses = (experiment.inputs, experiment.targets), tk.random.key(0), []
    for i in range(1, epochs + 1):
        learner, metrics = advance(learner, samples, key)
        losses.append(float(metrics["loss_total"]))
        after_epoch(i, losses[-1])
    return Result(learner.model, tuple(losses))


def progress(epoch: int, epochs: int, loss_total: float) -> str:
    """The line to print after an epoch.

    >>> progress(1, 100, 0.5)
    '1 / 100 - loss_total=0.5'
    """
    return f"{epoch} / {epochs} - {loss_total=}"


# ---- plots -----------------------------------------------------------------------------------------------------

DATA, TRUE, FIT = "0.7", YELLOW, GREEN


def draw_linear(data: Data, result: Result, file: Path) -> None:
    """Save a plot of the linear experiment: samples and fit against the exact values, and the loss.

    Raises:
        ImportError: without matplotlib.
    """
    figure, axes = _panels("a linear function of five inputs, learned by a linear layer", result)
    rows, weights = data.inputs, result.model[0].weight.tolist()[0]
    ends = min(data.clean), max(data.clean)
    axes.plot(data.clean, data.targets, ".", color=DATA, markersize=2, label="data")
    axes.plot(ends, ends, color=TRUE, linewidth=4, label="true function")
    axes.plot(data.clean, [_dot(row, weights) for row in rows], ".", color=FIT, markersize=2, label="fit")
    axes.set_xlabel("exact value")
    _save(figure, axes, file)


def draw_nonlinear(data: Data, result: Result, file: Path) -> None:
    """Save a plot of the nonlinear experiment: function, samples and fit on [-1, 1], and the loss.

    Raises:
        ImportError: without matplotlib.
    """
    figure, axes = _panels("a function with a jump, learned by a network of ten layers", result)
    axes.plot([x for (x,) in data.inputs], data.targets, ".", color=DATA, markersize=3, label="data")
    before, after = [-1 + i / 200 for i in range(200)] + [-1e-9], [i / 200 for i in range(201)]
    axes.plot(before, list(map(jump, before)), color=TRUE, linewidth=4, label="true function")
    axes.plot(after, list(map(jump, after)), color=TRUE, linewidth=4)
    axes.plot([*before, *after], predict(result.model, [*before, *after]), color=FIT, label="fit")
    axes.set_xlabel("x")
    _save(figure, axes, file)


def predict(model: Any, points: Sequence[float]) -> list[float]:
    """The values of a network of one input and one output at these points.

    >>> model = linear_experiment(linear_data(2, inputs=1)[0]).model
    >>> predict(model, [0.0, 1.0]) == [0.0, model[0].weight.item()]
    True
    """
    x = tk.tensor([[point] for point in points], tree.leaves(model)[0].dtype)
    values: list[float] = model(x).reshape(-1).tolist()
    return values


def _panels(title: str, result: Result) -> tuple[Any, Any]:
    """A figure with a panel of the loss and an empty panel."""
    from matplotlib.ticker import MaxNLocator

    figure = canvas(9, 3.6)
    figure.suptitle(title)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    right.plot(range(1, len(result.losses) + 1), result.losses, color=BLUE, label="loss of an epoch")
    right.axhline(NOISE**2, color="0.5", linestyle=":", label="variance of the noise")
    right.set_xlabel("epoch")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set_yscale("log")
    right.grid(color="0.9")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    return figure, left


def _save(figure: Any, axes: Any, file: Path) -> None:
    axes.set_ylabel("y")
    axes.legend(frameon=False, markerscale=4)
    figure.savefig(file, dpi=120)
