"""Schedules, against other libraries' numbers and their definitions, for numbers and for tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

import tensorken as tk
import tensorken_nn as nn
from tensorken_core.errors import ArgumentError
from tensorken_nn.schedules import Rate, Schedule, rate_at

RECORDED = Path(__file__).parent / "recorded" / "training.json"
EXPECTED = json.loads(RECORDED.read_text(encoding="ascii"))
STEPS = range(1, 41)

SCHEDULES: dict[str, Rate] = {
    "linear": nn.linear(0.5, 0.1, 30),
    "cosine": nn.cosine(0.5, 0.1, 30),
    "warmup": nn.warmup(nn.cosine(0.2, 0.0, 20), 5),
    "staircase": nn.staircase(0.1, 0.5, 7),
    "join": nn.join([0.1, 0.05, 0.025], [4, 20]),
}


@pytest.mark.feature(157)
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_agree_with_other_libraries(name: str) -> None:
    rate = SCHEDULES[name]
    assert [rate(step) for step in STEPS] == pytest.approx(EXPECTED["schedules"][name], rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_tensor_step_gives_the_rate_of_its_number(backend: str, name: str) -> None:
    rate = SCHEDULES[name]
    exact = [rate(step) for step in STEPS]
    assert all(type(x) is float for x in exact)
    for dtype, bound in ((tk.float64, 1e-15), (tk.float32, 1e-7), (tk.int32, 1e-7)):
        rates = [rate(tk.tensor(step, dtype)) for step in STEPS]
        assert {x.dtype for x in rates} == {tk.float64 if dtype is tk.float64 else tk.float32}
        assert [x.item() for x in rates] == pytest.approx(exact, rel=bound, abs=bound)


def test_one_program_works_for_all_steps() -> None:
    traced = []

    def total(step: tk.Tensor) -> tk.Tensor:
        traced.append(step)
        return sum([rate(step) for rate in SCHEDULES.values()], start=step.zeros_like())

    compiled = tk.jit(total)
    totals = [compiled(tk.tensor(step, tk.float64)).item() for step in STEPS]
    assert totals == pytest.approx(
        [sum([rate(step) for rate in SCHEDULES.values()]) for step in STEPS], rel=1e-14
    )
    assert len(traced) == 1


def test_a_linear_schedule_is_linear() -> None:
    rate = nn.linear(0.5, 0.1, 4)
    assert [rate(step) for step in range(1, 8)] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1])


def test_staircases_are_exact_in_float32() -> None:
    """At no step does rounding of the quotient give another stair."""
    rate = nn.staircase(1.0, 0.5, 3)
    steps = [n for k in range(1, 40) for n in (3 * k, 3 * k + 1)]
    for step in steps:
        assert math.log2(rate(tk.tensor(step, tk.float32)).item()) == -((step - 1) // 3)


def test_each_joined_schedule_starts_at_its_step_1() -> None:
    """No schedule is evaluated before its step 1, where it may be undefined."""
    rate = nn.join([lambda step: 1 / step, 0.5, lambda step: 2 / step], [2, 3])
    assert [rate(step) for step in range(1, 7)] == [1.0, 0.5, 0.5, 2.0, 1.0, 2 / 3]


def test_warmup_rises_linearly_to_a_constant_rate() -> None:
    rate = nn.warmup(0.4, 3)
    assert [rate(step) for step in range(1, 6)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4])


@pytest.mark.parametrize("schedule", [0.25, tk.tensor(0.25)])
def test_a_number_is_a_schedule(schedule: Schedule) -> None:
    assert float(rate_at(schedule, 3)) == 0.25


def test_bad_arguments_are_refused() -> None:
    makes: list[Callable[[], object]] = [
        lambda: nn.linear(0.5, 0.1, 0),
        lambda: nn.cosine(0.5, 0.1, 0),
        lambda: nn.staircase(0.5, 0.1, 0),
        lambda: nn.warmup(0.5, 0),
    ]
    for make in makes:
        with pytest.raises(ArgumentError, match=r"^\w+: need at least one step, got 0$"):
            make()
    with pytest.raises(ArgumentError, match=r"staircase: the factor must be positive, got -1\.0"):
        nn.staircase(0.5, -1.0, 3)
    with pytest.raises(ArgumentError, match="join: 2 schedules have 1 boundaries between them, got 2"):
        nn.join([0.1, 0.2], [1, 2])
    with pytest.raises(ArgumentError, match=r"join: the boundaries must increase from 1, got \[3, 3\]"):
        nn.join([0.1, 0.2, 0.3], [3, 3])
    with pytest.raises(ArgumentError, match=r"join: the boundaries must increase from 1, got \[0\]"):
        nn.join([0.1, 0.2], [0])
