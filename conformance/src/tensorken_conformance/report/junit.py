"""JUnit: a report as XML for CI servers: a suite for each law, a test for each case."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tensorken_conformance.case import Result
from tensorken_conformance.levels import Account
from tensorken_conformance.report.model import Report, results_by_law

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 cannot hold, not even escaped."""


def to_junit(report: Report) -> str:
    """A report as JUnit XML, in ASCII.  A crash is an error; unsupported and expected failures are skipped."""
    top = _element(
        None,
        "testsuites",
        name=f"tensorken conformance: {report.header.name}",
        time=f"{report.header.seconds:.3f}",
        **_counts(report.counts),
    )
    summaries = {law.id: law for law in report.by_law}
    for law, results in results_by_law(report.results).items():
        own = summaries[law]
        suite = _element(
            top,
            "testsuite",
            name=law,
            time=f"{own.seconds:.3f}",
            timestamp=report.header.date[:19],
            **_counts(own.counts),
        )
        _element(_element(suite, "properties"), "property", name="claim", value=report.claim)
        for result in results:
            _add_case(suite, result)
    if report.problems:
        count = str(len(report.problems))
        suite = _element(top, "testsuite", name="problems", tests=count, failures=count, errors="0")
        for problem in report.problems:
            case = _element(suite, "testcase", classname="problems", name=problem)
            _element(case, "failure", message=problem)
    ElementTree.indent(top, " ")
    written: bytes = ElementTree.tostring(top, encoding="us-ascii", xml_declaration=True)
    return written.decode("ascii") + "\n"


def _add_case(suite: ElementTree.Element, result: Result) -> None:
    name = result.case.id.partition("/")[2]
    case = _element(suite, "testcase", classname=result.case.law, name=name, time=f"{result.seconds:.6f}")
    if result.status in ("unsupported", "expected failure"):
        _element(case, "skipped", message=f"{result.status}: {result.says}")
    elif result.status != "passed":
        bad = _element(case, "error" if result.status == "crashed" else "failure", message=result.says)
        bad.text = _clean("\n".join([result.says, *result.script]))


def _counts(counts: Account) -> dict[str, str]:
    return {
        "tests": str(counts.cases),
        "failures": str(counts.failed),
        "errors": str(counts.crashed),
        "skipped": str(counts.unsupported + counts.expected),
    }


def _element(above: ElementTree.Element | None, tag: str, /, **attributes: str) -> ElementTree.Element:
    clean = {name: _clean(value) for name, value in attributes.items()}
    if above is None:
        return ElementTree.Element(tag, clean)
    return ElementTree.SubElement(above, tag, clean)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
