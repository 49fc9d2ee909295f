"""A backend that lacks an op: that is said once, and what cannot be examined for it is blocked."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.tests import fake_backends
from tensorken_conformance.expectations import Expectation
from tensorken_conformance.law import LAWS
from tensorken_conformance.pytest_laws import Examination
from tensorken_conformance.report.model import make
from tensorken_conformance.running.loading import load
from tensorken_conformance.running.options import Options
from tensorken_conformance.running.plan import Plan
from tensorken_conformance.running.run import run
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy


class WithoutMul(Numpy):
    """Has no mul, and says nothing of it."""

    mul = RawTensor.mul


class RefusesMul(Numpy):
    """Has a method for mul, which refuses it."""

    def mul(self, a: Any, b: Any) -> Any:
        raise NotImplementedError("mul: not yet")


PLACE = "conformance.tests.test_missing_ops"


@pytest.mark.parametrize(
    ("backend", "in_process"), [("WithoutMul", True), ("RefusesMul", True), ("RefusesMul", False)]
)
def test_one_missing_op_fails_one_law(backend: str, in_process: bool) -> None:
    report = make(run(Options(f"{PLACE}:{backend}", depth="smoke", in_process=in_process)))
    assert {result.case.law for result in report.failures} == {"declarations.levels"}
    assert {result.case.op for result in report.failures} == {"mul"}
    assert sum(report.blocked.values()) == report.counts.failed - len(report.failures) > 40
    assert set(report.blocked) == {"declarations.levels/mul/int32", "declarations.levels/mul/float32"}
    laws = {result.case.law for result in report.results if result.says.startswith("blocked by ")}
    assert {"lifetime.calls", "derivatives.consistency", "programs.meaning"} <= laws
    assert report.header.level == 0


def test_so_it_is_in_pytest() -> None:
    subject = load(f"{PLACE}:WithoutMul", None, 0, "smoke")
    law = Plan(subject, ["derivatives.consistency"]).laws[0]
    case = next(case for case in law.cases(subject) if case.op == "mul")
    none: list[Expectation] = []
    examination = Examination(subject, none)
    assert examination.examine(law, case).says.startswith("blocked by declarations.levels/mul/")


def test_what_fails_beside_it_is_no_part_of_that() -> None:
    subject = load(f"{fake_backends.PLACE}:Wrong")
    law = LAWS["values.read-back"]
    [case] = [case for case in law.cases(subject) if case.id == "values.read-back/full/float32/one"]
    subject.call_counter.missing.add("mul")
    none: list[Expectation] = []
    assert not Examination(subject, none).examine(law, case).says.startswith("blocked")
