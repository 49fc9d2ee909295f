"""The formats of a report (JSON, JUnit, Markdown, text, HTML and badge), also with special characters in messages."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.tests.sample_reports import FAILED, PASSED, report, result
from tensorken_conformance import output
from tensorken_conformance.report import badge, serial, tables
from tensorken_conformance.report.diff import compare
from tensorken_conformance.report.journal import load_either
from tensorken_conformance.report.junit import to_junit
from tensorken_conformance.report.markdown import to_markdown
from tensorken_conformance.report.model import Report
from tensorken_conformance.report.page import FULL, to_page
from tensorken_conformance.report.terminal import blocks, to_text
from tensorken_core.host.plugin import Capabilities

SAMPLES = {
    "passed": report(),
    "failed": report(FAILED, ["a <problem>"]),
    "partial": report(PASSED[:1], partial="interrupted"),
    "empty": report([], capabilities=Capabilities()),
}

every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())


# ---- JSON --------------------------------------------------------------------------------------------------


@every_sample
def test_json_round_trip_preserves_the_report(sample: Report) -> None:
    text = serial.to_json(sample)
    assert text.isascii()
    assert serial.from_json(text) == sample


@every_sample
def test_json_conforms_to_its_schema(sample: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema, of the dependency group `test`")
    schema = serial.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(serial.to_json(sample)), schema, cls=jsonschema.Draft202012Validator)


def test_the_schema_rejects_invalid_reports() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema, of the dependency group `test`")
    data = serial.as_data(report(FAILED))
    for change in (
        lambda d: d.pop("counts"),
        lambda d: d["results"][0].update(status="fine"),
        lambda d: d["header"].update(level=7),
        lambda d: d.update(schema=2),
        lambda d: d["results"][0].update(ulp="much"),
    ):
        changed = json.loads(json.dumps(data))
        change(changed)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(changed, serial.schema())


def test_the_schema_has_exactly_the_properties_of_a_report() -> None:
    data, schema = serial.as_data(report(FAILED)), serial.schema()
    assert list(data) == list(schema["properties"])
    assert set(data["header"]) == set(schema["$defs"]["header"]["properties"])
    assert set(data["capabilities"]) == set(schema["$defs"]["capabilities"]["properties"])
    for name, rows in (("law", data["laws"]), ("cell", data["cells"]), ("result", data["results"])):
        assert {key for row in rows for key in row} == set(schema["$defs"][name]["properties"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a report"),
        ("{}", "not a report"),
        ("[1]", "not a report"),
        ('{"schema": 99}', "pip install -U"),
        ('{"schema": 1}', "not a whole report: KeyError"),
        ('{"schema": 1, "header": 3}', "not a whole report"),
    ],
)
def test_invalid_json_is_rejected(text: str, message: str) -> None:
    with pytest.raises(serial.ReportError, match=message):
        serial.from_json(text, "file.json")


def test_a_missing_or_binary_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(serial.ReportError, match="nowhere"):
        load_either(tmp_path / "nowhere.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(serial.ReportError, match="binary"):
        load_either(tmp_path / "binary")


def test_unknown_fields_of_a_later_kit_are_ignored() -> None:
    data = serial.as_data(report())
    data["weather"] = "fine"
    data["header"]["weather"] = data["results"][0]["weather"] = data["capabilities"]["weather"] = "fine"
    assert serial.from_json(json.dumps(data)) == report()


# ---- JUnit -------------------------------------------------------------------------------------------------


@every_sample
def test_junit_has_the_counts_of_the_report(sample: Report) -> None:
    text = to_junit(sample)
    assert text.isascii()
    top = ElementTree.fromstring(text)
    cases = [case for suite in top if suite.get("name") != "problems" for case in suite.iter("testcase")]
    counts = sample.counts
    assert len(cases) == counts.cases == int(top.attrib["tests"])
    assert len([c for c in cases if c.find("failure") is not None]) == counts.failed
    assert len([c for c in cases if c.find("error") is not None]) == counts.crashed
    skipped = [c for c in cases if c.find("skipped") is not None]
    assert len(skipped) == counts.unsupported + counts.expected
    for suite in top:
        assert int(suite.attrib["tests"]) == len(list(suite.iter("testcase")))
    problems = [
        e.get("message") for suite in top if suite.get("name") == "problems" for e in suite.iter("failure")
    ]
    assert problems == list(sample.problems)


def test_junit_failures_have_message_and_script() -> None:
    [failure, *_] = ElementTree.fromstring(to_junit(report(FAILED))).iter("failure")
    assert failure.get("message", "").startswith("log(2.0): expected 0.69, got 0.7 snow \N{SNOWMAN}")
    assert "print(tk.log(2.0) < 3)  # <&>" in (failure.text or "")


# ---- text, Markdown, badge ---------------------------------------------------------------------------------


def test_text_shows_failures_and_levels() -> None:
    text = to_text(report(FAILED, ["a problem"]))
    for part in (
        "log         3/3! infu  -",
        "3/3! infu",
        "1~",
        "1/1!",
        "values.sample/log/float32/prime/normals\n    log(2.0): expected 0.69, got 0.7",
        "      import tensorken as tk\n      print(tk.log(2.0) < 3)",
        "  2 by values.sample/log/float32/prime/normals",
        "L2 numerics         prevented by 4 cases: 4 of values.sample",
        "L3 differentiation  needs the lower levels",
        "PROBLEM: a problem",
        "15 cases = 8 passed + 4 failed + 1 expected failures + 1 declared unsupported + 1 crashed",
        "mine: language 1.0 - L1 - int32, float32 - detection 78/78",
    ):
        assert part in text, part
    assert text.isascii()
    assert "\x1b" not in text
    assert "snow \\u2603 | <b>`x`</b> ]]> & \\x00\\x1b[31m" in text


class Terminal(io.StringIO):
    """A terminal of some width and encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def shown(
    sample: Report,
    monkeypatch: pytest.MonkeyPatch,
    columns: int = 80,
    encoding: str = "utf-8",
    **variables: str,
) -> str:
    """The report as a terminal shows it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": str(columns), **variables}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal(encoding)
    output.show(blocks(sample), terminal)
    return terminal.getvalue()


SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")

TEN_DTYPES = (*(f"int{n}" for n in range(5)), *(f"float{n}" for n in range(5)))

WIDE = report(
    [result(f"values.sample/op{i}/{dtype}/prime", ulp=1e6) for i in range(3) for dtype in TEN_DTYPES],
    capabilities=Capabilities(dtypes=TEN_DTYPES),
)


@pytest.mark.parametrize("columns", [60, 80, 120, 300])
def test_a_terminal_shows_all_fields_in_tables_of_its_width(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SEQUENCE.sub("", shown(WIDE, monkeypatch, columns))
    matrix, _, rest = text.partition("\nlaw ")
    tables_shown = [line for line in matrix.splitlines() if line.startswith("op ")]
    assert " ".join(" ".join(line.split()[1:]) for line in tables_shown).split() == list(TEN_DTYPES)
    assert text.count("1 1e+06u") == 30
    assert max(len(line) for line in matrix.splitlines() if line.startswith("op")) <= columns
    assert (len(tables_shown) == 1) == (columns >= 112)
    assert "\u2026" not in text
    assert rest


def test_a_terminal_shows_what_a_pipe_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    def words(text: str) -> str:
        return " ".join(re.sub("[\u2500-\u257f]", "", SEQUENCE.sub("", text)).split())

    for sample in SAMPLES.values():
        assert words(shown(sample, monkeypatch, columns=400)) == words(to_text(sample))


def test_colours_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = SAMPLES["failed"]
    red = re.compile(r"\x1b\[[0-9;]*31m")
    assert red.search(shown(sample, monkeypatch))
    text = shown(sample, monkeypatch, NO_COLOR="1")
    assert not red.search(text)
    assert "\u2500" in text
    assert shown(sample, monkeypatch, TERM="dumb") == to_text(sample)
    assert SEQUENCE.sub("", shown(sample, monkeypatch, encoding="ascii")).isascii()


def test_text_shows_a_few_failures_of_a_law_and_counts_the_rest() -> None:
    many = [
        result(f"values.sample/{op}/float32/{i}", "failed", says=f"{op} {i}", script=("a",) * 9)
        for op in ("exp", "log")
        for i in range(50)
    ]
    text = to_text(report(many), matrix=False)
    assert "exp 0" in text
    assert "log 0" in text
    assert text.count("says") == 0
    assert "... and 97 more; 100 in all, of exp, log" in text
    assert text.count("      a\n") == 15
    assert "op    " not in text


CAUSE = "TypeError raised by tensorken_mine.backend in line 40"

WITH_A_CAUSE = [
    *[
        result(
            f"{law}/{op}/float32/{i}",
            "failed",
            says=f"TypeError: no {op}",
            script=("the script",),
            cause=CAUSE,
        )
        for law in ("values.sample", "derivatives.consistency")
        for op in ("exp", "log")
        for i in range(3)
    ],
    *[
        result(f"values.sample/sin/float32/{i}", "failed", says="rare", cause="KeyError there")
        for i in (1, 2, 3)
    ],
    result("values.sample/cos/float32/prime", "failed", says="cos is off"),
]


def test_failures_with_one_exception_are_one_failure_in_every_form() -> None:
    title = f"12 failures by one exception: {CAUSE}"
    [cause] = tables.causes(report(WITH_A_CAUSE))
    assert cause.title == title
    assert cause.cases == "6 of values.sample, 6 of derivatives.consistency; exp, log"
    [rest] = tables.failures(report(WITH_A_CAUSE))
    assert [one.says for one in rest.results] == ["rare", "rare", "rare", "cos is off"]
    for form in (to_text(report(WITH_A_CAUSE)), Page(to_page(report(WITH_A_CAUSE))).text):
        assert title in form
        assert cause.cases in form
        assert form.count("the script") == 1
        assert "cos is off" in form
    assert title.replace("_", "\\_") in to_markdown(report(WITH_A_CAUSE))
    [of_one_op] = tables.causes(report([one for one in WITH_A_CAUSE if one.case.op == "exp"]))
    assert of_one_op.title == f"6 failures by one exception: {CAUSE}: TypeError: no exp"
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert f"```text\n{of_one_op.title}\n  {of_one_op.cases}\n```" in page


def test_failures_by_one_inaccurate_op_are_one_failure() -> None:
    results = [replace(one, cause="with exp, which is inaccurate itself") for one in WITH_A_CAUSE]
    [cause] = tables.causes(report(results))
    assert cause.title == "16 failures with exp, which is inaccurate itself"
    assert cause.title in to_text(report(results))
    assert cause.title in Page(to_page(report(results))).text


def test_markdown_escapes_text_and_its_tables_are_regular() -> None:
    text = to_markdown(report(FAILED, ["a <problem>"]))
    assert "## mine 0.3.1: L1, failed" in text
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "* problem: a &lt;problem&gt;" in text
    tables: dict[int, set[int]] = {}
    number = 0
    for line in text.splitlines():
        if line.startswith("|"):
            tables.setdefault(number, set()).add(line.count("|"))
        else:
            number += 1
    assert tables
    assert all(len(widths) == 1 for widths in tables.values())


@pytest.mark.parametrize(
    ("sample", "message", "colour"),
    [
        ("passed", "L4", "green"),
        ("failed", "L1 failing", "red"),
        ("partial", "partial", "lightgrey"),
        ("empty", "no level", "red"),
    ],
)
def test_badge_shows_the_level(sample: str, message: str, colour: str) -> None:
    data = json.loads(badge.to_shields(SAMPLES[sample]))
    assert data["schemaVersion"] == 1
    assert (data["label"], data["message"], data["color"]) == ("tensorken", message, colour)
    image = ElementTree.fromstring(badge.to_svg(SAMPLES[sample]))
    assert [e.text for e in image.iter("{http://www.w3.org/2000/svg}text")] == ["tensorken", message]


# ---- HTML ---------------------------------------------------------------------------------------------------

VOID = {"meta", "input", "rect", "line", "br"}


class Page(HTMLParser):
    """Parse an HTML page, and check that its tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@every_sample
