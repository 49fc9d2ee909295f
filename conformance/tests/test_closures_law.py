"""programs.closures: correct backends pass, and the law detects each fault aimed at it."""

from __future__ import annotations

import pytest

from conformance.tests.examining import run_law
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
def test_correct_backends_pass(backend: type[Numpy]) -> None:
    results = run_law(backend(), LAW, seed=3)
    assert [result.says for result in results if result.status != "passed"] == []
    assert {(result.case.op, result.case.detail) for result in results} == {
        (way, form) for way in WAYS for form in FORMS
    }


@each_of("name", [name for name, fault in FAULTS.items() if fault.law == LAW])
def test_the_law_detects_each_fault(name: str) -> None:
    with subject_of(FAULTS[name], seed=1) as subject:
        assert any(examine(subject, LAWS[LAW], case).status == "failed" for case in LAWS[LAW].cases(subject))
