"""The seeded faults: enough of every kind, aimed at every law, narrow, and found by the law that they are aimed at."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, entering faults and laws is what it does
from tensorken_conformance import faults
from tensorken_conformance.faults import changes
from tensorken_conformance.faults.fault import FAULTS, Fault, fault
from tensorken_conformance.law import LAWS
from tensorken_conformance.selftest import proof, trials
from tensorken_core.language.op import OPS
from tensorken_numpy.backend import Numpy

FAMILIES = {
    *("accuracy", "specials", "promotion", "broadcasting", "strides", "reductions", "thresholds", "aliasing"),
    *("staleness", "failing", "chance", "rules", "programs", "hosting", "symbols", "printing", "ties"),
    *("layouts", "views", "overlapping", "extents", "recompiling", "signs", "closures", "loops", "compilers"),
    *("convolutions", "lowering", "exchanging"),
}

DEADLY = {
    "failing/exits-silently",
    "failing/dies-of-signal",
    "failing/never-ends",
    "failing/leaves-by-exception",
}
"""Those that only a process of its own survives; test_selftest.py has them."""

TOLD: list[str] = []


@pytest.mark.feature(203)
def test_there_are_faults_of_every_family_and_few_are_crude() -> None:
    families = Counter(fault.family for fault in FAULTS.values())
    assert set(families) == FAMILIES
    assert min(families.values()) >= 3
    assert len(FAULTS) >= 60
    assert sum(fault.crude for fault in FAULTS.values()) <= 15


def test_every_law_that_can_fail_has_a_fault_and_every_fault_a_law() -> None:
    aimed = {fault.law for fault in FAULTS.values()}
    assert aimed <= set(LAWS)
    assert {law.id for law in LAWS.values() if law.group not in proof.WITHOUT_VERDICT} <= aimed


def test_a_fault_says_in_a_sentence_what_is_wrong() -> None:
    sentences = [fault.says for fault in FAULTS.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(says.endswith(".") and says[:-1].count(". ") == 0 for says in sentences)


def test_a_fault_in_values_names_ops_of_the_table() -> None:
    for one in FAULTS.values():
        if one.law.startswith("values.") and one.law not in ("values.read-back", "values.signs"):
            assert one.ops, one.id
            assert set(one.ops) <= set(OPS), one.id


def test_a_room_that_nobody_imports_is_imported() -> None:
    rooms = {path.stem for path in Path(faults.__file__).parent.glob("*.py")} - {
        "__init__",
        "fault",
        "changes",
    }
    assert rooms == {one.family for one in FAULTS.values()}


@pytest.mark.feature(203)
@pytest.mark.parametrize("id", sorted(set(FAULTS) - DEADLY)[::5])
def test_a_fault_is_found_by_the_law_that_it_is_aimed_at(id: str) -> None:
    one = FAULTS[id]
    found = trials.try_fault(one, 3, TOLD.append, proof.finders().get(id, ""))
    assert found.law == one.law, found
    assert found.says


NARROW = (
    "strides/crop-forgets-offset",
    "specials/maximum-passes-over-nan",
    "thresholds/place-within-block",
    "reductions/sum-of-nothing-is-one",
    "accuracy/one-number-of-half",
)


@pytest.mark.parametrize(
    "id", [NARROW[0], *[pytest.param(id, marks=pytest.mark.nightly) for id in NARROW[1:]]]
)
def test_a_fault_that_is_not_crude_is_wrong_in_at_most_one_of_a_hundred_cells(id: str) -> None:
    wrong, total = trials.share_of_wrong_cells(FAULTS[id])
    assert total > 100
    assert 0 < wrong <= proof.NARROW * total


def test_a_crude_fault_is_wrong_in_more_than_that() -> None:
    wrong, total = trials.share_of_wrong_cells(FAULTS["strides/flip-first-axis-only"])
    assert wrong > proof.NARROW * total


def test_what_another_law_finds_is_a_miss() -> None:
    wrong = FAULTS["strides/flip-first-axis-only"]
    astray = Fault("family", "name", "values.read-back", wrong.ops, True, "It is aimed astray.", wrong.make)
    assert trials.try_fault(astray, 0, TOLD.append).law not in ("", astray.law)


def test_what_nobody_finds_is_told_by_an_empty_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "ELSEWHERE", 0.0)
    right = Fault("family", "name", "values.movement", ("flip",), False, "It is right.", Numpy)
    assert trials.try_fault(right, 0, TOLD.append) == trials.Finding("", "")


def test_changed_rules_are_put_back_also_after_an_error() -> None:
    op = OPS["sin"]
    before = op.jvp, op.vjp, dict(op.tape_needs)
    with pytest.raises(ZeroDivisionError), changes.rules("sin", vjp=(None,)):
        _ = 1 // len([rule for rule in op.vjp if rule is not None])
    assert (op.jvp, op.vjp, dict(op.tape_needs)) == before


@pytest.mark.parametrize("id", sorted(one.id for one in FAULTS.values() if one.family == "rules"))
def test_the_language_is_whole_again_after_a_fault_in_its_rules(id: str) -> None:
    before = {op.name: (op.jvp, op.vjp, op.jvp_all, op.vjp_all, op.shape) for op in OPS.values()}
    with trials.subject_of(FAULTS[id], 0):
        pass
    assert {op.name: (op.jvp, op.vjp, op.jvp_all, op.vjp_all, op.shape) for op in OPS.values()} == before


def test_a_fault_without_a_sentence_or_with_the_name_of_another_is_refused() -> None:
    with pytest.raises(ValueError, match="says nothing"):
        fault("values.movement")(type("Silent", (Numpy,), {"__module__": "x.strides"}))
    with pytest.raises(ValueError, match="two faults strides/flip-first-axis-only"):
        fault("values.movement")(
            type("FlipFirstAxisOnly", (Numpy,), {"__module__": "x.strides", "__doc__": "Another."})
        )
