"""The runner: what a run finds, whatever the backend does to the processes that examine it."""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.tests import fake_backends
from tensorken_conformance.case import Result
from tensorken_conformance.levels import account
from tensorken_conformance.report.model import make
from tensorken_conformance.running import options, runner
from tensorken_conformance.running.finders import finders
from tensorken_conformance.running.loading import load
from tensorken_conformance.running.options import Options, Run, RunError
from tensorken_conformance.running.plan import Plan, stage_of
from tensorken_conformance.running.process import last_words
from tensorken_conformance.running.run import run

READ_BACK = ("values.read-back",)


def examine(backend: str, select: tuple[str, ...] = READ_BACK, **options: Any) -> Run:
    name = backend if ":" in backend or backend.islower() else f"{fake_backends.MODULE}:{backend}"
    return run(Options(name, select=select, **{"workers": 1, **options}))


def bad(found: Run) -> dict[str, Result]:
    return {r.case.id: r for r in found.results if r.status in ("failed", "crashed")}


@pytest.fixture(scope="module")
def right() -> Run:
    return examine("Small", in_process=True)


def without_times(found: Run) -> list[Result]:
    return [dataclasses.replace(result, seconds=0.0) for result in found.results]


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_find_what_this_process_finds(right: Run, workers: int) -> None:
    found = examine("Small", workers=workers)
    assert without_times(found) == without_times(right)
    assert (found.laws, found.capabilities) == (right.laws, right.capabilities)
    notes = {"notes": []}  # they are of the plugins that a process happens to have loaded
    assert {**found.about, **notes} == {**right.about, **notes}
    assert not bad(found)


def test_each_result_is_told_as_it_comes() -> None:
    told: list[Result] = []
    found = run(Options("numpy", select=("values.read-back/new",), workers=1), told.append)
    assert {r.case.id for r in told} == {r.case.id for r in found.results}
    assert len(told) == len(found.results) > 10


def test_an_op_is_in_the_same_part_of_every_law() -> None:
    plan = Plan(load("reference"), ["lifetime.calls", "lifetime.results-stay"])
    places: dict[str, set[int]] = {}
    for law in plan.laws:
        parts = [plan.part(law, part, 7) for part in range(7)]
        assert sorted(index for part in parts for index, _ in part) == [*range(len(plan.cases(law)))]
        for number, part in enumerate(parts):
            for index, case in part:
                assert plan.cases(law)[index] is case
                places.setdefault(case.op, set()).add(number)
    assert len(places) > 60
    assert all(len(numbers) == 1 for numbers in places.values())
    assert set().union(*places.values()) == set(range(7))


def test_what_is_ready_for_an_op_serves_the_next_law() -> None:
    """All laws about one op come before those about another."""
    laws, about = ("lifetime.calls", "errors.silent"), ("neg/int32", "add/int32", "abs/int32")
    told: list[Result] = []
    run(Options("numpy", select=tuple(f"{law}/{op}" for law in laws for op in about), workers=1), told.append)
    assert len(told) == 6
    assert [len(list(of_op)) for _, of_op in groupby(told, lambda result: result.case.op)] == [2, 2, 2]


def test_a_worker_stays_at_a_part_while_there_is_one_for_each() -> None:
    workers = runner._Workers(Run(Options("numpy")), lambda result: None)
    first, second, third = [SimpleNamespace(part=part) for part in (0, 1, 2)]
    workers._workers = [first, second, third]  # type: ignore[list-item]
    jobs = deque(runner.Job(law, part, 5) for part in (0, 1, 3) for law in "ab")

    def taken(member: Any) -> tuple[str, int]:
        job = workers._take_job(jobs, member)
        member.part = job.part
        return job.law, job.part

    assert [taken(second), taken(second)] == [("a", 1), ("b", 1)]
    assert [taken(third), taken(second)] == [("a", 3), ("a", 0)]
    assert [taken(third), taken(second)] == [("b", 3), ("b", 0)]
    assert not jobs


def test_a_crash_is_the_result_of_one_case(right: Run) -> None:
    found = examine("CrashesOnce")
    assert [r.case.id for r in found.results] == [r.case.id for r in right.results]
    assert list(bad(found)) == ["values.read-back/full/float32/prime"]
    [crash] = bad(found).values()
    assert crash.seconds > 0.0
    assert crash.status == "crashed"
    assert crash.level == 1
    assert crash.says.startswith("crash: ")
    assert "in full" in crash.says


def test_an_op_that_goes_on_crashing_is_given_up_and_the_others_are_not(right: Run) -> None:
    found = examine("CrashesAlways")
    crashes = [r for r in found.results if r.status == "crashed"]
    assert [r.case.op for r in crashes] == ["full"] * len(crashes)
    given_up = [r for r in crashes if "given up" in r.says]
    assert len(crashes) - len(given_up) == runner.MAX_CRASHES_OF_OP
    missing = sum(int(r.says.split()[2]) for r in given_up)
    assert missing + len(found.results) - len(given_up) == len(right.results)
    assert all("exit status 9" in r.says for r in crashes)


