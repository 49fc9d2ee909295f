"""Random programs: reproducible from a seed, of many kinds of steps; all ways to run them have equal results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import core.tests.random_programs.program as program_module
from core.tests.random_programs.draft import is_whole
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import WAYS, check_draft, disagreements
from core.tests.random_programs.program import Leaf, Program, Step
from core.tests.random_programs.steps import ROWS

SOME, MANY, TOGETHER = 30, 3000, 30


def of_seeds(first: int, last: int) -> str:
    """For each seed whose program has a disagreement a small program that shows it."""
    found = [(seed, check_draft(drawn(seed), seed)) for seed in range(first, last)]
    return "\n\n".join(f"seed {seed}: {says}" for seed, says in found if says is not None)


def test_random_programs() -> None:
    assert not (wrong := of_seeds(0, SOME)), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(SOME, MANY, TOGETHER))
def test_many_random_programs(first: int) -> None:
    assert not (wrong := of_seeds(first, first + TOGETHER)), wrong


def test_a_seed_always_gives_the_same_program() -> None:
    assert [drawn(seed).program.script() for seed in range(30)] == [
        drawn(seed).program.script() for seed in range(30)
    ]
    assert len({drawn(seed).program.script() for seed in range(30)}) == 30


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_each_kind_of_step_is_drawn_and_runs(whole: bool) -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 300
    for row in ROWS:
        if row.fits(False, whole):
            drafts = (
                drawn(seed, False, whole, lambda other, row=row: other.name in (row.name, "sum"))
                for seed in range(8)
            )  # type: ignore[misc]
            draft = next(draft for draft in drafts if any(step.row == row.name for step in draft.steps))
            assert draft.error is None, (draft.steps[-1], draft.error)
            assert not whole or all(is_whole(x) for x in draft.found.values())


def test_programs_contain_difficult_values() -> None:
    """Six dtypes, sizes of 0, special values."""
    leaves = [leaf.values for seed in range(200) for leaf in drawn(seed).program.leaves]
    assert {str(x.dtype) for x in leaves} == {"bool", "int32", "int64", "float16", "float32", "float64"}
    floats = [x.astype("float64").reshape(-1) for x in leaves if x.dtype.kind == "f"]
    with np.errstate(all="ignore"):
        numbers = np.concatenate(floats)
    assert np.isnan(numbers).any() and np.isposinf(numbers).any() and np.isneginf(numbers).any()
    assert (np.signbit(numbers) & (numbers == 0)).any() and (numbers[numbers > 0] < 1e-300).any()
    integers = [x for x in leaves if x.dtype.kind == "i" and x.size]
    assert any((x == np.iinfo(x.dtype).min).any() for x in integers)
    assert any(x.size == 0 for x in leaves)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("text", "wrong", "way"),
    [
        ("xp.sum(x0)", "xp.sum(x0[:-1])", "reference"),
        ("xp.cumsum(x0)", "xp.cumsum(x0) * (1 - 1e-4)", "jit"),
        ("xp.max(x0)", "xp.min(x0)", "vmap"),
    ],
)
def test_a_difference_is_found(
    text: str, wrong: str, way: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that means one thing to eager evaluation, and another where it is run in some way."""
    leaf, step = Leaf("x0", np.array([1.0, -2.0, 3.0])), Step("?", ("x1",), text, False)
    program = Program((leaf,), (step,), whole=whole)
    assert not list(disagreements(program, 2, {way: WAYS[way]}))
    right = program_module.expression
    calls = Counter[str]()

    def other(text: str, names: tuple[str, ...]) -> Callable[..., Any]:
        calls["all"] += 1
        late = calls["all"] > {"vmap": 4, "jit": 1}.get(way, 1)  # the first call computes the reference
        return lambda xp, *xs: right(wrong if late else text, names)(xp, *xs)

    monkeypatch.setattr(program_module, "expression", other)
    assert list(disagreements(program, 2, {way: WAYS[way]}))
