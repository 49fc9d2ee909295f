"""performance.profile: figures for every task, on smaller operands for slow backends, and only for correct ops."""

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
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure each task for a short time."""
    monkeypatch.setattr(performance, "BUDGET", 1e-4)


def test_every_task_has_figures():
    subject = Subject(Fuse(Numpy()), "examined")
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


def test_tasks_and_their_baselines_compute_the_same():
    subject = Subject(Fuse(Numpy()), "examined")
    for name, task in TASKS.items():
        values = task.operands(8)
        interpreter: Any = subject.stack if task.stack else subject.backend
        result = task.compute(interpreter, performance._uploaded(subject, task, values))
        if name != "read-back":
            result = interpreter.ravel(result)
        expected = np.asarray(task.baseline(*values)).reshape(-1)
        np.testing.assert_allclose(np.asarray(result).reshape(-1), expected, rtol=1e-4, err_msg=name)
        assert all(op in OPS or op in ("new", "matmul") for op in task.relies)


class Slow(Numpy):
    """Sleeps for 0.1 ms for each element in exp."""

    def exp(self, x: Any) -> Any:
        time.sleep(1e-4 * x.size)
        return super().exp(x)


def test_slow_tasks_are_measured_on_smaller_operands():
    subject = Subject(Slow(), "slow")
    start = time.perf_counter()
    [result] = examine_all(subject, ["performance"], ["performance.profile/exp/float32/large"])
    assert time.perf_counter() - start < 3.0
    assert result.status == "passed"
    assert 4 <= result.figures["elements"] < TASKS["exp"].sizes["large"]
    assert result.figures["ratio"] > 100.0


class Repeating(Numpy):
    """Returns the last result of sqrt for as long as it is alive."""

    def __init__(self) -> None:
        self.last: Any = None
        self.reused = 0

    def sqrt(self, x: Any) -> Any:
        import weakref

        result = self.last() if self.last is not None else None
        if result is not None:
            self.reused += 1
            return result
        y = super().sqrt(x)
        self.last = weakref.ref(y)
        return y


def test_each_result_is_freed_before_the_next_call():
    backend = Repeating()
    subject = Subject(backend, "repeating")
    law = LAWS["performance.profile"]
    assert law in laws_for(subject)
    assert examine(subject, law, Case(law.id, "sqrt", "float32", "small")).status == "passed"
    assert backend.reused == 0


def test_declared_unsupported_ops_have_no_cases():
    class Without(Numpy):
        capabilities = Capabilities(dtypes=("float32",), unsupported={"exp": "no"})

    assert "exp" not in {case.op for case in LAWS["performance.profile"].cases(Subject(Without(), "w"))}

    class Doubles(Numpy):
        capabilities = Capabilities(dtypes=("float64",))

    assert list(LAWS["performance.profile"].cases(Subject(Doubles(), "d"))) == []


def test_a_smoke_run_measures_only_a_launch():
    subject = Subject(Numpy(), "numpy", depth="smoke")
    assert [case.op for case in LAWS["performance.profile"].cases(subject)] == ["launch"]


def test_figures_are_trusted_unless_a_case_of_their_ops_failed():
    def profile(op: str, **facts: Any) -> Result:
        return Result(Case("performance.profile", op, "float32"), **{"status": "passed", "level": 5, **facts})

    def failed(law: str, op: str, dtype: str = "float32", status: Any = "failed") -> Result:
        return Result(Case(law, op, dtype), status, 1)

    profiles = [profile(op) for op in ("exp", "matmul", "gradient", "launch")]
    assert trusted(profiles) == profiles
    for failure, trusted_ops in [
        (failed("values.elementwise", "exp"), ["matmul", "gradient", "launch"]),
        (failed("values.elementwise", "exp", status="crashed"), ["matmul", "gradient", "launch"]),
        (failed("values.elementwise", "exp", "float64"), ["exp", "matmul", "gradient", "launch"]),
        (failed("values.elementwise", "exp", status="unsupported"), ["exp", "matmul", "gradient", "launch"]),
        (failed("values.contractions", "fused_multiply_add"), ["exp", "launch"]),
        (failed("derivatives.consistency", "tanh", ""), ["exp", "matmul", "launch"]),
        (failed("values.elementwise", "add"), ["exp", "matmul", "gradient"]),
        (profile("exp", status="failed"), ["exp", "matmul", "gradient", "launch"]),
    ]:
        assert [r.case.op for r in trusted([*profiles, failure])] == trusted_ops
