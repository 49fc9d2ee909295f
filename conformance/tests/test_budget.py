"""Runs with a budget of time, runs that resume another one, and runs that repeat failed cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.tests import fake_backends
from tensorken_conformance.backends.loading import load
from tensorken_conformance.cli import main
from tensorken_conformance.detection.finders import finders
from tensorken_conformance.law import LAWS
from tensorken_conformance.report.journal import load_either
from tensorken_conformance.report.model import make
from tensorken_conformance.running.options import Options, Run
from tensorken_conformance.running.plan import Plan
from tensorken_conformance.running.run import run

CORRECT, FAULTY = f"{fake_backends.MODULE}:Small", f"{fake_backends.MODULE}:FillsWithZeros"
SELECT = ("values.read-back/full", "values.sums/sum")


@pytest.fixture
def ends_after(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Spends the budget after a number of results, whatever the time."""

    def spend(count: int) -> None:
        monkeypatch.setattr(Run, "is_over_budget", property(lambda run: len(run.results) >= count))

    return spend


@pytest.mark.parametrize("in_process", [True, False])
def test_a_spent_budget_ends_a_run_and_another_one_goes_on(
    in_process: bool, ends_after: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--select", SELECT[0], "--select", SELECT[1], *["--in-process"] * in_process]
    path, rest = str(tmp_path / "report.json"), str(tmp_path / "rest.json")
    whole = run(Options(CORRECT, select=SELECT, in_process=True))
    ends_after(3)
    assert main(["run", CORRECT, *options, "--budget", "1000", "--brief", "--json", path]) == 0
    out = capsys.readouterr().out
    report = load_either(path)
    count = len(report.results)
    assert 3 <= count < len(whole.results)
    said = (
        f"{count} of {len(whole.results)} cases examined, so far no level"  # no case of level 0 was selected
    )
    assert f"PARTIAL: the budget of 1000 s is spent; {said}" in out
    assert report.header.planned == len(whole.results)
    ends_after(10_000)
    again = ["--in-process"] * in_process
    assert main(["run", CORRECT, *again, "--resume", path, "--json", rest]) == 0
    resumed = load_either(rest)
    assert sorted(r.case.id for r in resumed.results) == sorted(r.case.id for r in whole.results)
    assert (resumed.header.partial, resumed.header.select) == ("", SELECT)
    kept = {r.case.id: r.seconds for r in report.results}
    assert {
        r.case.id: r.seconds for r in resumed.results if r.case.id in kept
    } == kept  # they did not run again


def test_the_report_says_the_level_so_far(ends_after: Any) -> None:
    outcome = Run(Options(CORRECT, budget=5.0), planned=1119)
    outcome.results = run(Options(CORRECT, select=("host", *SELECT), in_process=True)).results
    outcome.capabilities = {"dtypes": ("bool", "float32")}
    outcome.end_at_budget()
    report = make(outcome)
    assert report.so_far == f"{len(outcome.results)} of 1,119 cases examined, so far L2"
    assert report.header.level_name == "no level"
    assert report.so_far in report.claim


def test_a_run_that_ends_in_time_is_whole() -> None:
    outcome = Run(Options(CORRECT, budget=5.0), planned=1)
    outcome.results = run(Options(CORRECT, select=("host",), in_process=True)).results
    outcome.end_at_budget()
    assert outcome.partial == ""


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        (Options("numpy"), float("inf")),
        (Options("numpy", depth="smoke"), 60.0),
        (Options("numpy", depth="smoke", budget=0.0), float("inf")),
        (Options("numpy", budget=5.0), 5.0),
    ],
)
def test_a_smoke_run_has_a_minute(options: Options, seconds: float) -> None:
    assert options.seconds == seconds
    assert options.turns == (1 if seconds == float("inf") else 2)


def test_with_a_budget_the_cases_that_found_faults_come_first() -> None:
    subject = load("numpy")
    plan, usual = Plan(subject, ("values.sums",), turns=2), Plan(subject, ("values.sums",))
    first, later = plan.part(LAWS["values.sums"], 0, 2), plan.part(LAWS["values.sums"], 1, 2)
    found = {case.id for _, case in first}
    assert found == set(finders().values()) & {case.id for case in usual.cases(LAWS["values.sums"])}
    assert found and later
    assert sorted([*first, *later], key=lambda place: place[0]) == usual.part(LAWS["values.sums"], 0, 1)


def test_only_failed_cases_run_again(tmp_path: Path) -> None:
    path, again = str(tmp_path / "report.json"), str(tmp_path / "again.json")
    select = ["--in-process", "--select", "values.read-back"]
    assert main(["run", FAULTY, *select, "--json", path]) == 1
    failed = [r.case.id for r in load_either(path).failures]
    assert failed
    assert main(["run", FAULTY, "--in-process", "--failed-of", path, "--json", again]) == 1
    assert [r.case.id for r in load_either(again).results] == failed


def test_a_report_that_a_run_cannot_use_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "report.json")
    main(["run", CORRECT, "--in-process", "--select", SELECT[0], "--json", path])
    capsys.readouterr()
    for arguments, message in (
        ([CORRECT, "--resume", path], "lacks no case"),
        ([CORRECT, "--failed-of", path], f"no case of {path} failed"),
        ([FAULTY, "--resume", path], f"is a report on {CORRECT}, not on {FAULTY}"),
        ([CORRECT, "--resume", path, "--seed", "0"], "takes depth, seed, cases and options"),
        ([CORRECT, "--resume", path, "--failed-of", path], "takes depth, seed, cases and options"),
        ([CORRECT, "--resume", f"{path}x"], "there is no such file"),
    ):
        assert main(["run", *arguments]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", CORRECT, "--budget", "-1"])


def test_a_journal_of_a_resumed_run_has_all_results(ends_after: Any, tmp_path: Path) -> None:
    path, journal = str(tmp_path / "report.json"), tmp_path / "journal"
    ends_after(2)
    options = ["--in-process", "--select", SELECT[0], "--budget", "1000"]
    main(["run", CORRECT, *options, "--json", path])
    ends_after(10_000)
    main(["run", CORRECT, "--in-process", "--resume", path, "--results", str(journal)])
    lines = [json.loads(line) for line in journal.read_text("ascii").splitlines()]
    assert len(lines) - 1 == len(run(Options(CORRECT, select=SELECT[:1], in_process=True)).results)
