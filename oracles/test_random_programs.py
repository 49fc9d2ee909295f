"""Random programs compared with JAX: 20 programs, and 4,000 in the nightly session."""

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

QUICK, NIGHTLY, PER_TEST = 10, 2000, 5
"""The numbers of programs of each language in a quick and a nightly run, and in one quick test."""


def disagreements_of(first: int, last: int, wide: bool) -> str:
    """A reduced program for each seed whose program disagrees with JAX; empty if none does."""
    failures = [(seed, check_draft(drawn(seed, wide=wide), seed, WAYS_OF_JAX)) for seed in range(first, last)]
    return "\n\n".join(f"seed {seed}: {text}" for seed, text in failures if text is not None)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", range(0, QUICK, PER_TEST))
def test_random_programs_agree_with_jax(first: int, wide: bool) -> None:
    assert not (failures := disagreements_of(first, first + PER_TEST, wide)), failures


@pytest.mark.nightly
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", range(QUICK, NIGHTLY, PER_TEST * 4))
def test_many_random_programs_agree_with_jax(first: int, wide: bool) -> None:
    assert not (failures := disagreements_of(first, first + PER_TEST * 4, wide)), failures


@pytest.mark.parametrize(
    ("text", "text_for_jax", "way"),
    [
        ("xp.sin(x0)", "xp.sin(x0) * (1 + 1e-4)", "JAX"),
        ("xp.sort(x0)", "xp.flip(xp.sort(x0))", "JAX"),
        ("x0 * x0", "xp.stop_gradient(x0) * x0", "derivatives"),
    ],
)
def test_a_difference_is_detected(
    text: str, text_for_jax: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step runs different expressions in Tensorken and in JAX."""
    ways = {way: WAYS_OF_JAX[way]}
    program = Program((Leaf("x0", np.array([0.5, -1.25, 3.0])),), (Step("?", ("x1",), text, False),), True)
    assert not list(disagreements(program, 0, ways))
    expression = program_module.expression

    def expression_by_library(text: str, names: tuple[str, ...]) -> Callable[..., Any]:
        return lambda xp, *xs: expression(text_for_jax if xp is NAMES else text, names)(xp, *xs)

    monkeypatch.setattr(program_module, "expression", expression_by_library)
    assert list(disagreements(program, 0, ways))


def test_jax_forward_mode_is_the_reference_for_custom_rules_in_loops() -> None:
    """With a rule that is not the true derivative, in a loop, JAX's modes differ from the second order on."""
    text = (
        "xp.fori_loop(1, 3, lambda i, v: with_jvp(xp, lambda x: xp.sin(x), lambda x: 2.0 * xp.cos(x))(v)"
        " / xp.asarray(1 + i).astype('float64'), x0)"
    )
    program = Program((Leaf("x0", np.array([1.0, 0.5])),), (Step("?", ("x1",), text, False),), smooth=True)
    modes = ["r", "ff", "rr"]
    leaves = {"x0": np.array([1.0, 0.5])}
    by_mode = judging.derivatives_of_jax(program, leaves, modes)([leaves["x0"]], [np.ones(2)])
    forward = judging.derivatives_of_jax(program, leaves, modes, forward=True)([leaves["x0"]], [np.ones(2)])
    assert abs(by_mode[2][0] - forward[2][0]).max() > 0.01
    for seed in range(4):
        assert not list(disagreements(program, seed, {"derivatives": WAYS_OF_JAX["derivatives"]}))


def test_intended_differences_have_reasons() -> None:
    assert all(rule.reason for rule in RULES_OF_JAX)
