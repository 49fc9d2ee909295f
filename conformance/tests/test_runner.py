"""The runner: the results of a run with backends that crash, hang or exit."""

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
from tensorken_conformance.backends.loading import load
from tensorken_conformance.case import Result
from tensorken_conformance.detection.finders import finders
from tensorken_conformance.levels import account
from tensorken_conformance.report.model import make
from tensorken_conformance.running import options, runner
from tensorken_conformance.running.options import Options, Run, RunError
from tensorken_conformance.running.plan import Plan, stage_of
from tensorken_conformance.running.process import last_words
from tensorken_conformance.running.run import run

READ_BACK = ("values.read-back",)


def examine(backend: str, select: tuple[str, ...] = READ_BACK, **options: Any) -> Run:
    name = backend if ":" in backend or backend.islower() else f"{fake_backends.MODULE}:{backend}"
    return run(Options(name, select=select, **{"workers": 1, **options}))


def failures(run: Run) -> dict[str, Result]:
    """The failed and crashed results of a run by id."""
    return {r.case.id: r for r in run.results if r.status in ("failed", "crashed")}


@pytest.fixture(scope="module")
def expected() -> Run:
    """The run of a correct backend in this process."""
    return examine("Small", in_process=True)


def without_times(run: Run) -> list[Result]:
    """The results of a run with all times 0."""
    return [dataclasses.replace(result, seconds=0.0) for result in run.results]


@pytest.mark.parametrize("workers", [1, 3])
def test_worker_processes_return_the_results_of_this_process(expected: Run, workers: int) -> None:
    outcome = examine("Small", workers=workers)
    assert without_times(outcome) == without_times(expected)
    assert (outcome.laws, outcome.capabilities) == (expected.laws, expected.capabilities)
    notes = {"notes": []}  # they depend on the plugins that the process has loaded
    assert {**outcome.about, **notes} == {**expected.about, **notes}
    assert not failures(outcome)


def test_run_calls_tell_with_each_result() -> None:
    results: list[Result] = []
    outcome = run(Options("numpy", select=("values.read-back/new",), workers=1), results.append)
    assert {r.case.id for r in results} == {r.case.id for r in outcome.results}
    assert len(results) == len(outcome.results) > 10


def test_a_run_counts_its_cases_and_goes_on_if_that_crashes(expected: Run) -> None:
    assert expected.planned == len(expected.results)
    outcome = examine("CrashesWhileCounted")
    assert outcome.planned is None
    assert [r.case.id for r in outcome.results] == [r.case.id for r in expected.results]
    assert not failures(outcome)


def test_an_op_belongs_to_the_same_part_of_every_law() -> None:
    plan = Plan(load("reference"), ["lifetime.calls", "lifetime.results-stay"])
    numbers: dict[str, set[int]] = {}
    for law in plan.laws:
        parts = [plan.part(law, part, 7) for part in range(7)]
        assert sorted(index for part in parts for index, _ in part) == [*range(len(plan.cases(law)))]
        for number, part in enumerate(parts):
            for index, case in part:
                assert plan.cases(law)[index] is case
                numbers.setdefault(case.op, set()).add(number)
    assert len(numbers) > 60
    assert all(len(parts_of_op) == 1 for parts_of_op in numbers.values())
    assert set().union(*numbers.values()) == set(range(7))


def test_a_worker_examines_all_laws_on_an_op_in_succession() -> None:
    """The laws share cached values of an op."""
    laws, ops = ("lifetime.calls", "errors.silent"), ("neg/int32", "add/int32", "abs/int32")
    results: list[Result] = []
    run(
        Options("numpy", select=tuple(f"{law}/{op}" for law in laws for op in ops), workers=1), results.append
    )
    assert len(results) == 6
    assert [len(list(of_op)) for _, of_op in groupby(results, lambda result: result.case.op)] == [2, 2, 2]


def test_a_worker_keeps_its_part_and_takes_parts_without_a_worker() -> None:
    workers = runner._Workers(Run(Options("numpy")), lambda result: None)
    first, second, third = [SimpleNamespace(part=part) for part in (0, 1, 2)]
    workers._workers = [first, second, third]  # type: ignore[list-item]
    jobs = deque(runner.Job(law, part, 5) for part in (0, 1, 3) for law in "ab")

    def take(member: Any) -> tuple[str, int]:
        job = workers._take_job(jobs, member)
        member.part = job.part
        return job.law, job.part

    assert [take(second), take(second)] == [("a", 1), ("b", 1)]
    assert [take(third), take(second)] == [("a", 3), ("a", 0)]
    assert [take(third), take(second)] == [("b", 3), ("b", 0)]
    assert not jobs


def test_a_crash_affects_one_case(expected: Run) -> None:
    outcome = examine("CrashesOnce")
    assert [r.case.id for r in outcome.results] == [r.case.id for r in expected.results]
    assert list(failures(outcome)) == ["values.read-back/full/float32/prime"]
    [crash] = failures(outcome).values()
    assert crash.seconds > 0.0
    assert crash.status == "crashed"
    assert crash.level == 1
    assert crash.says.startswith("crash: ")
    assert "in full" in crash.says


