"""The file of expected failures: its syntax, its location, and the results that it changes."""

from __future__ import annotations

import datetime
import importlib
import sys
from pathlib import Path

import pytest

from tensorken.lazy.interpreter import Lazy
from tensorken_conformance.case import Case, Result
from tensorken_conformance.expectations import ExpectationError, apply, expectations_of, parse
from tensorken_numpy.backend import Numpy

TODAY = datetime.date(2027, 1, 31)
LINE = "values.cast/*  | rounds down | https://example.org/1 | 2027-01-31"

CAST = Result(Case("values.cast", "cast", "int32"), "failed", 2, "expected 1, got 2")
FLIP = Result(Case("values.movement", "flip", "int32"), "passed", 1)


def test_parse_reads_lines_and_skips_comments():
    text = (
        f"# known failures\n\n{LINE}\n   # a comment\nvalues.sums/sum/float16 | a | http://b.c | 2030-12-01\n"
    )
    first, second = parse(text, "mine/conformance.txt")
    assert (first.id, first.reason, first.url, first.expires) == (
        "values.cast/*",
        "rounds down",
        "https://example.org/1",
        TODAY,
    )
    assert (first.place, second.place) == ("mine/conformance.txt:3", "mine/conformance.txt:5")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("values.cast/cast", "none of them empty"),
        ("values.cast/cast | a | https://b.c", "id | reason | url | expires"),
        ("values.cast/cast |  | https://b.c | 2030-01-01", "none of them empty"),
        ("values.cast/cast | a | https://b.c | 2030-01-01 | more", "none of them empty"),
        ("values.cast/cast | a | b.c | 2030-01-01", "'b.c' is no URL"),
        ("values.cast/cast | a | https://b.c | never", "'never' is no date"),
        ("values.cast/cast | a | https://b.c | 2030-02-30", "no date"),
        ("cast | a | https://b.c | 2030-01-01", "'cast' is no id of a case"),
        (LINE, "is expected at conformance.txt:1, too"),
    ],
)
def test_the_error_of_a_malformed_line_names_file_and_line(line: str, message: str):
    with pytest.raises(ExpectationError) as caught:
        parse(f"{LINE}\n{line}")
    assert str(caught.value).startswith("conformance.txt:2: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_script_of_the_package_can_take_the_place_of_a_url():
    [expected] = parse("values.cast/cast | rounds twice | bugs/cast.py | 2030-01-01")
    assert expected.url == "bugs/cast.py"


def test_a_failure_is_expected_until_it_expires():
    [result], problems = apply(parse(LINE), [CAST], today=TODAY)
    assert (result.status, problems) == ("expected failure", [])
    assert result.says == "rounds down (https://example.org/1, until 2027-01-31): expected 1, got 2"
    [result], problems = apply(parse(LINE), [CAST], today=TODAY + datetime.timedelta(1))
    assert (result.status, problems) == ("failed", [])
    assert "expired on 2027-01-31, conformance.txt:1" in result.says
    passes = Result(CAST.case, "passed", 2)
    [result], _ = apply(parse(LINE), [passes], today=TODAY + datetime.timedelta(1))
    assert result.status == "failed"
    assert result.says == (
        "passes now: take it out of conformance.txt:1 (its expectation expired on 2027-01-31)"
    )


def test_expected_failures_that_pass_fail():
    passes = Result(CAST.case, "passed", 2)
    [result], _ = apply(parse(LINE), [passes], today=TODAY)
    assert (result.status, result.says) == ("failed", "passes now: take it out of conformance.txt:1")
    both = [CAST, Result(Case("values.cast", "cast", "bool"), "passed", 2)]
    assert [r.status for r in apply(parse(LINE), both, today=TODAY)[0]] == ["expected failure", "failed"]
    unsupported = Result(CAST.case, "unsupported", 2, "has no int32")
    [result], problems = apply(parse(LINE), [unsupported], today=TODAY)
    assert result.status == "unsupported"
    assert len(problems) == 1
    assert "is declared unsupported" in problems[0]


def test_drawn_cases_may_pass_or_be_missing():
    expected = parse("~values.c*/* | a | http://b.c | 2027-01-31\n~errors.*/* | a | http://b.c | 2027-01-31")
    passed = Result(CAST.case, "passed", 2)
    results, problems = apply(expected, [CAST], today=TODAY)
    assert ([result.status for result in results], problems) == (["expected failure"], [])
    results, problems = apply(expected, [passed, FLIP], today=TODAY)
    assert ([result.status for result in results], problems) == (["passed", "passed"], [])


def test_an_id_that_matches_no_case_is_a_problem():
    results, problems = apply(parse(LINE), [FLIP], today=TODAY)
    assert results == [FLIP]
    assert problems == ["conformance.txt:1: values.cast/* matches no case"]
    assert apply(parse(LINE), [FLIP], today=TODAY, complete=False) == ([FLIP], [])


def test_the_star_is_the_only_wildcard():
    line = "a.b/x[0].y/*/z | r | https://u | 2030-01-01"
    matching, other = Case("a.b", "x[0].y", "d", "z"), Case("a.b", "x0.y", "d", "z")
    results = [Result(matching, "failed", 1), Result(other, "failed", 1)]
    assert [r.status for r in apply(parse(line), results, today=TODAY)[0]] == ["expected failure", "failed"]


def test_a_crash_may_be_expected():
    crash = Result(CAST.case, "crashed", 0, "crash: signal 11")
    assert apply(parse(LINE), [crash], today=TODAY)[0][0].status == "expected failure"


def test_cases_blocked_by_an_expected_failure_are_expected_failures():
    first = Result(Case("values.sums", "sum"), "failed", 2, f"blocked by {CAST.case.id}")
    second = Result(Case("values.norms", "norm"), "failed", 2, f"blocked by {first.case.id}")
    other = Result(Case("values.norms", "dot"), "failed", 2, "blocked by something/else")
    results, _ = apply(parse(LINE), [second, first, CAST, other], today=TODAY)
    assert [r.status for r in results] == ["expected failure"] * 3 + ["failed"]


PACKAGE = """
from tensorken_numpy.backend import Numpy
class Mine(Numpy): pass
"""


def test_the_file_is_read_from_the_package_of_the_backend_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    package = tmp_path / "expecting_backend"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    (package / "inner" / "__init__.py").write_text(PACKAGE, "utf-8")
    (tmp_path / "expecting_module.py").write_text(PACKAGE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    inner = importlib.import_module("expecting_backend.inner")
    assert expectations_of(inner.Mine()) == []
    (package / "conformance.txt").write_text(f"# größer\n{LINE}\n", "utf-8")
    [expectation] = expectations_of(inner.Mine())
    assert expectation.place == "expecting_backend/conformance.txt:2"
    assert expectations_of(Lazy(inner.Mine())) == [expectation]
    (package / "conformance.txt").write_text("nonsense", "utf-8")
    with pytest.raises(ExpectationError, match=r"expecting_backend/conformance.txt:1: expected `id"):
        expectations_of(inner.Mine())
    alone = importlib.import_module("expecting_module")
    assert expectations_of(alone.Mine()) == []
    assert expectations_of(Numpy()) == []
    for name in ("expecting_backend.inner", "expecting_backend", "expecting_module"):
        del sys.modules[name]
