"""The seeded faults: there are some of every family and for every law, most are narrow, and their laws detect them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, importing them registers faults and laws
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
    *("convolutions", "lowering", "exchanging", "globals", "collectives", "effects"),
    *("complex", "transforms", "products", "circumstances"),
}

DEADLY = {
    "failing/exits-silently",
    "failing/dies-of-signal",
    "failing/never-ends",
    "failing/leaves-by-exception",
}
"""The faults that end or hang a process; test_selftest.py runs them in worker processes."""


OF_FUNCTIONS = (
    "values.read-back",
    "values.signs",
    "values.spectra",
    "values.complex",
    "values.complex-edges",
)
"""The laws on values that are about functions of several ops, or about none."""


def ignore(case: str) -> None:
    """Discard the id of a case."""


@pytest.mark.feature(203)
def test_there_are_faults_of_every_family_and_few_are_crude() -> None:
    families = Counter(fault.family for fault in FAULTS.values())
    assert set(families) == FAMILIES
    assert min(families.values()) >= 3
    assert len(FAULTS) >= 60
    assert sum(fault.crude for fault in FAULTS.values()) <= 15


def test_every_law_with_a_verdict_has_a_fault_and_every_fault_a_law() -> None:
    laws = {fault.law for fault in FAULTS.values()}
    assert laws <= set(LAWS)
    assert {law.id for law in LAWS.values() if law.group not in proof.WITHOUT_VERDICT} <= laws


def test_each_fault_is_described_by_one_distinct_sentence() -> None:
    sentences = [fault.says for fault in FAULTS.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") and ". " not in sentence[:-1] for sentence in sentences)


def test_faults_of_values_name_ops() -> None:
    for one in FAULTS.values():
        if one.law.startswith("values.") and one.law not in OF_FUNCTIONS:
            assert one.ops, one.id
            assert set(one.ops) <= set(OPS), one.id


def test_all_modules_of_faults_are_imported() -> None:
    modules = {path.stem for path in Path(faults.__file__).parent.glob("*.py")} - {
        "__init__",
        "fault",
        "changes",
    }
    assert modules == {one.family for one in FAULTS.values()}


@pytest.mark.nightly
@pytest.mark.feature(203)
@pytest.mark.parametrize("id", sorted(set(FAULTS) - DEADLY)[::5])
def test_the_law_of_a_fault_detects_it(id: str) -> None:
    one = FAULTS[id]
    finding = trials.try_fault(one, 3, ignore, proof.finders().get(id, ""))
    assert finding.law == one.law, finding
    assert finding.says


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
def test_a_narrow_fault_fails_at_most_one_of_a_hundred_cases(id: str) -> None:
    wrong, total = trials.share_of_wrong_cells(FAULTS[id])
    assert total > 100
    assert 0 < wrong <= proof.NARROW * total


def test_a_crude_fault_fails_more_than_one_of_a_hundred_cases() -> None:
    wrong, total = trials.share_of_wrong_cells(FAULTS["strides/flip-first-axis-only"])
    assert wrong > proof.NARROW * total


def test_a_finding_names_another_law_that_detects_a_fault() -> None:
    flip = FAULTS["strides/flip-first-axis-only"]
    misaimed = Fault("family", "name", "values.read-back", flip.ops, True, "It names another law.", flip.make)
    assert trials.try_fault(misaimed, 0, ignore).law not in ("", misaimed.law)


def test_the_finding_of_an_undetected_fault_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "ELSEWHERE", 0.0)
    correct = Fault("family", "name", "values.movement", ("flip",), False, "It is correct.", Numpy)
    assert trials.try_fault(correct, 0, ignore) == trials.Finding("", "")


def test_changed_rules_are_restored_after_an_error() -> None:
    op = OPS["sin"]
    before = op.jvp, op.vjp, dict(op.tape_needs)
    with pytest.raises(ZeroDivisionError), changes.rules("sin", vjp=(None,)):
        _ = 1 // len([rule for rule in op.vjp if rule is not None])
    assert (op.jvp, op.vjp, dict(op.tape_needs)) == before


@pytest.mark.parametrize("id", sorted(one.id for one in FAULTS.values() if one.family == "rules"))
def test_the_rules_of_ops_are_restored_after_a_fault(id: str) -> None:
    before = {op.name: (op.jvp, op.vjp, op.jvp_all, op.vjp_all, op.shape) for op in OPS.values()}
    with trials.subject_of(FAULTS[id], 0):
        pass
    assert {op.name: (op.jvp, op.vjp, op.jvp_all, op.vjp_all, op.shape) for op in OPS.values()} == before


def test_faults_without_a_docstring_or_with_a_taken_name_are_rejected() -> None:
    with pytest.raises(ValueError, match="says nothing"):
        fault("values.movement")(type("Silent", (Numpy,), {"__module__": "x.strides"}))
    with pytest.raises(ValueError, match="two faults strides/flip-first-axis-only"):
        fault("values.movement")(
            type("FlipFirstAxisOnly", (Numpy,), {"__module__": "x.strides", "__doc__": "Another."})
        )
