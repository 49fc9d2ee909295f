"""The summary of a report: counts, cells, levels, claims and blocked cases."""

from __future__ import annotations

import pytest

from conformance.tests.sample_reports import FAILED, PASSED, report, result
from tensorken_conformance.report.model import make, stale, timings, titles, written
from tensorken_conformance.running.options import Options, Run
from tensorken_core.host.plugin import Capabilities


def test_the_counts_add_up_to_the_cases() -> None:
    counts = report(FAILED).counts
    assert str(counts) == (
        "15 cases = 8 passed + 4 failed + 1 expected failures + 1 declared unsupported + 1 crashed"
    )
    assert counts.cases == len(FAILED)


def test_the_claim_of_a_run_that_passed() -> None:
    good = report()
    assert good.status == 0
    assert good.claim == "language 1.0 - L4 - int32, float32 - detection 78/78"


def test_the_claim_of_a_run_that_failed() -> None:
    bad = report(FAILED)
    assert bad.status == 1
    assert bad.header.level_name == "L1"
    assert {r.case.id for r in bad.obstacles} == {r.case.id for r in FAILED if r.level == 2} - {
        r.case.id for r in FAILED if r.status in ("passed", "unsupported")
    }


@pytest.mark.parametrize(
    ("header", "claim"),
    [
        ({"select": ("values",)}, "no level - int32, float32 - a part of the laws only"),
        ({"partial": "interrupted"}, "no level - int32, float32 - 8 cases examined, so far L4"),
        ({"partial": "interrupted", "planned": 1119}, "8 of 1,119 cases examined, so far L4"),
        ({"depth": "smoke"}, "L4 - int32, float32 - a smoke run only"),
        ({"faults": 0}, "L4 - int32, float32 - detection not measured"),
        (
            {"found": 31, "mutants": 40},
            "found 31 of 40 mutants that the laws were not written for, and all 78 known faults",
        ),
        ({"found": 31, "mutants": 40, "caught": 77}, "not written for, and 77 of 78 known faults"),
        ({"found": 31, "mutants": 40, "faults": 0}, "detection not measured"),
        ({"capabilities": Capabilities()}, "no level - no dtypes"),
    ],
)
def test_a_claim_names_the_limits_of_its_run(header: dict[str, object], claim: str) -> None:
    assert claim in report(**header).claim


def test_the_exit_status_of_selections_and_problems() -> None:
    assert report(select=("values",)).status == 0
    assert report([], select=("values",)).status == 1
    assert report(capabilities=Capabilities()).status == 1
    assert report(problems=["a line about nothing"]).status == 1


def test_cells_summarise_the_results_of_an_op_and_dtype() -> None:
    cells = report(FAILED).cells
    exp = cells["exp", "float32"]
    assert (exp.counts.passed, exp.ulp, exp.worst, exp.limit, exp.counts.worst) == (
        4,
        0.75,
        "exp(1.5)",
        2,
        "passed",
    )
    assert set(exp.laws) == {"values.sample", "derivatives.consistency", "performance.profile"}
    assert exp.laws["values.sample"][1] == 0.75
    assert cells["log", "float32"].counts.worst == "failed"
    assert (cells["log", "float32"].counts.bad, cells["log", "float32"].counts.ran) == (3, 3)
    assert cells["log", "int64"].counts.worst == "unsupported"
    assert cells["neg", "float32"].counts.worst == "expected failure"
    assert cells["erf", "float32"].counts.worst == "crashed"
    assert report(FAILED).dtypes == ["int32", "float32", "int64"]


def test_blocked_cases_are_counted_under_the_first_failure() -> None:
    bad = report(FAILED)
    assert bad.blocked == {"values.sample/log/float32/prime/normals": 2}
    assert [r.case.id.rsplit("/", 1)[0] for r in bad.failures] == [
        "values.sample/log/float32/prime",
        "values.sample/log/float32/prime",
        "values.sample/erf/float32/prime",
    ]
    assert {law.id: law.blocked for law in bad.by_law}["derivatives.consistency"] == 2


def test_cases_that_block_each_other_do_not_hang() -> None:
    a = result("values.read-back/a/int32", "failed", says="blocked by values.read-back/b/int32")
    b = result("values.read-back/b/int32", "failed", says="blocked by values.read-back/a/int32")
    assert sum(report([a, b]).blocked.values()) == 2


def test_timings_have_ratio_and_rate() -> None:
    [timing] = timings(report())
    assert (timing.name, timing.ratio, timing.rate) == ("exp/float32/small", 1.5, "2.25 GB/s")


@pytest.mark.parametrize(
    ("old", "new", "is_stale"),
    [
        ("0.1.0", "0.3.9", False),
        ("0.1.0", "0.4.0", True),
        ("0.9.0", "1.0.0", True),
        ("0.4.0", "0.1.0", False),
        ("", "0.4.0", False),
        ("0.1.0", "", False),
    ],
)
def test_a_report_of_an_older_minor_version_is_stale(old: str, new: str, is_stale: bool) -> None:
    assert bool(stale(report(kit=old), new)) is is_stale


def test_titles_of_reports_are_distinct() -> None:
    one, two = report(), report(version="0.4.0")
    assert titles([one, report(backend="other")]) == ["mine", "other"]
    assert titles([one, two]) == ["mine 0.3.1", "mine 0.4.0"]
    assert len(set(titles([one, one, one]))) == 3


def test_make_applies_expected_failures() -> None:
    run = Run(Options("mine"))
    run.results = [r for r in FAILED if r.case.law != "performance.profile"]
    run.laws = [{"id": "values.sample", "says": "so", "stage": 2}]
    run.capabilities = {"dtypes": ("int32", "float32")}
    line = {
        "reason": "it rounds down",
        "url": "https://example.org/1",
        "expires": "2099-01-01",
        "place": "conformance.txt:1",
    }
    run.expectations = [{"id": "values.sample/log/float32/*", **line}, {"id": "values.cast/*", **line}]
    made = make(run)
    assert made.counts.expected == 5
    assert made.counts.failed == 0
    assert made.problems == ("conformance.txt:1: values.cast/* matches no case",)
    assert made.status == 1
    assert made.remarks == ()
    run.partial = "interrupted"
    assert make(run).problems == ()
    run.partial, run.options = "", Options("mine", select=("values.sample",))
    made = make(run)
    assert made.problems == ()
    assert made.remarks == ("conformance.txt:1: values.cast/* was not examined",)


def test_errors_are_written_with_two_digits() -> None:
    assert [written(x) for x in (None, 0.0, 0.5, 9.96, 12.3, 2e6, float("inf"))] == [
        "",
        "0",
        "0.5",
        "10",
        "12",
        "2e+06",
        "inf",
    ]


def test_the_report_of_passed_results_has_status_0() -> None:
    assert report(PASSED).status == 0
