"""Random programs: reproducible from a seed, of many kinds of steps; all ways to run them have equal results."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import core.tests.random_programs.program as program_module
import tensorken as tk
from core.tests.random_programs.comparing import differs, exceeds, perturbed, tolerance
from core.tests.random_programs.design import refused_by_rule
from core.tests.random_programs.draft import DTYPES, is_whole
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import WAYS, check_draft, disagreements
from core.tests.random_programs.numbers import is_python, kind
from core.tests.random_programs.program import Leaf, Program, Step
from core.tests.random_programs.steps import ROWS

SOME, MANY, TOGETHER = 15, 3000, 30
"""The numbers of programs of each language in a quick and a nightly run, and in one nightly test."""


def of_seeds(first: int, last: int, wide: bool) -> str:
    """For each seed whose program has a disagreement a small program that shows it."""
    found = [(seed, check_draft(drawn(seed, wide=wide), seed)) for seed in range(first, last)]
    return "\n\n".join(f"seed {seed}: {says}" for seed, says in found if says is not None)


@pytest.mark.parametrize("wide", [False, True])
def test_random_programs(wide: bool) -> None:
    assert not (wrong := of_seeds(0, SOME, wide)), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("first", range(SOME, MANY, TOGETHER))
def test_many_random_programs(first: int, wide: bool) -> None:
    assert not (wrong := of_seeds(first, first + TOGETHER, wide)), wrong


@pytest.mark.parametrize("wide", [False, True])
def test_a_seed_always_gives_the_same_program(wide: bool) -> None:
    first, again = ([drawn(seed, wide=wide).program.script() for seed in range(20)] for _ in range(2))
    assert first == again
    assert len({*first}) == 20


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "wide"), [(False, False), (True, False), (False, True)])
def test_each_kind_of_step_is_drawn_and_runs(whole: bool, wide: bool) -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 400
    for row in ROWS:
        if row.fits(False, whole, wide) and row.wide == wide:
            drafts = (
                drawn(seed, False, whole, lambda other, row=row: other.name in (row.name, "sum"), wide)
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


def test_wide_programs_have_every_dtype_and_every_python_number() -> None:
    leaves = [leaf.values for seed in range(60) for leaf in drawn(seed, wide=True).leaves]
    assert {type(x) for x in leaves if is_python(x)} == {bool, int, float, complex}
    arrays = [x for x in leaves if not is_python(x)]
    assert {x.dtype.name for x in arrays} == {*DTYPES} and len(DTYPES) == 15
    complex_ones = np.concatenate([x.reshape(-1) for x in arrays if kind(x) == "c"])
    assert np.isnan(complex_ones).any() and np.isinf(complex_ones).any()


@pytest.mark.parametrize("name", ["complex64", "bfloat16", "uint8"])
def test_a_difference_of_any_dtype_is_found(name: str) -> None:
    x = np.array([1, 2, 3]).astype(name) * np.array(1j if name == "complex64" else 1, name)
    assert not differs(x, x, True).any()
    for exact in (False, True):
        assert differs(x[::-1], x, exact).tolist() == [True, False, True]
    assert exceeds(x[::-1], x, tolerance(x, [x]))[[0, 2]].all()
    assert not differs(perturbed(x, random.Random(0)), x, False).any()  # by units in the last place


def test_a_number_that_becomes_strong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager evaluation multiplies uint8 by a Python number; the other way multiplies by an int32."""
    leaves = (Leaf("x0", np.array([200, 3], "uint8")), Leaf("x1", 2))
    program = Program(leaves, (Step("?", ("x2",), "x0 * x1", True),))
    assert not list(disagreements(program, 0, {"reference": WAYS["reference"]}))
    right = program_module.expression
    calls = Counter[str]()

    def other(text: str, names: tuple[str, ...]) -> Callable[..., Any]:
        calls["all"] += 1
        strong = calls["all"] > 1  # the first call is that of eager evaluation
        return lambda xp, x, n: right(text, names)(xp, x, xp.asarray(n, dtype="int32") if strong else n)

    monkeypatch.setattr(program_module, "expression", other)
    (found,) = disagreements(program, 0, {"reference": WAYS["reference"]})
    assert found.says == "expected uint8[2], got int32[2]"


def test_refusals_that_no_rule_intends_disagree() -> None:
    drafts = (draft for seed in range(300) if (draft := drawn(seed, wide=True)).refused)
    draft = next(draft for draft in drafts if all(refused_by_rule(error) for _, error in draft.refused))
    assert check_draft(draft, 0, {}) is None
    draft.refused.append((draft.steps[0], tk.errors.DTypeError("sum: not for these")))
    assert (check_draft(draft, 0, {}) or "").startswith(
        f"refused: {draft.steps[0].row}: DTypeError: sum: not"
    )


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
