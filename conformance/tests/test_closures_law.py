"""programs.closures: right backends pass, and each fault of closures is found by it."""

from __future__ import annotations

import pytest

from conformance.tests.examining import results
from core.tests.each import each_of
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS
from tensorken_conformance.laws.closures import FORMS, WAYS
from tensorken_conformance.running.examine import examine
from tensorken_conformance.selftest.trials import subject_of
from tensorken_numpy.backend import Numpy
from tensorken_reference.backend import Reference

LAW = "programs.closures"


@pytest.mark.parametrize("backend", [Numpy, Reference])
def test_right_backends_pass(backend: type[Numpy]) -> None:
    outcomes = results(backend(), LAW, seed=3)
    assert [result.says for result in outcomes if result.status != "passed"] == []
    assert {(one.case.op, one.case.detail) for one in outcomes} == {
        (way, form) for way in WAYS for form in FORMS
    }


@each_of("name", [name for name, fault in FAULTS.items() if fault.law == LAW])
def test_each_fault_is_found(name: str) -> None:
    with subject_of(FAULTS[name], seed=1) as subject:
        assert any(examine(subject, LAWS[LAW], case).status == "failed" for case in LAWS[LAW].cases(subject))
