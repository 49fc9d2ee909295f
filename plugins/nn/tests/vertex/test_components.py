"""Components of networks of vertices, initialisers, optimisers."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_nn.vertex import (
    SGD,
    Adam,
    Component,
    He,
    Linear,
    Matrix,
    MomentumSGD,
    Normal,
    Optimiser,
    Sequential,
    Vector,
    Vertex,
    Xavier,
    Zeros,
    relu,
    tanh,
)

Numbers = list[float]


def values(x: Any) -> Any:
    return x.value if isinstance(x, Vertex) else [values(part) for part in x]


# ---- components ------------------------------------------------------------------------------------------------


@pytest.mark.feature(153, 156)
def test_parameters_are_nested_by_name() -> None:
    first, second = Linear(2, 3, bias=False), Linear(3, 1)
    model = Sequential([Sequential([first]), second])
    assert list(model.parameters) == ["0", "1"]
    assert model.parameters["0"]["0"]["W"] is first.parameters["W"]
    assert model.parameters["1"]["b"] is second.parameters["b"]
    assert [list(p) for p in (first.parameters, second.parameters)] == [["W"], ["W", "b"]]


@pytest.mark.feature(154)
def test_a_linear_layer() -> None:
    layer = Linear(3, 2, activation=relu, seed=7)
    W, b = layer.parameters["W"], layer.parameters["b"]
    assert isinstance(W, Matrix) and W.shape == (2, 3) and values(b) == [0.0, 0.0]
    b[0].value = 10.0
    b[1].value = -10.0
    x = [1.0, 2.0, 3.0]
    expected = [
        max(0.0, math.fsum(w * a for w, a in zip(row, x, strict=True)) + c.value)
        for row, c in zip(values(W), b, strict=True)
    ]
    assert values(layer(Vector(x))) == pytest.approx(expected, rel=1e-14) and expected[1] == 0.0 < expected[0]
    with pytest.raises(ShapeError, match="Linear: need a Vector of size 3, got one of size 2"):
        layer(Vector(1.0, 2.0))
    with pytest.raises(ArgumentError, match="Linear: need a Vector, got list"):
        layer(x)  # type: ignore[arg-type]


@pytest.mark.feature(154)
def test_only_the_seed_determines_the_weights() -> None:
    random.seed(1)
    before = random.getstate()
    assert values(Linear(2, 2, seed=5).parameters["W"]) == values(Linear(2, 2, seed=5).parameters["W"])
    assert values(Linear(2, 2, seed=5).parameters["W"]) != values(Linear(2, 2, seed=6).parameters["W"])
    assert random.getstate() == before


@pytest.mark.feature(156)
def test_a_sequence_applies_its_layers_in_order() -> None:
    layers = [Linear(2, 3, activation=tanh, seed=1), Linear(3, 1, seed=2)]
    x = Vector(0.5, -0.25)
    assert values(Sequential(layers)(x)) == values(layers[1](layers[0](x)))
    assert Sequential([])(x) is x
    with pytest.raises(ArgumentError, match="Sequential: layer 1 is of type Elementwise, need a Component"):
        Sequential([layers[0], relu])  # type: ignore[list-item]


@pytest.mark.feature(153)
def test_a_custom_component() -> None:
    class Scale(Component):
        def __init__(self) -> None:
            super().__init__()
            self._parameters["factor"] = Vertex(2.0)

        def forward(self, x: Vector) -> Vector:
            return x * self.parameters["factor"]

    model = Sequential([Scale(), Scale()])
    y = model(Vector(3.0))[0]
    y.backward()
    assert y.value == 12.0
    assert [p["factor"].grad for p in model.parameters.values()] == [6.0, 6.0]
    with pytest.raises(TypeError, match="abstract"):
        Component()  # type: ignore[abstract]


# ---- initialisers ----------------------------------------------------------------------------------------------


@pytest.mark.feature(155)
@pytest.mark.parametrize(
    ("initialiser", "deviation"),
    [(He(), math.sqrt(2 / 50)), (Xavier(), math.sqrt(2 / 150)), (Normal(0.3), 0.3), (Zeros(), 0.0)],
    ids=repr,
)
def test_initialisers_have_their_standard_deviation(initialiser: Any, deviation: float) -> None:
    weights = initialiser(100, 50, random.Random(0))
    assert weights.shape == (100, 50) and len({id(v) for row in weights for v in row}) == 5000
    numbers = [x for row in values(weights) for x in row]
    assert statistics.pstdev(numbers) == pytest.approx(deviation, rel=0.03)
    assert statistics.fmean(numbers) == pytest.approx(0.0, abs=4 * deviation / math.sqrt(5000))


# ---- optimisers ------------------------------------------------------------------------------------------------


def plain_sgd(start: Numbers, gradients: list[Numbers]) -> Numbers:
    return [w - math.fsum(0.1 * g[i] for g in gradients) for i, w in enumerate(start)]


def plain_momentum(start: Numbers, gradients: list[Numbers]) -> Numbers:
    w, v = list(start), [0.0] * len(start)
    for gradient in gradients:
        for i, g in enumerate(gradient):
            v[i] = 0.8 * v[i] + g
            w[i] -= 0.1 * v[i]
    return w


def plain_adam(start: Numbers, gradients: list[Numbers]) -> Numbers:
    """Algorithm 1 of Kingma and Ba (2015), line by line."""
    w, m, v = list(start), [0.0] * len(start), [0.0] * len(start)
    for t, gradient in enumerate(gradients, start=1):
        for i, g in enumerate(gradient):
            m[i] = 0.8 * m[i] + (1 - 0.8) * g
            v[i] = 0.95 * v[i] + (1 - 0.95) * g**2
            w[i] -= 0.1 * (m[i] / (1 - 0.8**t)) / (math.sqrt(v[i] / (1 - 0.95**t)) + 1e-6)
    return w


OPTIMISERS: dict[str, tuple[Callable[[Any], Optimiser], Callable[[Numbers, list[Numbers]], Numbers]]] = {
    "SGD": (lambda p: SGD(p, nu=0.1), plain_sgd),
    "MomentumSGD": (lambda p: MomentumSGD(p, nu=0.1, momentum=0.8), plain_momentum),
    "Adam": (lambda p: Adam(p, nu=0.1, beta_1=0.8, beta_2=0.95, epsilon=1e-6), plain_adam),
}


def gradients_of(count: int) -> list[Numbers]:
    """A hundred gradients, of very different sizes, one always zero."""
    rng = random.Random(5)
    scales = [1.0, 1e-3, 1e3, 0.0, 1e-9, 1.0][:count]
    return [[rng.gauss(0.3, 1.0) * scale for scale in scales] for _ in range(100)]


@pytest.mark.feature(157)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_agree_with_the_published_algorithms(name: str) -> None:
    make, plain = OPTIMISERS[name]
    start = [1.0, -2.0, 3.0, 0.5, 0.25, -1.0]
    vertices = [Vertex(x) for x in start]
    a, b, c, d, e, f = vertices
    optimiser = make({"0": {"W": Matrix([[a, b], [c, d]]), "b": Vector(e)}, "1": [f, {"again": a}]})
    gradients = gradients_of(6)
    for gradient in gradients:
        for vertex, g in zip(vertices, gradient, strict=True):
            vertex.grad = g
        optimiser.step()
    assert [v.value for v in vertices] == pytest.approx(plain(start, gradients), rel=1e-12)
    assert [v.grad for v in vertices] == gradients[-1]
    assert d.value == 0.5  # its gradient was always 0


@pytest.mark.feature(157)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_update_tensors(name: str, backend: str) -> None:
    make, plain = OPTIMISERS[name]
    start, gradients = [1.0, -2.0, 3.0], gradients_of(3)
    w = Vertex(tk.tensor(start, "float64"))
    optimiser = make([w])
    for gradient in gradients:
        w.grad = tk.tensor(gradient, "float64")
        optimiser.step()
    assert w.value.tolist() == pytest.approx(plain(start, gradients), rel=1e-12)


@pytest.mark.parametrize("optimiser", [SGD, MomentumSGD, Adam])
def test_invalid_parameters_are_named_by_their_path(optimiser: type[Optimiser]) -> None:
    with pytest.raises(ArgumentError, match=r"parameters\['0'\]\['W'\]\[1\] is of type float, need a Vertex"):
        optimiser({"0": {"W": [Vertex(1.0), 2.0]}}, 0.1)


def test_a_step_before_backward_changes_nothing() -> None:
    w = Vertex(1.0)
    for optimiser in (SGD([w], 0.1), MomentumSGD([w], 0.1), Adam([w], 0.1)):
        optimiser.step()
    assert w.value == 1.0