def test_a_page_is_valid_html_without_external_resources(sample: Report) -> None:
    text = to_page(sample)
    assert text.isascii()
    page = Page(text)
    assert page.open == []
    assert "http" not in re.sub(r"https://x\.y", "", text)
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "b-x"}
    assert all("src" not in attributes for _, attributes in page.tags)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for tag, attributes in page.tags:
        if tag == "a":
            assert (attributes["href"] or "").removeprefix("#") in ids
    assert f"{sample.header.title}: {sample.claim}" in page.text
    counts = sample.counts
    outcomes = (counts.passed, counts.failed, counts.crashed, counts.expected, counts.unsupported)
    assert re.findall(r"<li[^>]*><b>([\d,]+)</b>", text) == [f"{number:,}" for number in outcomes]


@every_sample
def test_a_page_is_accessible(sample: Report) -> None:
    page = Page(to_page(sample))
    depths = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert depths[0] == 1
    assert depths.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(depths)), depths
    for tag, attributes in page.tags:
        if tag == "svg":
            assert attributes.get("aria-hidden") or (attributes["role"] == "img" and attributes["aria-label"])
        if tag == "th":
            assert attributes["scope"] in ("col", "row")
        if "tabindex" in attributes and tag != "pre":
            assert attributes["aria-label"]
    assert ("html", {"lang": "en"}) in page.tags