def test_an_op_that_crashes_repeatedly_is_given_up(expected: Run) -> None:
    outcome = examine("CrashesInFull")
    crashes = [r for r in outcome.results if r.status == "crashed"]
    assert [r.case.op for r in crashes] == ["full"] * len(crashes)
    given_up = [r for r in crashes if "given up" in r.says]
    assert len(crashes) - len(given_up) == runner.MAX_CRASHES_OF_OP
    missing = sum(int(r.says.split()[2]) for r in given_up)
    assert missing + len(outcome.results) - len(given_up) == len(expected.results)
    assert all("exit status 9" in r.says for r in crashes)


def test_too_many_crashes_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_CRASHES", 3)
    outcome = examine("CrashesInRavel", ("values.read-back", "values.movement"))
    assert {r.case.law: 0 for r in outcome.results} == {"values.read-back": 0, "values.movement": 0}
    rest = [r for r in outcome.results if r.case.op == runner.REST]
    assert len({r.case.law for r in rest}) == len(rest) >= 1
    assert len(outcome.results) < 20
    assert account(outcome.results).passed == 0


def test_a_deadlock_affects_one_case_and_its_message_names_the_frame(expected: Run) -> None:
    outcome = examine("Hangs", limit=1.0)
    hang = failures(outcome)["values.read-back/full/float32/prime"]
    assert hang.says.startswith("hang: no result within 2 s of waiting, in ")
    assert hang.says.endswith(", twice")
    assert "fake_backends.py" in hang.says or runner.os.name == "nt"
    assert hang.seconds >= 2.0
    [of_law] = make(outcome).by_law
    assert of_law.seconds >= 2.0
    assert not [r for r in failures(outcome).values() if r.case.op != "full"]
    assert {r.case.id for r in outcome.results} >= {
        r.case.id for r in expected.results if r.case.op != "full"
    }


def test_an_endless_loop_is_a_hang() -> None:
    outcome = examine("Spins", limit=1.0)
    hang = failures(outcome)["values.read-back/full/float32/prime"]
    assert hang.says.startswith("hang: no result within 1 s of computing")
    assert hang.says.endswith(", twice")


