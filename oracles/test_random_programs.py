"""Random programs, run in every way and compared with JAX: 20 of them, in the session `nightly` 2,000."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oracles.programs.program as program_module
from oracles.programs.design import RULES
from oracles.programs.drawing import drawn
from oracles.programs.judging import WAYS, examined, judged
from oracles.programs.names import NAMES
from oracles.programs.program import Leaf, Program, Step
from oracles.programs.steps import ROWS

SOME, MANY, TOGETHER = 20, 2000, 5


def of_seeds(first: int, last: int) -> str:
    """What is wrong with the programs of some seeds: of each a small program that shows it."""
    found = [(seed, examined(drawn(seed), seed)) for seed in range(first, last)]
    return "\n\n".join(f"seed {seed}: {says}" for seed, says in found if says is not None)


@pytest.mark.parametrize("first", range(0, SOME, TOGETHER))
def test_random_programs(first: int) -> None:
    assert not (wrong := of_seeds(first, first + TOGETHER)), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(SOME, MANY, TOGETHER * 4))
def test_many_random_programs(first: int) -> None:
    assert not (wrong := of_seeds(first, first + TOGETHER * 4)), wrong


def test_a_seed_always_gives_the_same_program() -> None:
    assert [drawn(seed).program.script() for seed in range(30)] == [
        drawn(seed).program.script() for seed in range(30)
    ]
    assert len({drawn(seed).program.script() for seed in range(30)}) == 30


def test_there_are_enough_kinds_of_steps() -> None:
    """Each is drawn, by itself, in programs that run."""
    assert len({row.name for row in ROWS}) == len(ROWS) >= 300
    drawn_kinds: Counter[str] = Counter()
    for seed in range(400):
        draft = drawn(seed)
        assert draft.error is None, (seed, draft.steps[-1], draft.error)
        drawn_kinds.update(step.row for step in draft.steps)
    assert not [row.name for row in ROWS if not drawn_kinds[row.name]]


def test_programs_have_what_is_hard() -> None:
    """Six dtypes, sizes of 0, special values, and views of each kind."""
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


@pytest.mark.parametrize(
    ("text", "wrong", "way"),
    [
        ("xp.sin(x0)", "xp.sin(x0) * (1 + 1e-4)", "JAX"),
        ("xp.sort(x0)", "xp.flip(xp.sort(x0))", "JAX"),
        ("x0 * x0", "xp.stop_gradient(x0) * x0", "derivatives"),
        ("xp.sum(x0)", "xp.sum(x0[:-1])", "reference"),
        ("xp.cumsum(x0)", "xp.cumsum(x0) * (1 - 1e-4)", "jit"),
        ("xp.max(x0)", "xp.min(x0)", "vmap"),
    ],
)
def test_what_differs_is_found(text: str, wrong: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that means one thing to eager evaluation, and another where it is run in some way."""
    program = Program((Leaf("x0", np.array([0.5, -1.25, 3.0])),), (Step("?", ("x1",), text, False),))
    assert not list(judged(program, 2, (way,)))
    right = program_module.expression
    calls = Counter[str]()

    def other(text: str, names: tuple[str, ...]) -> Callable[..., Any]:
        calls["all"] += 1
        late = calls["all"] > {"vmap": 3, "jit": 2}.get(way, 1)  # what comes first is what is compared with

        def run(xp: Any, *xs: Any) -> Any:
            return right(wrong if (xp is NAMES if way in ("JAX", "derivatives") else late) else text, names)(
                xp, *xs
            )

        return run

    monkeypatch.setattr(program_module, "expression", other)
    assert list(judged(program, 2, (way,)))


def test_rules_of_design_have_reasons() -> None:
    assert all(rule.reason and set(rule.ways) <= set(WAYS) for rule in RULES)
