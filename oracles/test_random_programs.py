"""Random programs against JAX: 20 programs, and 2,000 in the session `nightly`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import core.tests.random_programs.program as program_module
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import check_draft, disagreements
from core.tests.random_programs.program import Leaf, Program, Step
from oracles.programs import judging
from oracles.programs.design import RULES_OF_JAX
from oracles.programs.judging import WAYS_OF_JAX
from oracles.programs.names import NAMES

SOME, MANY, TOGETHER = 20, 2000, 5


def of_seeds(first: int, last: int) -> str:
    """For each seed whose program disagrees with JAX a small program that shows the disagreement."""
    found = [(seed, check_draft(drawn(seed), seed, WAYS_OF_JAX)) for seed in range(first, last)]
    return "\n\n".join(f"seed {seed}: {says}" for seed, says in found if says is not None)


@pytest.mark.parametrize("first", range(0, SOME, TOGETHER))
def test_random_programs(first: int) -> None:
    assert not (wrong := of_seeds(first, first + TOGETHER)), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(SOME, MANY, TOGETHER * 4))
def test_many_random_programs(first: int) -> None:
    assert not (wrong := of_seeds(first, first + TOGETHER * 4)), wrong


@pytest.mark.parametrize(
    ("text", "wrong", "way"),
    [
        ("xp.sin(x0)", "xp.sin(x0) * (1 + 1e-4)", "JAX"),
        ("xp.sort(x0)", "xp.flip(xp.sort(x0))", "JAX"),
        ("x0 * x0", "xp.stop_gradient(x0) * x0", "derivatives"),
    ],
)
def test_a_difference_is_found(text: str, wrong: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that runs one expression in Tensorken and another one in JAX."""
    ways = {way: WAYS_OF_JAX[way]}
    program = Program((Leaf("x0", np.array([0.5, -1.25, 3.0])),), (Step("?", ("x1",), text, False),), True)
    assert not list(disagreements(program, 0, ways))
    right = program_module.expression

    def other(text: str, names: tuple[str, ...]) -> Callable[..., Any]:
        return lambda xp, *xs: right(wrong if xp is NAMES else text, names)(xp, *xs)

    monkeypatch.setattr(program_module, "expression", other)
    assert list(disagreements(program, 0, ways))


def test_jax_forward_mode_is_the_reference_for_custom_rules_in_loops() -> None:
    """With a rule that is not the derivative, in a loop, JAX's two modes differ from the second order on."""
    text = (
        "xp.fori_loop(1, 3, lambda i, v: with_jvp(xp, lambda x: xp.sin(x), lambda x: 2.0 * xp.cos(x))(v)"
        " / xp.asarray(1 + i).astype('float64'), x0)"
    )
    program = Program((Leaf("x0", np.array([1.0, 0.5])),), (Step("?", ("x1",), text, False),), smooth=True)
    modes = ["r", "ff", "rr"]
    leaves = {"x0": np.array([1.0, 0.5])}
    by_mode = judging.orders_of_jax(program, leaves, modes)([leaves["x0"]], [np.ones(2)])
    forward = judging.orders_of_jax(program, leaves, modes, forward=True)([leaves["x0"]], [np.ones(2)])
    assert abs(by_mode[2][0] - forward[2][0]).max() > 0.01
    for seed in range(4):
        assert not list(disagreements(program, seed, {"derivatives": WAYS_OF_JAX["derivatives"]}))


def test_intended_differences_have_reasons() -> None:
    assert all(rule.reason for rule in RULES_OF_JAX)