def test_crashes_without_end_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_CRASHES", 3)
    found = examine("CrashesAtAll", ("values.read-back", "values.movement"))
    assert {r.case.law: 0 for r in found.results} == {"values.read-back": 0, "values.movement": 0}
    rest = [r for r in found.results if r.case.op == runner.REST]
    assert len({r.case.law for r in rest}) == len(rest) >= 1
    assert len(found.results) < 20
    assert account(found.results).passed == 0


def test_a_deadlock_is_the_result_of_one_case_and_says_where(right: Run) -> None:
    found = examine("Hangs", limit=1.0)
    hang = bad(found)["values.read-back/full/float32/prime"]
    assert hang.says.startswith("hang: no result within 2 s of waiting, in ")
    assert hang.says.endswith(", twice")
    assert "fake_backends.py" in hang.says or runner.os.name == "nt"
    assert hang.seconds >= 2.0
    [of_law] = make(found).by_law
    assert of_law.seconds >= 2.0
    assert not [r for r in bad(found).values() if r.case.op != "full"]
    assert {r.case.id for r in found.results} >= {r.case.id for r in right.results if r.case.op != "full"}


def test_a_case_that_computes_for_ever_is_found() -> None:
    found = examine("Spins", limit=1.0)
    hang = bad(found)["values.read-back/full/float32/prime"]
    assert hang.says.startswith("hang: no result within 1 s of computing")
    assert hang.says.endswith(", twice")


