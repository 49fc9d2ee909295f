"""The selftest: its records are current, crashes are findings, misses are reported, and correct backends pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.tests.test_faults import DEADLY
from tensorken_conformance.backends.correct import CORRECT
from tensorken_conformance.detection import counts
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.pool import Task, do_all
from tensorken_conformance.selftest import mutants, proof, trials
from tensorken_core.language.op import OPS

MUTANT = "rows.largest:max-to-min-1"


def test_the_recorded_counts_are_current() -> None:
    assert counts.recorded() == {
        "fingerprint": counts.fingerprint(),
        "faults": len(FAULTS),
        "caught": len(FAULTS),
        "mutants": len(mutants.mutants()),
        "killed": len(mutants.mutants()) - len(mutants.equivalents()),
        "equivalent": len(mutants.equivalents()),
        "alarms": 0,
        "seeds": 1,
    }


def test_the_detection_rate_is_unknown_for_other_ops_laws_or_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = len(FAULTS), len(FAULTS)
    assert counts.rate(counts.fingerprint()) == caught
    for table, name in ((OPS, "exp"), (LAWS, "values.sums"), (FAULTS, "rules/stale-tape")):
        with monkeypatch.context() as patch:
            patch.delitem(table, name)
            assert counts.rate(counts.fingerprint()) == (0, 0)
    assert counts.rate(counts.fingerprint()) == caught


def test_finders_name_existing_faults_mutants_and_laws() -> None:
    finders = proof.finders()
    assert set(finders) <= set(FAULTS) | set(mutants.mutants())
    assert set(FAULTS) <= set(finders)
    assert {case.partition("/")[0] for case in finders.values()} <= set(LAWS)


@pytest.mark.feature(203)
@pytest.mark.parametrize(
    ("deadly", "messages"),
    [
        (["failing/exits-silently"], ["crash: exit status 0"]),
        pytest.param(
            sorted(DEADLY),
            ["crash: exit status 0", "hang: no result within"],
            marks=pytest.mark.nightly,  # `tensorken conformance selftest` runs them as well
        ),
    ],
    ids=["one", "all"],
)
def test_crashes_and_hangs_are_findings_and_do_not_end_the_selftest(
    deadly: list[str], messages: list[str]
) -> None:
    lines: list[str] = []
    selftest = proof.run(select=[*deadly, "strides/flip-first-axis-only"], tell=lines.append)
    count = len(deadly) + 1
    assert (selftest.caught, selftest.faults, selftest.status) == (count, count, 0)
    assert selftest.detection == f"detection {count}/{count}"
    assert [line for line in messages if line not in "\n".join(lines)] == []
    assert lines[-1] == selftest.summary


def test_a_missed_fault_is_reported_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    def run_with(case: str) -> proof.Selftest:
        """Run the selftest with a fake worker that names this case."""
        lines.clear()
        monkeypatch.setattr(
            proof, "do_all", lambda tasks, *_: [task.done({"case": case, "says": "so"}) for task in tasks]
        )
        return proof.run(select=["strides/flip-first-axis-only"], tell=lines.append)

    missed = run_with("")
    assert (missed.caught, missed.status, len(missed.misses)) == (0, 1, 1)
    assert "no law found it" in lines[0]
    misaimed = run_with("values.cast/cast/bool")
    assert (misaimed.caught, misaimed.status) == (0, 1)
    assert "only values.cast found it" in lines[0]
    assert run_with("values.movement/flip/bool/small").status == 0


def test_cases_that_crash_the_worker_count_as_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    deadly = ["values.elementwise/acosh/float16/257/small", "values.elementwise/acosh/float16/257/normals"]
    attempts: list[list[str]] = []

    def do_tasks(tasks: list[Task], *_: object) -> None:
        for task in tasks:
            if task.data["kind"] == "fault":
                task.done({"case": deadly[0], "says": "so"})
            else:
                attempts.append(list(task.data["deadly"]))
                count = len(attempts[-1])
                task.died(deadly[count], "crash") if count < 2 else task.done({"wrong": 2, "total": 100})

    monkeypatch.setattr(proof, "do_all", do_tasks)
    selftest = proof.run(select=["failing/exits-silently"], deep=True, tell=lines.append)
    assert attempts == [[], deadly[:1], deadly]
    assert "failing/exits-silently: wrong in 2 of 100 cells" in lines
    assert selftest.misses == (
        "BROAD failing/exits-silently: wrong in 2 of 100 cells, and not declared crude",
    )


def test_deadly_cases_count_as_failed_without_being_run() -> None:
    fault, tried = FAULTS["strides/crop-forgets-offset"], list[str]()
    wrong, total = trials.share_of_wrong_cells(fault, start=tried.append)
    deadly = next(id for id in tried if "257" not in id)
    again: list[str] = []
    assert trials.share_of_wrong_cells(fault, start=again.append, deadly=[deadly]) == (wrong + 1, total)
    assert len(tried) == total
    assert set(tried) - set(again) == {deadly}


def test_an_unknown_selection_is_rejected() -> None:
    with pytest.raises(ValueError, match="no family, fault or law 'nonsense'"):
        proof.run(select=["nonsense"])


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.parametrize("law", ["values.movement", "values.elementwise", "values.sums", "lifetime.calls"])
def test_correct_backends_pass(name: str, law: str) -> None:
    count, alarms = trials.try_correct(
        name, LAWS[law], 5, 0.002 if law.startswith("values") else 0.02, lambda case: None
    )
    assert not alarms
    assert count > 0


def test_a_failure_of_a_correct_backend_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CORRECT, "numpy", FAULTS["strides/flip-first-axis-only"].make)
    _, alarms = trials.try_correct("numpy", LAWS["values.movement"], 0, 0.1, lambda case: None)
    assert alarms
    assert all(alarm.law == "values.movement" for alarm in alarms)


def test_worker_processes_return_the_results_of_tasks() -> None:
    results: list[Any] = []

    def make_task(data: dict[str, Any], done: Callable[[dict[str, Any]], None]) -> Task:
        return Task(data, done, lambda case, message: results.append((case, message)), 60.0)

    data = {"kind": "right", "name": "numpy", "law": "values.cipher", "seed": 0, "portion": 0.05}
    do_all(
        [
            make_task(data, results.append),
            make_task({"kind": "mutant", "seed": 0, "id": MUTANT, "cases": []}, results.append),
        ],
        "selftest.trials",
        1,
    )
    assert results[0]["alarms"] == []
    assert results[0]["count"] > 0
    assert results[1] == {"case": ""}


def test_the_counts_can_be_written_as_json() -> None:
    selftest = proof.Selftest(1, 2, 2, 3, 2, 1, 100, 0, (), {}, 1.5)
    data = json.loads(json.dumps(selftest.as_data()))
    assert set(data) == set(counts.recorded())
    assert "detection 2/2, 1 seed; mutants 2 of 3 found, 1 equivalent" in selftest.summary
