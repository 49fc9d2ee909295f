"""Comparison of two reports, and the matrix of several backends."""

from __future__ import annotations

import dataclasses

import pytest

from conformance.tests.sample_reports import FAILED, PASSED, report, result
from tensorken_conformance.case import Result
from tensorken_conformance.report import tables
from tensorken_conformance.report.diff import compare
from tensorken_conformance.report.markdown import several_to_markdown
from tensorken_conformance.report.page import several_to_page
from tensorken_conformance.report.terminal import blocks_of_several, plain
from tensorken_core.host.plugin import Capabilities

DECLARED = Capabilities(dtypes=("int32", "float32"), ulp={"exp": 2})


def changes(old: object, new: object, **options: float) -> dict[str, tuple[tuple[str, ...], bool]]:
    """The changes between two reports by title: their lines, and whether they are worse."""
    difference = compare(old, new, **options)  # type: ignore[arg-type]
    assert difference.status == difference.worse
    return {change.title: (change.lines, change.worse) for change in difference.changes}


def replaced(id: str, **fields: object) -> list[Result]:
    """The results of PASSED with other fields for one case."""
    assert any(r.case.id == id for r in PASSED)
    return [dataclasses.replace(r, **fields) if r.case.id == id else r for r in PASSED]  # type: ignore[arg-type]


def test_a_report_does_not_differ_from_itself() -> None:
    difference = compare(report(), report())
    assert (difference.status, difference.changes) == (0, ())
    assert difference.text.endswith("no difference")


def test_new_failures_and_a_lower_level_are_worse() -> None:
    changed = changes(report(), report(FAILED))
    lines, worse = changed["new failures"]
    assert worse
    assert lines[0].startswith("values.sample/log/float32/prime/normals (was new): log(2.0)")
    assert lines[-1] == "2 cases that wait for one that failed"
    assert changed["level lower"] == (("L4 -> L1",), True)


def test_mended_failures_and_a_higher_level_are_not_worse() -> None:
    ids = {r.case.id for r in FAILED}
    mended = [r if r.status == "passed" else result(r.case.id, level=r.level) for r in FAILED]
    assert {r.case.id for r in mended} == ids
    changed = changes(report(FAILED), report(mended))
    assert not any(worse for _, worse in changed.values())
    assert changed["level higher"][0] == ("L1 -> L4",)
    assert len(changed["mended"][0]) == 5


def test_a_lost_dtype_or_op_is_worse_and_a_gained_one_is_not() -> None:
    ints = [r for r in PASSED if r.case.dtype != "int32"]
    smaller = report(ints, capabilities=dataclasses.replace(DECLARED, dtypes=("float32",)), level=4)
    assert changes(report(), smaller)["lost capabilities"] == (("dtype int32",), True)
    assert changes(smaller, report())["gained capabilities"] == (("dtype int32",), False)
    assert changes(report(), smaller)["cases that are gone"][1] is False
    refusing = report(replaced("values.sample/add/int32/prime/normals", status="unsupported"))
    assert changes(report(), refusing)["lost capabilities"][0] == ("add in int32",)


def test_a_larger_declared_error_and_nondeterminism_are_worse() -> None:
    weaker = dataclasses.replace(DECLARED, ulp={"exp": 3}, nondeterministic=("sum",))
    lines, worse = changes(report(), report(capabilities=weaker))["lost capabilities"]
    assert worse
    assert lines == ("sum: now nondeterministic", "exp: an error of 2 ULP declared, 3 here")


def test_a_larger_measured_error_is_worse() -> None:
    id = "values.sample/exp/float32/prime/normals"
    larger = replaced(id, ulp=1.5, worst="exp(9.0)")
    changed = changes(report(), report(larger))
    assert changed["less exact"] == (("exp in float32: 0.75 -> 1.5 ULP, at exp(9.0)",), True)
    assert changes(report(larger), report())["more exact"][1] is False
    assert "less exact" not in changes(report(), report(larger, seed=1))
    assert "less exact" in changes(report(), report(replaced(id, ulp=1.8), seed=1))


@pytest.mark.parametrize(
    ("ratio", "slower", "worse"), [(3.1, 2.0, True), (2.9, 2.0, False), (2.9, 1.5, True)]
)
def test_times_are_compared_relative_to_numpy(ratio: float, slower: float, worse: bool) -> None:
    figures = {"microseconds": 1.0, "numpy microseconds": 1.0, "ratio": ratio}
    slow = report(replaced("performance.profile/exp/float32/small", figures=figures))
    assert compare(report(), slow, slower=slower).worse is worse
    assert compare(slow, report(), slower=slower).worse is False


def test_the_header_names_differences_of_the_runs() -> None:
    text = compare(report(kit="0.0.1"), report(seed=1, select=("values",), distribution="other")).text
    assert "two kits: 0.0.1 and 0.1.0" in text
    assert "two seeds or depths" in text
    assert "two backends: tensorken-mine and other" in text
    assert "only a part of the laws was examined" in text


def test_a_new_problem_is_worse() -> None:
    assert compare(report(), report(problems=["new"])).worse
    assert not compare(report(problems=["old"]), report(problems=["old"])).worse


# ---- several backends --------------------------------------------------------------------------------------

REPORTS = [report(), report(FAILED, backend="other"), report(kit="0.1.0")]


def test_the_matrix_has_a_row_for_each_op_and_marks_stale_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(blocks_of_several(REPORTS))
    lines = text.splitlines()
    assert lines[0].split() == list(tables.backends(REPORTS).head)
    assert "mine 0.3.1" not in lines[2]
    row = next(line for line in lines if line.startswith("log"))
    assert "1/1! infu" in row
    assert next(line for line in lines if line.startswith("add")).split()[1:] == ["2", "0u"] * 3
    assert "stale" not in text
    monkeypatch.setattr("tensorken_conformance.report.model.installed", lambda name: "0.9.0")
    assert "0.1.0 stale" in plain(blocks_of_several(REPORTS))
    assert "0.1.0 stale" in several_to_markdown(REPORTS)
    assert "0.1.0 stale" in several_to_page(REPORTS)


def test_the_matrix_in_markdown_and_html() -> None:
    markdown = several_to_markdown(REPORTS)
    assert {line.count("|") for line in markdown.splitlines() if line.startswith("| exp")} == {5}
    page = several_to_page(REPORTS)
    assert "<td class=failed>1/1! infu</td>" in page
    assert "http" not in page