def test_a_case_that_hangs_is_tried_again_alone(
    right: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where the backend leaves its file
    found = examine("SpinsOnce", limit=1.0, workers=2)
    assert (tmp_path / "spun").exists()
    assert without_times(found) == without_times(right)


@pytest.mark.parametrize(
    "backend",
    ["Sleeps", pytest.param("Stopped", marks=pytest.mark.skipif(os.name == "nt", reason="no SIGSTOP"))],
)
def test_a_process_that_is_kept_from_running_does_not_count_as_hanging(
    backend: str, right: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    again: list[Any] = []
    handle = runner._Workers._handle_exit
    monkeypatch.setattr(runner._Workers, "_handle_exit", lambda *args: (again.append(args), handle(*args)))
    found = examine(backend, limit=1.0)
    assert list(tmp_path.iterdir())
    assert without_times(found) == without_times(right)
    assert not again


def test_a_law_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # where the backend leaves its file
    monkeypatch.setattr(options, "LAW_LIMIT", 0.05)
    found = examine("Slow", limit=20.0)
    [late] = bad(found).values()
    assert late.case.id == "values.read-back/enumeration"
    assert "more than 1 s" in late.says
    assert late.level == 1


def test_a_deep_run_has_no_such_limit() -> None:
    assert Options("numpy", depth="deep").law_limit == float("inf")


def test_what_a_backend_prints_or_reads_is_its_own_affair() -> None:
    assert not bad(examine("Chatters"))


@pytest.mark.parametrize(("backend", "says"), [("Exits", "sys.exit(0)"), ("Interrupts", "KeyboardInterrupt")])
def test_a_backend_cannot_end_the_run(backend: str, says: str, right: Run) -> None:
    found = examine(backend)
    assert {r.case.op for r in bad(found).values()} == {"full"}
    assert all(r.status == "crashed" and says in r.says for r in bad(found).values())
    assert len(found.results) == len(right.results)


def test_long_messages_are_cut() -> None:
    found = examine("Verbose", ("values.read-back/full/float32/one",))
    [verbose] = bad(found).values()
    assert len(verbose.says) < 1_100
    assert "1000" in verbose.says.rsplit("(", 1)[1]


@pytest.mark.parametrize(
    ("backend", "status", "says", "in_process"),
    [
        ("deadly", "crashed", "exit status 5", False),
        ("broken", "failed", "no adapter", False),
        ("broken", "failed", "no adapter", True),
    ],
)
def test_a_backend_that_cannot_be_loaded_has_no_level(
    backend: str, status: str, says: str, in_process: bool
) -> None:
    found = examine(f"{fake_backends.MODULE}:{backend}", in_process=in_process)
    [load] = found.results
    assert (load.case.id, load.status, load.level) == ("host.load/load", status, 0)
    assert says in load.says
    assert make(found).status == 1


WHAT_THERE_IS_NOT = [
    ("nunpy", (), "did you mean: numpy"),
    (f"{fake_backends.MODULE}:Smal", (), "did you mean Small"),
    ("numpy", ("values.readback",), "did you mean values.read-back"),
    ("numpy", ("value",), "did you mean values"),
    ("numpy", ("values.read-back/ful",), "did you mean full"),
    ("numpy", ("values.read-back/full/float31",), "no case begins with"),
    ("string", ("values.read-back",), "not for backends that have no values"),
]


@pytest.mark.parametrize(("backend", "select", "says"), WHAT_THERE_IS_NOT)
def test_what_does_not_exist_is_named(backend: str, select: tuple[str, ...], says: str) -> None:
    with pytest.raises(RunError, match=says):
        examine(backend, select, in_process=True)


@pytest.mark.parametrize(("backend", "select", "says"), [WHAT_THERE_IS_NOT[0], WHAT_THERE_IS_NOT[-1]])
def test_a_process_names_what_does_not_exist(backend: str, select: tuple[str, ...], says: str) -> None:
    """A backend, and a law: what else the plan refuses, it refuses alike."""
    with pytest.raises(RunError, match=says):
        examine(backend, select)


@pytest.mark.parametrize(
    "select",
    [
        ("values.read-back/full",),
        ("values.read-back/full/float32",),
        ("values.read-back/full/float32/one",),
        ("values.read-back/full/float32", "values.read-back/new"),
        ("values.read-back/full/float32", "values.read-back"),
        ("values/full/float32/one",),
    ],
)
def test_laws_ops_and_cases_can_be_selected(select: tuple[str, ...], right: Run) -> None:
    found = [r.case.id for r in examine("Small", select, in_process=True).results]
    beginnings = [text.replace("values/", "values.read-back/") for text in select]
    wanted = [r.case.id for r in right.results if any(r.case.id.startswith(b) for b in beginnings)]
    assert found == wanted
    assert 0 < len(found) <= len(right.results)


def test_options_go_to_what_makes_the_backend() -> None:
    select = ("values.read-back/full/float32",)
    assert bad(examine("Optional", select))
    found = examine("Optional", select, options={"right": True, "device": "fast"})
    assert not bad(found)
    assert found.about["device"] == "fast"
    for in_process in (True, False):
        with pytest.raises(RunError, match=r"cannot be made with speed: .*; its options: right, device"):
            examine("Optional", select, options={"speed": 3}, in_process=in_process)


def test_options_go_to_installed_backends_too() -> None:
    with pytest.raises(RunError, match="backend 'numpy' cannot be made with speed"):
        examine("numpy", READ_BACK, options={"speed": 3})
    assert not bad(examine("reference", ("values.read-back/full",), options={"device": None}))


@pytest.mark.parametrize("in_process", [False])
def test_laws_may_misbehave_too(in_process: bool) -> None:
    found = examine("conformance.tests.fake_laws:Small", ("fake",), in_process=in_process)
    results = {r.case.id: r for r in found.results}
    unlisted = results["fake.unlisted/enumeration"]
    assert (unlisted.status, unlisted.says) == (
        "crashed",
        "its cases cannot be listed: OSError: the list is gone",
    )
    assert results["fake.chain/first"].says == "it always does"
    assert results["fake.chain/second"].status == "passed"
    waiting = [r for r in found.results if r.case.law == "fake.waiting"]
    assert {r.says for r in waiting} == {"blocked by fake.chain/first"}
    report = make(found)
    assert report.blocked == {"fake.chain/first": 5}
    assert [r.case.id for r in report.failures] == ["fake.chain/first", "fake.unlisted/enumeration"]


def test_times_are_measured_last_and_alone() -> None:
    found = run(
        Options(
            "numpy", select=("performance.profile/launch", "values.read-back/new/float32/small"), workers=2
        )
    )
    assert [r.case.law for r in found.results] == ["values.read-back", "performance.profile"]
    assert found.laws[-1]["stage"] >= runner.ALONE
    from tensorken_conformance.law import LAWS

    assert all(stage_of(law) < runner.ALONE for law in LAWS.values() if law.group != "performance")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", ""),
        (b"\xff\xfe broken", "\N{REPLACEMENT CHARACTER}" * 2 + " broken"),
        (
            b"Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n"
            b'  File "a.py", line 1 in wait\n\nCurrent thread 0x2 (most recent call first):\n'
            b'  File "C:\\b.py", line 22 in exp\n  File "c.py", line 3 in main\n\n'
            b"Extension modules: numpy (total: 1)\n",
            "Segmentation fault, in exp, line 22 of ",
        ),
    ],
)
def test_last_words(said: bytes, words: str) -> None:
    assert last_words(said).startswith(words)


def test_the_cases_that_found_the_seeded_faults_can_be_selected() -> None:
    plan = Plan(load("reference"), ["finders"])
    selected = {case.id for law in plan.laws for case in plan.cases(law)}
    laws = {law.id for law in plan.laws}
    recorded = {id for id in finders().values() if id.split("/")[0] in laws}
    assert len(selected) > 250
    missing = recorded - selected  # cases that only a backend with a wrong declaration has
    assert all(id.startswith(("declarations.", "lifetime.results-stay")) for id in missing), missing
    assert len(missing) < 0.03 * len(recorded)