SHADES = re.compile(r"--([\w-]+): (#\w+);")


def luminance(colour: str) -> float:
    """The relative luminance of `#rgb` or `#rrggbb`, by WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_colours_of_a_page_have_the_contrast_of_wcag_aa(scheme: int) -> None:
    look = (resources.files("tensorken_conformance.report") / "templates" / "page.css").read_text()
    light, dark = (dict(SHADES.findall(block)) for block in look.split(":root {")[1:3])
    assert light.keys() == dark.keys()
    shades = (light, dark)[scheme]
    texts = [(ink, ground) for ink in ("ink", "soft") for ground in ("paper", "panel", "none")]
    texts += [(f"{status}-ink", ground) for status in ("good", "bad", "odd") for ground in (status, "paper")]
    texts += [("link", "paper")]
    bars = [(name, "paper") for name in shades if name.endswith("bar")] + [("mark", "panel")]
    for pairs, least in ((texts, 4.5), (bars, 3.0)):
        for pair in pairs:
            darker, lighter = sorted(luminance(shades[name]) for name in pair)
            assert (lighter + 0.05) / (darker + 0.05) >= least, pair


def test_a_page_has_the_levels_and_the_cases_of_each_group() -> None:
    page = Page(to_page(SAMPLES["failed"]))
    steps = [attributes["class"] for tag, attributes in page.tags if tag == "li" and "class" in attributes][
        :6
    ]
    assert steps == ["reached", "reached", "next", "later", "later", "later"]
    assert "L2 numerics\nprevented by 4 cases\nall ops work on all values" in page.text
    assert "L2 numerics is prevented by 4 cases: 4 of values.sample." in page.text
    labels = [attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg"]
    assert labels[:3] == [
        "values: 6 passed, 2 failed, 1 crashed, 1 expected failures, 1 unsupported",
        "derivatives: 1 passed, 2 failed",
        "performance: 1 passed",
    ]
    assert Page(to_page(SAMPLES["passed"])).text.count("\nreached\n") == 5


def test_a_page_shows_failures_with_scripts() -> None:
    page = Page(to_page(SAMPLES["failed"]))
    assert "print(tk.log(2.0) < 3)  # <&>" in page.text
    assert "log(2.0): expected 0.69, got 0.7 snow" in page.text
    assert "2 cases wait for values.sample/log/float32/prime/normals" in page.text
    assert "Problem: a <problem>" in page.text
    assert "b" not in {tag for tag, _ in page.tags if tag == "script-b"}


def test_a_page_marks_statuses_by_text_as_well_as_colour() -> None:
    text = to_page(SAMPLES["failed"])
    assert re.search(r"<td class=failed><a [^>]*>3/3!", text)
    assert re.search(r"<td class=crashed><a [^>]*>1/1!!", text)
    assert re.search(r"<td class=unsupported><a [^>]*>-<", text)
    assert re.search(r"<td class=expected><a [^>]*>1~", text)


def test_a_page_draws_errors_relative_to_declared_ones_and_times_relative_to_numpy() -> None:
    page = Page(to_page(report()))
    labels = [attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg"]
    assert "exp in float32: 0.75 of 2 ULP" in labels
    assert "exp/float32/small: 1.5 times as long as numpy, 3 us, 2.25 GB/s" in labels


@pytest.mark.parametrize("bad", [0.0, 0.05, 1.0])
def test_a_page_of_many_cases_stays_small(bad: float) -> None:
    dtypes = ("bool", "int32", "int64", "float16", "float32", "float64")
    results = []
    for i in range(40_000):
        fails = i % 1000 < bad * 1000
        results.append(
            result(
                f"values.law-{i % 40}/op{i // 6 % 100}/{dtypes[i % 6]}/prime/normals/{i}",
                "failed" if fails else "passed",
                says=f"expected 1.0, got 2.0 at {i}, with a longer explanation" if fails else "",
                script=("import tensorken as tk", f"x = tk.tensor([{i}])", "print(tk.exp(x))")
                if fails
                else (),
                ulp=float(i % 7),
                worst=f"f({i})",
            )
        )
    text = to_page(report(results, capabilities=Capabilities(dtypes=dtypes)))
    assert len(text) < 1_500_000
    page = Page(text)
    shown = [attributes for tag, attributes in page.tags if attributes.get("class") == "case"]
    assert len(shown) <= max(FULL, 40)
    ids = {attributes.get("id") for _, attributes in page.tags}
    links = {(attributes["href"] or "")[1:] for tag, attributes in page.tags if tag == "a"}
    assert links <= ids
    if bad:
        assert len(shown) >= 40


def test_remarks_are_in_text_html_and_markdown() -> None:
    remark = "conformance.txt:1: values.cast/* was not examined"
    sample = dataclasses.replace(report(), remarks=(remark,))
    assert f"NOTE: {remark}" in to_text(sample)
    assert f"Note: {remark}" in to_page(sample)
    assert "was not examined" in to_markdown(sample)
    assert serial.from_json(serial.to_json(sample)).remarks == (remark,)
    assert sample.status == 0


WRONG: list[Any] = [None, True, -1, 1.5, "text", "\x1b[2J", [], [[]], {}, {"a": [1]}]
"""Values of each type of JSON."""


def _places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, item in items:
        yield from _places(item, (*at, name))


def test_a_report_with_any_value_at_any_place_is_refused_or_read_whole() -> None:
    whole = report(FAILED)
    text = serial.to_json(whole)
    refused = 0
    for at in [*_places(json.loads(text))][1:]:
        for value in WRONG:
            data = json.loads(text)
            inner = data
            for name in at[:-1]:
                inner = inner[name]
            inner[at[-1]] = value
            message, found = _read(json.dumps(data))
            assert message is None or (message.isprintable() and len(message) < 300), at
            refused += found is None
            if found is not None:  # then all that reads it works
                compare(whole, found)
                compare(found, whole)
                serial.to_json(found)
                for write in (to_junit, to_markdown, badge.to_shields, badge.to_svg):
                    write(found)
                assert to_text(found).replace("\n", "").isprintable(), at
    assert refused > 500


def _read(text: str) -> tuple[str | None, Report | None]:
    try:
        return None, serial.from_json(text)
    except serial.ReportError as error:
        return str(error), None


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"schema": true}', '{"schema": 0}', "\x00", "NaN", "1" * 5000]
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(text, "utf-8")
    with pytest.raises(serial.ReportError, match=r"report\.json: (not a report|a report of form)"):
        load_either(file)
