"""Laws as tests: the parts of the pytest plugin that it imports on demand."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest

from tensorken_conformance.backends.loading import load
from tensorken_conformance.case import Case, Result
from tensorken_conformance.expectations import (
    Expectation,
    ExpectationError,
    apply,
    expectations_of,
    unexamined,
)
from tensorken_conformance.law import LAWS, Law
from tensorken_conformance.report.tables import chosen
from tensorken_conformance.running.plan import Plan, PlanError
from tensorken_conformance.running.worker import examined
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError

SHOWN = 3
"""The number of failures of a test that are shown; the others are counted."""

TO_CHOOSE = (
    "tensorken_conformance: name the backend to examine, by --tensorken-backend NAME or as tensorken_backend "
    "in the settings of pytest"
)


@dataclass(eq=False)
class Examination(Container[str]):
    """A backend that is examined in this process; as a container, the ids of its failed cases."""

    subject: Subject
    expectations: Sequence[Expectation]
    _statuses: dict[str, bool] = field(default_factory=dict)

    def examine(self, law: Law, case: Case) -> Result:
        """The result of a case; the cases that it needs are examined first, whichever tests are selected."""
        return examined(self.subject, law, case, self)

    def __contains__(self, id: object) -> bool:
        """Whether the case with this id failed; it is examined if it was not."""
        return not self._holds(str(id))

    def _holds(self, id: str) -> bool:
        if id not in self._statuses:
            self._statuses[id] = True  # a case may need itself
            law = LAWS.get(id.partition("/")[0])
            known = {case.id: case for case in law.cases(self.subject)} if law else {}
            if law and id in known:
                self._statuses[id] = self.examine(law, known[id]).status not in ("failed", "crashed")
        return self._statuses[id]


@dataclass(frozen=True, eq=False)
class LawTest:
    """All cases of a law about one op, as one test."""

    law: Law
    cases: Sequence[Case]
    examination: Examination

    @property
    def id(self) -> str:
        """Such as `values.elementwise/exp`."""
        return f"{self.law.id}/{self.cases[0].op}"

    def __repr__(self) -> str:
        return f"LawTest({self.id})"

    def check(self) -> None:
        """Pass, fail or xfail by the results of the cases; skip if all are declared unsupported."""
        __tracebackhide__ = True
        found = [self.examination.examine(self.law, case) for case in self.cases]
        results, problems = apply(self.examination.expectations, found, complete=False)
        bad = [result for result in results if result.status in ("failed", "crashed")]
        if bad or problems:
            pytest.fail("\n".join([*_failure_lines(self.law, bad), *problems]), pytrace=False)
        expected = [result for result in results if result.status == "expected failure"]
        if expected:
            pytest.xfail(f"{len(expected)} of {len(results)} cases: {expected[0].says}")
        if all(result.status == "unsupported" for result in results):
            pytest.skip(f"declared unsupported: {results[0].says}")


def law_tests(config: pytest.Config, name: str) -> list[LawTest]:
    """The tests of a backend that the options select.

    Raises:
        pytest.UsageError: if there is no backend, it or a law is unknown, or there are no cases.
    """
    if not name:
        raise pytest.UsageError(TO_CHOOSE)
    chosen_laws = tuple(config.getoption("tensorken_select"))
    return _tests(name, config.getoption("tensorken_seed"), config.getoption("tensorken_depth"), chosen_laws)


def remarks(config: pytest.Config, name: str) -> list[str]:
    """The expected failures that match none of the selected cases."""
    if not config.getoption("tensorken_select") and config.getoption("tensorken_depth") != "smoke":
        return []
    try:
        tests = law_tests(config, name)
    except pytest.UsageError:
        return []
    found = unexamined(tests[0].examination.expectations, _ids(tests))
    return [f"tensorken: {remark}" for remark in found]


@cache
def _tests(name: str, seed: int, depth: str, select: tuple[str, ...]) -> list[LawTest]:
    try:
        subject = load(name, None, seed, depth)  # type: ignore[arg-type]
        plan = Plan(subject, select)
        examination = Examination(subject, expectations_of(subject.backend))
    except (BackendError, PlanError, ExpectationError) as error:
        raise pytest.UsageError(str(error)) from error
    if not subject.capabilities.dtypes:
        raise pytest.UsageError(
            f"backend {name!r} declares no dtypes, so nothing can be examined; see Capabilities"
        )
    tests = []
    for law in plan.laws:
        by_op: dict[str, list[Case]] = {}
        for case in plan.cases(law):
            by_op.setdefault(case.op, []).append(case)
        tests += [LawTest(law, cases, examination) for cases in by_op.values()]
    if not tests:
        raise pytest.UsageError(f"backend {name!r}: there are no cases for it")
    ids = _ids(tests)
    for expectation in examination.expectations if not select and depth != "smoke" else ():
        if not any(map(expectation.matches, ids)):
            raise pytest.UsageError(f"{expectation.place}: {expectation.id} matches no case")
    return tests


def _ids(tests: Sequence[LawTest]) -> list[str]:
    return [case.id for test in tests for case in test.cases]


def _failure_lines(law: Law, bad: Sequence[Result]) -> list[str]:
    if not bad:
        return []
    lines = [f"{law.id}: {law.says}"]
    for result in chosen(bad, SHOWN):
        lines += ["", result.case.id, f"  {result.says}", *(f"    {line}" for line in result.script)]
    if len(bad) > SHOWN:
        lines += ["", f"... and {len(bad) - SHOWN} more"]
    return lines
