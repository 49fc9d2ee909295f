"""Optimisers, against closed forms and against plain-Python versions of the published algorithms."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken import tree
from tensorken.errors import ArgumentError, StructureError

Numbers = list[float]


def parameter_tree(values: Numbers) -> dict[str, Any]:
    """Nested parameters of six numbers."""
    a, b, c, d, e, f = values
    return {
        "first": {"W": tk.tensor([[a, b], [c, d]], tk.float64), "b": tk.tensor([e], tk.float64)},
        "last": (tk.tensor(f, tk.float64),),
    }


def numbers(parameters: Any) -> Numbers:
    return [x for leaf in tree.leaves(parameters) for x in leaf.ravel().tolist()]


def trace(optimizer: nn.Optimizer, start: Numbers, gradients: list[Numbers]) -> list[Numbers]:
    """The parameters after every step."""
    parameters = parameter_tree(start)
    state = optimizer.init(parameters)
    found = []
    for gradient in gradients:
        parameters, state = optimizer.update(parameters, parameter_tree(gradient), state)
        found.append(numbers(parameters))
    return found


def plain_adam(
    rate: Callable[[int], float],
    start: Numbers,
    gradients: list[Numbers],
    b1: float,
    b2: float,
    epsilon: float,
) -> list[Numbers]:
    """Algorithm 1 of Kingma and Ba (2015), line by line, for each number by itself."""
    theta, m, v = list(start), [0.0] * len(start), [0.0] * len(start)
    found = []
    for t, gradient in enumerate(gradients, start=1):
        for i, g in enumerate(gradient):
            m[i] = b1 * m[i] + (1 - b1) * g
            v[i] = b2 * v[i] + (1 - b2) * g**2
            m_hat = m[i] / (1 - b1**t)
            v_hat = v[i] / (1 - b2**t)
            theta[i] = theta[i] - rate(t) * m_hat / (math.sqrt(v_hat) + epsilon)
        found.append(list(theta))
    return found


def draw(steps: int) -> tuple[Numbers, list[Numbers]]:
    """Parameters and gradients of very different sizes, one always zero."""
    rng = random.Random(5)
    scales = (1.0, 1e-3, 1e3, 1e-9, 0.0, 1.0)
    return [rng.gauss(0, 1) for _ in scales], [[rng.gauss(0.3, 1) * s for s in scales] for _ in range(steps)]


@pytest.mark.feature(157)
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_adam_is_the_published_algorithm(backend: str, betas: tuple[float, float]) -> None:
    start, gradients = draw(100)
    found = trace(nn.Adam(1e-2, *betas), start, gradients)
    expected = plain_adam(lambda step: 1e-2, start, gradients, *betas, 1e-8)
    worst = max(abs(a - b) for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True))
    assert worst < 1e-12
    assert found[-1][4] == start[4]  # its gradient was always 0


@pytest.mark.feature(157)
def test_a_learning_rate_may_change_from_step_to_step(backend: str) -> None:
    start, gradients = draw(20)
    rate = nn.linear(0.1, 0.0, 20)
    found = trace(nn.Adam(rate), start, gradients)
    expected = plain_adam(rate, start, gradients, 0.9, 0.999, 1e-8)
    assert found[-1] == pytest.approx(expected[-1], abs=1e-13)


@pytest.mark.feature(157)
def test_gradient_descent_on_a_parabola_has_a_closed_form(backend: str) -> None:
    """On x**2 / 2 each step multiplies x by 1 - rate."""
    optimizer, x = nn.SGD(0.1), tk.tensor(3.0, tk.float64)
    state = optimizer.init(x)
    for _ in range(50):
        x, state = optimizer.update(x, tk.grad(lambda x: x * x / 2)(x), state)
    assert x.item() == pytest.approx(3.0 * 0.9**50, rel=1e-13)
    assert state.step == 50


@pytest.mark.feature(157)
def test_momentum_adds_up_the_gradients(backend: str) -> None:
    """For a constant gradient g the velocity is g * (1 - m**n) / (1 - m)."""
    start, rate, momentum, steps = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.01, 0.9, 30
    gradient = [1.0, -1.0, 0.5, 0.0, 2.0, 1e-3]
    found = trace(nn.SGD(rate, momentum), start, [gradient] * steps)[-1]
    moved = sum(rate * (1 - momentum**n) / (1 - momentum) for n in range(1, steps + 1))
    assert found == pytest.approx([p - moved * g for p, g in zip(start, gradient, strict=True)], rel=1e-13)


def test_without_momentum_there_is_no_velocity_to_keep() -> None:
    assert tree.leaves(nn.SGD(0.1).init(parameter_tree([0.0] * 6)).velocity) == []


@pytest.mark.parametrize("optimizer", [nn.SGD(0.1), nn.SGD(0.1, 0.9), nn.Adam(0.1)], ids=repr)
def test_nothing_is_changed_in_place_and_the_dtype_stays(optimizer: nn.Optimizer) -> None:
    parameters = {"w": tk.tensor([1.0, 2.0])}
    gradients = {"w": tk.tensor([0.5, -0.5])}
    state = optimizer.init(parameters)
    first, after = optimizer.update(parameters, gradients, state)
    assert parameters["w"].tolist() == [1.0, 2.0]
    assert first["w"].dtype is tk.float32
    again, _ = optimizer.update(parameters, gradients, state)
    assert again["w"].tolist() == first["w"].tolist()
    assert after.step == 1 and state.step == 0


@pytest.mark.parametrize("optimizer", [nn.SGD(0.1), nn.SGD(0.1, 0.9), nn.Adam(0.1)], ids=repr)
def test_gradients_of_another_structure_are_refused(optimizer: nn.Optimizer) -> None:
    parameters = {"w": tk.zeros(2)}
    with pytest.raises(StructureError, match=r"\bv\b"):
        optimizer.update(parameters, {"v": tk.zeros(2)}, optimizer.init(parameters))


def test_a_linear_schedule_falls_in_equal_parts() -> None:
    rate = nn.linear(0.5, 0.1, 4)
    assert [rate(step) for step in range(1, 8)] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1])
    with pytest.raises(ArgumentError, match="linear: need at least one step, got 0"):
        nn.linear(0.5, 0.1, 0)