def test_a_case_that_hangs_is_repeated_alone(
    expected: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # the backend creates its file here
    outcome = examine("SpinsOnce", limit=1.0, workers=2)
    assert (tmp_path / "spun").exists()
    assert without_times(outcome) == without_times(expected)


@pytest.mark.parametrize(
    "backend",
    ["Sleeps", pytest.param("Stopped", marks=pytest.mark.skipif(os.name == "nt", reason="no SIGSTOP"))],
)
def test_a_process_that_sleeps_or_is_stopped_does_not_hang(
    backend: str, expected: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    exits: list[Any] = []
    handle = runner._Workers._handle_exit
    monkeypatch.setattr(runner._Workers, "_handle_exit", lambda *args: (exits.append(args), handle(*args)))
    outcome = examine(backend, limit=1.0)
    assert list(tmp_path.iterdir())
    assert without_times(outcome) == without_times(expected)
    assert not exits


def test_a_law_over_its_time_limit_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # the backend creates its file here
    monkeypatch.setattr(options, "LAW_LIMIT", 0.05)
    outcome = examine("Slow", limit=20.0)
    [late] = failures(outcome).values()
    assert late.case.id == "values.read-back/enumeration"
    assert "more than 1 s" in late.says
    assert late.level == 1


def test_a_deep_run_has_no_time_limit_for_laws() -> None:
    assert Options("numpy", depth="deep").law_limit == float("inf")


def test_output_and_input_of_a_backend_do_not_disturb_the_run() -> None:
    assert not failures(examine("Chatters"))


@pytest.mark.parametrize(
    ("backend", "message"), [("Exits", "sys.exit(0)"), ("Interrupts", "KeyboardInterrupt")]
)
def test_a_backend_that_exits_crashes_only_its_cases(backend: str, message: str, expected: Run) -> None:
    outcome = examine(backend)
    assert {r.case.op for r in failures(outcome).values()} == {"full"}
    assert all(r.status == "crashed" and message in r.says for r in failures(outcome).values())
    assert len(outcome.results) == len(expected.results)


def test_long_messages_are_truncated() -> None:
    outcome = examine("Verbose", ("values.read-back/full/float32/one",))
    [verbose] = failures(outcome).values()
    assert len(verbose.says) < 1_100
    assert "1000" in verbose.says.rsplit("(", 1)[1]


@pytest.mark.parametrize(
    ("backend", "status", "message", "in_process"),
    [
        ("exits_when_made", "crashed", "exit status 5", False),
        ("raises_when_made", "failed", "no adapter", False),
        ("raises_when_made", "failed", "no adapter", True),
    ],
)
def test_a_backend_that_cannot_be_loaded_has_no_level(
    backend: str, status: str, message: str, in_process: bool
) -> None:
    outcome = examine(f"{fake_backends.MODULE}:{backend}", in_process=in_process)
    [load] = outcome.results
    assert (load.case.id, load.status, load.level) == ("host.load/load", status, 0)
    assert message in load.says
    assert make(outcome).status == 1


UNKNOWN_NAMES = [
    ("nunpy", (), "did you mean: numpy"),
    (f"{fake_backends.MODULE}:Smal", (), "did you mean Small"),
    ("numpy", ("values.readback",), "did you mean values.read-back"),
    ("numpy", ("value",), "did you mean values"),
    ("numpy", ("values.read-back/ful",), "did you mean full"),
    ("numpy", ("values.read-back/full/float31",), "no case begins with"),
    ("string", ("values.read-back",), "not for backends that have no values"),
]


@pytest.mark.parametrize(("backend", "select", "message"), UNKNOWN_NAMES)
def test_unknown_names_raise_an_error(backend: str, select: tuple[str, ...], message: str) -> None:
    with pytest.raises(RunError, match=message):
        examine(backend, select, in_process=True)


@pytest.mark.parametrize(("backend", "select", "message"), [UNKNOWN_NAMES[0], UNKNOWN_NAMES[-1]])
def test_unknown_names_in_a_worker_process_raise_an_error(
    backend: str, select: tuple[str, ...], message: str
) -> None:
    """An unknown backend and an unsuitable law; the other names are checked by the same code."""
    with pytest.raises(RunError, match=message):
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
def test_laws_ops_and_cases_can_be_selected(select: tuple[str, ...], expected: Run) -> None:
    ids = [r.case.id for r in examine("Small", select, in_process=True).results]
    beginnings = [text.replace("values/", "values.read-back/") for text in select]
    selected = [r.case.id for r in expected.results if any(r.case.id.startswith(b) for b in beginnings)]
    assert ids == selected
    assert 0 < len(ids) <= len(expected.results)


def test_options_are_passed_to_the_backend_class() -> None:
    select = ("values.read-back/full/float32",)
    assert failures(examine("WithOptions", select))
    outcome = examine("WithOptions", select, options={"correct": True, "device": "fast"})
    assert not failures(outcome)
    assert outcome.about["device"] == "fast"
    for in_process in (True, False):
        with pytest.raises(RunError, match=r"cannot be made with speed: .*; its options: correct, device"):
            examine("WithOptions", select, options={"speed": 3}, in_process=in_process)


def test_options_are_passed_to_installed_backends() -> None:
    with pytest.raises(RunError, match="backend 'numpy' cannot be made with speed"):
        examine("numpy", READ_BACK, options={"speed": 3})
    assert not failures(examine("reference", ("values.read-back/full",), options={"device": None}))


@pytest.mark.parametrize("in_process", [False])
def test_faulty_laws_do_not_end_the_run(in_process: bool) -> None:
    outcome = examine("conformance.tests.fake_laws:Small", ("fake",), in_process=in_process)
    results = {r.case.id: r for r in outcome.results}
    unlisted = results["fake.unlisted/enumeration"]
    assert (unlisted.status, unlisted.says) == (
        "crashed",
        "its cases cannot be listed: OSError: the list is gone",
    )
    assert results["fake.chain/first"].says == "it always does"
    assert results["fake.chain/second"].status == "passed"
    waiting = [r for r in outcome.results if r.case.law == "fake.waiting"]
    assert {r.says for r in waiting} == {"blocked by fake.chain/first"}
    report = make(outcome)
    assert report.blocked == {"fake.chain/first": 5}
    assert [r.case.id for r in report.failures] == ["fake.chain/first", "fake.unlisted/enumeration"]


def test_performance_is_measured_last_and_alone() -> None:
    outcome = run(
        Options(
            "numpy", select=("performance.profile/launch", "values.read-back/new/float32/small"), workers=2
        )
    )
    assert [r.case.law for r in outcome.results] == ["values.read-back", "performance.profile"]
    assert outcome.laws[-1]["stage"] >= runner.ALONE
    from tensorken_conformance.law import LAWS

    assert all(stage_of(law) < runner.ALONE for law in LAWS.values() if law.group != "performance")


@pytest.mark.parametrize(
    ("stderr", "start"),
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
def test_last_words_names_the_error_and_the_innermost_frame(stderr: bytes, start: str) -> None:
    assert last_words(stderr).startswith(start)


def test_finders_select_the_recorded_cases() -> None:
    plan = Plan(load("numpy"), ["finders"])
    selected = {case.id for law in plan.laws for case in plan.cases(law)}
    laws = {law.id for law in plan.laws}
    recorded = {id for id in finders().values() if id.split("/")[0] in laws}
    assert len(selected) > 250
    missing = recorded - selected  # only backends with wrong declarations have these cases
    assert all(id.startswith(("declarations.", "lifetime.results-stay")) for id in missing), missing
    assert len(missing) < 0.03 * len(recorded)
