"""A backend that lacks an op fails one law, and blocks the cases that need the op."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.tests import fake_backends
from tensorken_conformance.backends.loading import load
from tensorken_conformance.expectations import Expectation
from tensorken_conformance.law import LAWS
from tensorken_conformance.pytest_laws import Examination
from tensorken_conformance.report.model import make
from tensorken_conformance.running.options import Options
from tensorken_conformance.running.plan import Plan
from tensorken_conformance.running.run import run
from tensorken_core.language.raw import RawTensor
from tensorken_numpy.backend import Numpy


class WithoutMul(Numpy):
    """Lacks mul, and does not declare that."""

    mul = RawTensor.mul


class RefusesMul(Numpy):
    """Raises NotImplementedError in mul."""

    def mul(self, a: Any, b: Any) -> Any:
        raise NotImplementedError("mul: not yet")


MODULE = "conformance.tests.test_missing_ops"


@pytest.mark.parametrize(
    ("backend", "in_process"), [("WithoutMul", True), ("RefusesMul", True), ("RefusesMul", False)]
)
def test_a_missing_op_fails_one_law_and_blocks_others(backend: str, in_process: bool) -> None:
    report = make(run(Options(f"{MODULE}:{backend}", depth="smoke", in_process=in_process, budget=0.0)))
    assert {result.case.law for result in report.failures} == {"declarations.levels"}
    assert {result.case.op for result in report.failures} == {"mul"}
    assert sum(report.blocked.values()) == report.counts.failed - len(report.failures) > 40
    assert set(report.blocked) == {"declarations.levels/mul/int32", "declarations.levels/mul/float32"}
    laws = {result.case.law for result in report.results if result.says.startswith("blocked by ")}
    assert {"lifetime.calls", "derivatives.consistency", "programs.meaning"} <= laws
    assert report.header.level == 0


def test_a_missing_op_blocks_tests_of_the_pytest_plugin() -> None:
    subject = load(f"{MODULE}:WithoutMul", None, 0, "smoke")
    law = Plan(subject, ["derivatives.consistency"]).laws[0]
    case = next(case for case in law.cases(subject) if case.op == "mul")
    expectations: list[Expectation] = []
    examination = Examination(subject, expectations)
    assert examination.examine(law, case).says.startswith("blocked by declarations.levels/mul/")


def test_failures_without_a_missing_op_are_not_blocked() -> None:
    subject = load(f"{fake_backends.MODULE}:FillsWithZeros")
    law = LAWS["values.read-back"]
    [case] = [case for case in law.cases(subject) if case.id == "values.read-back/full/float32/one"]
    subject.call_counter.missing.add("mul")
    expectations: list[Expectation] = []
    assert not Examination(subject, expectations).examine(law, case).says.startswith("blocked")
