"""The selftest: what is recorded is what there is, deaths are findings, misses are told, right backends are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.tests.test_faults import DEADLY
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.pool import Task, do_all
from tensorken_conformance.selftest import detection, mutants, proof, trials
from tensorken_conformance.selftest.right import RIGHT
from tensorken_core.language.op import OPS

MUTANT = "rows.largest:max-to-min-1"


def test_what_is_recorded_is_what_there_is_now() -> None:
    assert detection.recorded() == {
        "fingerprint": detection.fingerprint(),
        "faults": len(FAULTS),
        "caught": len(FAULTS),
        "mutants": len(mutants.mutants()),
        "killed": len(mutants.mutants()) - len(mutants.equivalents()),
        "equivalent": len(mutants.equivalents()),
        "alarms": 0,
        "seeds": 1,
    }


def test_the_figure_is_shown_for_these_ops_laws_and_faults_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    caught = len(FAULTS), len(FAULTS)
    assert detection.rate(detection.fingerprint()) == caught
    for table, name in ((OPS, "exp"), (LAWS, "values.sums"), (FAULTS, "rules/stale-tape")):
        with monkeypatch.context() as patch:
            patch.delitem(table, name)
            assert detection.rate(detection.fingerprint()) == (0, 0)
    assert detection.rate(detection.fingerprint()) == caught


def test_finders_are_of_faults_and_mutants_that_there_are() -> None:
    known = proof.finders()
    assert set(known) <= set(FAULTS) | set(mutants.mutants())
    assert set(FAULTS) <= set(known)
    assert {case.partition("/")[0] for case in known.values()} <= set(LAWS)


@pytest.mark.feature(203)
@pytest.mark.parametrize(
    ("deadly", "says"),
    [
        (["failing/exits-silently"], ["crash: exit status 0"]),
        pytest.param(
            sorted(DEADLY),
            ["crash: exit status 0", "hang: no result within"],
            marks=pytest.mark.nightly,  # `tensorken conformance selftest` has them, too
        ),
    ],
    ids=["one", "all"],
)
def test_processes_that_die_or_hang_are_findings_and_others_go_on(deadly: list[str], says: list[str]) -> None:
    lines: list[str] = []
    found = proof.run(select=[*deadly, "strides/flip-first-axis-only"], tell=lines.append)
    count = len(deadly) + 1
    assert (found.caught, found.faults, found.status) == (count, count, 0)
    assert found.detection == f"detection {count}/{count}"
    assert [line for line in says if line not in "\n".join(lines)] == []
    assert lines[-1] == found.summary


def test_a_fault_that_is_missed_is_told_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    def pretend(case: str) -> proof.Selftest:
        lines.clear()
        monkeypatch.setattr(
            proof, "do_all", lambda given, *_: [task.done({"case": case, "says": "so"}) for task in given]
        )
        return proof.run(select=["strides/flip-first-axis-only"], tell=lines.append)

    missed = pretend("")
    assert (missed.caught, missed.status, len(missed.misses)) == (0, 1, 1)
    assert "no law found it" in lines[0]
    astray = pretend("values.cast/cast/bool")
    assert (astray.caught, astray.status) == (0, 1)
    assert "only values.cast found it" in lines[0]
    assert pretend("values.movement/flip/bool/small").status == 0


def test_a_cell_that_no_process_survives_is_wrong_and_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    dead = ["values.elementwise/acosh/float16/257/small", "values.elementwise/acosh/float16/257/normals"]
    asked: list[list[str]] = []

    def pretend(given: list[Task], *_: object) -> None:
        for task in given:
            if task.data["kind"] == "fault":
                task.done({"case": dead[0], "says": "so"})
            else:
                asked.append(list(task.data["deadly"]))
                known = len(asked[-1])
                task.died(dead[known], "crash") if known < 2 else task.done({"wrong": 2, "total": 100})

    monkeypatch.setattr(proof, "do_all", pretend)
    found = proof.run(select=["failing/exits-silently"], deep=True, tell=lines.append)
    assert asked == [[], dead[:1], dead]
    assert "failing/exits-silently: wrong in 2 of 100 cells" in lines
    assert found.misses == ("BROAD failing/exits-silently: wrong in 2 of 100 cells, and not declared crude",)


def test_deadly_cells_are_counted_as_wrong_without_being_tried() -> None:
    fault, tried = FAULTS["strides/crop-forgets-offset"], list[str]()
    wrong, total = trials.share_of_wrong_cells(fault, start=tried.append)
    deadly = next(id for id in tried if "257" not in id)
    again: list[str] = []
    assert trials.share_of_wrong_cells(fault, start=again.append, deadly=[deadly]) == (wrong + 1, total)
    assert len(tried) == total
    assert set(tried) - set(again) == {deadly}


def test_what_there_is_not_cannot_be_selected() -> None:
    with pytest.raises(ValueError, match="no family, fault or law 'nonsense'"):
        proof.run(select=["nonsense"])


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("law", ["values.movement", "values.elementwise", "values.sums", "lifetime.calls"])
def test_no_law_finds_fault_in_a_right_backend(name: str, law: str) -> None:
    count, alarms = trials.try_right(
        name, LAWS[law], 5, 0.002 if law.startswith("values") else 0.02, lambda case: None
    )
    assert not alarms
    assert count > 0


def test_an_alarm_on_a_right_backend_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RIGHT, "numpy", FAULTS["strides/flip-first-axis-only"].make)
    _, alarms = trials.try_right("numpy", LAWS["values.movement"], 0, 0.1, lambda case: None)
    assert alarms
    assert all(alarm.law == "values.movement" for alarm in alarms)


def test_tasks_come_back_from_other_processes() -> None:
    found: list[Any] = []

    def ask(data: dict[str, Any], done: Callable[[dict[str, Any]], None]) -> Task:
        return Task(data, done, lambda case, says: found.append((case, says)), 60.0)

    data = {"kind": "right", "name": "numpy", "law": "values.cipher", "seed": 0, "portion": 0.05}
    do_all(
        [
            ask(data, found.append),
            ask({"kind": "mutant", "seed": 0, "id": MUTANT, "cases": []}, found.append),
        ],
        "selftest.trials",
        1,
    )
    assert found[0]["alarms"] == []
    assert found[0]["count"] > 0
    assert found[1] == {"case": ""}


def test_the_counts_are_data_that_json_can_keep() -> None:
    found = proof.Selftest(1, 2, 2, 3, 2, 1, 100, 0, (), {}, 1.5)
    data = json.loads(json.dumps(found.as_data()))
    assert set(data) == set(detection.recorded())
    assert "detection 2/2, 1 seed; mutants 2 of 3 found, 1 equivalent" in found.summary
