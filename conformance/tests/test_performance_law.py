"""performance.profile: figures for every task, small where a backend is slow, and only where results are right."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from conformance.tests.examining import examine_all
from tensorken_conformance.case import Case, Result
from tensorken_conformance.law import LAWS
from tensorken_conformance.laws import performance
from tensorken_conformance.laws.performance import TASKS, trusted
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.subject import Subject
from tensorken_core.host.plugin import Capabilities
from tensorken_core.language.op import OPS
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance, "BUDGET", 1e-4)


def test_every_task_has_figures():
    subject = Subject(Fuse(Numpy()), "quick")
    results = list(examine_all(subject, ["performance"]))
    assert {r.case.op for r in results} == set(TASKS)
    assert [r for r in results if r.status != "passed"] == []
    for result in results:
        assert result.level == 5
        assert result.figures.keys() >= {"elements", "microseconds", "numpy microseconds", "ratio"}
        assert ("gigaflops per second" in result.figures) != ("gigabytes per second" in result.figures)
        assert all(value > 0.0 for value in result.figures.values())
        again = Result.from_data(result.as_data())
        assert again.figures == result.figures


def test_the_tasks_compute_what_numpy_computes():
    subject = Subject(Fuse(Numpy()), "right")
    for name, task in TASKS.items():
        values = task.operands(8)
        place: Any = subject.stack if task.stack else subject.backend
        found = task.compute(place, performance._uploaded(subject, task, values))
        if name != "read-back":
            found = place.ravel(found)
        expected = np.asarray(task.baseline(*values)).reshape(-1)
        np.testing.assert_allclose(np.asarray(found).reshape(-1), expected, rtol=1e-4, err_msg=name)
        assert all(op in OPS or op in ("new", "matmul") for op in task.relies)


class Slow(Numpy):
    """A millisecond an element."""

    def exp(self, x: Any) -> Any:
        time.sleep(1e-4 * x.size)
        return super().exp(x)


def test_what_takes_long_is_measured_smaller():
    subject = Subject(Slow(), "slow")
    start = time.perf_counter()
    [result] = examine_all(subject, ["performance"], ["performance.profile/exp/float32/large"])
    assert time.perf_counter() - start < 3.0
    assert result.status == "passed"
    assert 4 <= result.figures["elements"] < TASKS["exp"].sizes["large"]
    assert result.figures["ratio"] > 100.0


class Repeating(Numpy):
    """It answers a call like the last with the last answer, for as long as that is alive."""

    def __init__(self) -> None:
        self.last: Any = None
        self.answered = 0

    def sqrt(self, x: Any) -> Any:
        import weakref

        kept = self.last() if self.last is not None else None
        if kept is not None:
            self.answered += 1
            return kept
        y = super().sqrt(x)
        self.last = weakref.ref(y)
        return y


def test_no_result_is_alive_when_the_next_is_computed():
    backend = Repeating()
    subject = Subject(backend, "repeating")
    law = LAWS["performance.profile"]
    assert law in laws_for(subject)
    assert examine(subject, law, Case(law.id, "sqrt", "float32", "small")).status == "passed"
    assert backend.answered == 0


def test_what_is_declared_unsupported_is_not_timed():
    class Without(Numpy):
        capabilities = Capabilities(dtypes=("float32",), unsupported={"exp": "no"})

    assert "exp" not in {case.op for case in LAWS["performance.profile"].cases(Subject(Without(), "w"))}

    class Doubles(Numpy):
        capabilities = Capabilities(dtypes=("float64",))

    assert list(LAWS["performance.profile"].cases(Subject(Doubles(), "d"))) == []


def test_the_quick_run_times_a_launch():
    subject = Subject(Numpy(), "numpy", depth="smoke")
    assert [case.op for case in LAWS["performance.profile"].cases(subject)] == ["launch"]


def test_figures_count_where_results_are_right():
    def profile(op: str, **facts: Any) -> Result:
        return Result(Case("performance.profile", op, "float32"), **{"status": "passed", "level": 5, **facts})

    def wrong(law: str, op: str, dtype: str = "float32", status: Any = "failed") -> Result:
        return Result(Case(law, op, dtype), status, 1)

    profiles = [profile(op) for op in ("exp", "matmul", "gradient", "launch")]
    assert trusted(profiles) == profiles
    for spoiling, left in [
        (wrong("values.elementwise", "exp"), ["matmul", "gradient", "launch"]),
        (wrong("values.elementwise", "exp", status="crashed"), ["matmul", "gradient", "launch"]),
        (wrong("values.elementwise", "exp", "float64"), ["exp", "matmul", "gradient", "launch"]),
        (wrong("values.elementwise", "exp", status="unsupported"), ["exp", "matmul", "gradient", "launch"]),
        (wrong("values.contractions", "fused_multiply_add"), ["exp", "launch"]),
        (wrong("derivatives.consistency", "tanh", ""), ["exp", "matmul", "launch"]),
        (wrong("values.elementwise", "add"), ["exp", "matmul", "gradient"]),
        (profile("exp", status="failed"), ["exp", "matmul", "gradient", "launch"]),
    ]:
        assert [r.case.op for r in trusted([*profiles, spoiling])] == left
