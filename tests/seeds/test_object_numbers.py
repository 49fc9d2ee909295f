"""The numbers of the article on automatic differentiation by objects: small graphs, and its two experiments."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tensorken as tk
from tensorken_nn.experiments import (
    jump,
    linear_data,
    linear_experiment,
    nonlinear_data,
    nonlinear_experiment,
    predict,
    run,
)
from tensorken_nn.vertex import Linear, Vertex, add, mult


@pytest.mark.feature(148)
def test_products(seeds: dict[str, Any]) -> None:
    for case in seeds["s004_mult"]["cases"]:
        vertices = [Vertex(x) for x in case["args"]]
        mult(*vertices).backward()
        assert [v.grad for v in vertices] == case["grad"]


@pytest.mark.feature(148)
def test_an_argument_may_be_repeated() -> None:
    x = Vertex(3.0)
    mult(x, x).backward()
    assert x.grad == 6.0
    x.zero_grad()
    add(x, x, x).backward()
    assert x.grad == 3.0


@pytest.mark.feature(144, 145)
def test_paths_that_meet_again() -> None:
    x = Vertex(4.0)
    ((x * 2.0) + (x * 3.0)).backward()
    assert x.grad == 5.0
    x = Vertex(3.0)
    ((x * x) * (x * x)).backward()
    assert x.grad == 108.0


@pytest.mark.feature(154, 155, 159)
def test_the_linear_experiment_begins_with_its_numbers(seeds: dict[str, Any]) -> None:
    numbers = seeds["s004_linear"]
    data, slopes = linear_data()
    assert slopes == numbers["true"]
    (weights,) = Linear(5, 1, bias=False).parameters["W"]
    with tk.use_backend("reference"):
        model = linear_experiment(data).model
        assert [v.value for v in weights] == model[0].weight.tolist()[0] == numbers["W0"]


@pytest.mark.nightly  # half a minute: a million steps
@pytest.mark.feature(158, 159)
def test_the_linear_experiment_learns_what_the_article_prints(seeds: dict[str, Any]) -> None:
    numbers = seeds["s004_linear"]
    with tk.use_backend("numpy"):
        result = run(linear_experiment(linear_data()[0]))
    learned = result.model[0].weight.tolist()[0]
    assert learned == pytest.approx(numbers["learned"], rel=0.0, abs=1e-12)
    assert learned == pytest.approx(numbers["true"], abs=5e-3)
    assert learned == pytest.approx(numbers["ols"], abs=5e-3)
    assert len(result.losses) == 100 and result.losses[-1] == pytest.approx(0.01, rel=0.05)


@pytest.mark.nightly  # half a minute: a hundred thousand steps of ten layers
@pytest.mark.feature(158, 160)
def test_the_deep_network_finds_the_function_with_a_jump(seeds: dict[str, Any]) -> None:
    """The loss jumps up now and then, so two epochs are looked at, not only the last one."""
    numbers, data = seeds["s004_nonlinear"], nonlinear_data()
    with tk.use_backend("numpy"):
        result = run(nonlinear_experiment(data))
        places = [-1.0 + i / 200 for i in range(401)]
        at_places = predict(result.model, places)
        at_samples = predict(result.model, [x for (x,) in data.inputs])
    losses, bounds = result.losses, numbers["bounds"]
    assert len(losses) == 100
    for epoch, tolerance in (("1", 1e-12), ("10", 1e-9)):  # rounding grows from epoch to epoch
        assert losses[int(epoch) - 1] == pytest.approx(numbers["loss_of_epoch"][epoch], rel=tolerance)
    assert losses[-1] <= bounds["last_loss"] and min(losses) <= bounds["least_loss"]
    assert mean_square(at_samples, data.clean) <= bounds["mse_at_samples"]
    assert math.sqrt(mean_square(at_places, list(map(jump, places)))) <= bounds["rmse_at_401_places"]


@pytest.mark.feature(155, 160)
def test_from_small_weights_the_deep_network_learns_nothing(seeds: dict[str, Any]) -> None:
    """It says the same of all inputs, to which this loss belongs; from He's weights it learns at once."""
    least, data = seeds["s004_nonlinear"]["loss_from_small_weights"], nonlinear_data()
    with tk.use_backend("numpy"):
        small, he = (run(nonlinear_experiment(data, variance=v), 2).losses for v in (0.1, 2.0))
    assert min(small) >= least > 2 * he[-1]


def mean_square(found: list[float], wanted: list[float]) -> float:
    return math.fsum((a - b) ** 2 for a, b in zip(found, wanted, strict=True)) / len(wanted)
