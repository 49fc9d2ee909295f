"""The level that results reach, the counts of results, and the exit status."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.tests.examining import examine_all
from tensorken_conformance.case import Case, Result
from tensorken_conformance.levels import (
    Account,
    Level,
    account,
    exit_status,
    is_mandatory,
    level_of,
    obstacles,
)
from tensorken_conformance.subject import Subject
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.op import OPS
from tensorken_numpy.backend import Numpy

ALL = Capabilities(dtypes=("bool", "int32", "float32"))
SYMBOLIC = Capabilities(dtypes=("bool", "int32", "float32"), symbolic=True)


def result(level: int, status: Any = "passed", op: str = "", dtype: str = "", law: str = "a.law") -> Result:
    return Result(Case(law, op or f"op{level}{status}", dtype), status, level)


PASSED = [result(n) for n in range(6)]


def test_a_level_requires_all_lower_levels_and_no_failure():
    for n in range(6):
        assert level_of(PASSED[: n + 1], ALL) == Level(n)
        below = Level(n - 1) if n else None
        for status in ("failed", "expected failure", "crashed"):
            assert level_of([*PASSED, result(n, status)], ALL) == below
    assert level_of([], ALL) is None
    assert level_of([result(1), result(2)], ALL) is None  # no case of level 0 passed
    assert level_of([r for r in PASSED if r.level != 3], ALL) == Level(2)


def test_declared_unsupported_ops_of_level_1_prevent_the_level():
    assert level_of([*PASSED, result(2, "unsupported", "exp", "float64")], ALL) == Level(5)
    assert level_of([*PASSED, result(4, "unsupported", "tanh", "float32")], ALL) == Level(5)
    assert level_of([*PASSED, result(2, "unsupported", "exp", "float32")], ALL) == Level(0)
    assert level_of([*PASSED, result(1, "unsupported", "new", "bool")], ALL) == Level(0)


def test_without_declared_dtypes_there_is_no_level():
    assert level_of(PASSED, Capabilities()) is None
    assert exit_status(account(PASSED), None) == 1
    assert exit_status(account(PASSED), Level(5)) == 0
    assert exit_status(account(PASSED), Level(5), ["conformance.txt:3: matches no case"]) == 1
    assert exit_status(account([*PASSED, result(5, "failed")]), Level(4)) == 1
    assert exit_status(account([*PASSED, result(5, "crashed")]), Level(4)) == 1
    assert exit_status(account([*PASSED, result(5, "expected failure")]), Level(4)) == 0


def test_symbolic_backends_have_levels_up_to_four():
    assert level_of(PASSED[:5], SYMBOLIC) == Level(4, symbolic=True)
    assert str(Level(0, symbolic=True)) == "L0s loads"


def test_obstacles_are_the_results_that_prevent_the_next_level():
    missing, failed = result(2, "unsupported", "exp", "float32"), result(1, "failed")
    results = [*PASSED, missing, failed, result(3, "failed")]
    assert level_of(results, ALL) == Level(0)
    assert obstacles(results, Level(0)) == [missing, failed]
    assert obstacles([result(0, "failed")], None) == [result(0, "failed")]


def test_ops_without_a_body_are_mandatory_for_float32():
    for op in OPS.values():
        assert is_mandatory(op.name, "float32") == (op.body is None)
        assert not is_mandatory(op.name, "float64")


def test_the_counts_add_up_to_the_cases():
    statuses = ["passed"] * 5 + ["failed"] * 4 + ["expected failure"] * 3 + ["unsupported"] * 2 + ["crashed"]
    results = [result(0, status, f"case{i}") for i, status in enumerate(statuses)]
    counts = account(results)
    assert counts == Account(5, 4, 3, 2, 1)
    assert counts.cases == len(results) == 15
    assert str(counts) == (
        "15 cases = 5 passed + 4 failed + 3 expected failures + 2 declared unsupported + 1 crashed"
    )
    with pytest.raises(ValueError, match=r"several results of a\.law/case0"):
        account([*results, results[0]])
    with pytest.raises(ValueError, match="no status 'skipped'"):
        account([result(0, "skipped")])


class Silent(Numpy):
    """Computes correctly, and declares no dtypes."""

    capabilities = Capabilities()


class Excused(Numpy):
    """Declares every op unsupported, and raises for each."""

    capabilities = Capabilities(dtypes=("bool", "int32", "float32"), unsupported={"*": "later"})

    def has(self, op: Any) -> bool:
        return True

    def interpret(self, op: Any, operands: Any, params: Any) -> Any:
        raise NotImplementedError(f"{op.name}: later")


@pytest.mark.parametrize("backend", [Silent, Excused])
def test_backends_that_declare_nothing_or_support_nothing_stay_below_level_1(backend):
    subject = Subject(backend(), "examined")
    results = list(examine_all(subject, ["host", "declarations", "values.read-back"]))
    level = level_of(results, subject.capabilities)
    assert level is None or level == Level(0)
    assert exit_status(account(results), level) == 1
