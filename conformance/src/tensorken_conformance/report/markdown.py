"""Markdown: a report for the summary of a CI step, a README or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from tensorken_conformance.case import Result
from tensorken_conformance.report import tables
from tensorken_conformance.report.model import Report
from tensorken_conformance.report.tables import Table


def to_markdown(report: Report) -> str:
    """A report as GitHub's Markdown."""
    verdict = "failed" if report.status else "passed"
    lines = [
        f"## {plain(report.header.title)}: {report.header.level_name}, {verdict}",
        "",
        f"`{report.claim}`",
        "",
    ]
    lines += [*table(tables.counts(report)), ""]
    lines += [f"* {plain(warning[0].lower() + warning[1:])}" for warning in tables.warnings(report)]
    lines += [f"* note: {plain(remark)}" for remark in report.remarks]
    following = next((step for step in tables.levels(report)[0] if not step.reached), None)
    if following:
        lines += [f"* next level, {following.level}: {plain(following.obstacle)}"]
    lines.append("")
    for cause in tables.causes(report):
        lines += [f"### {plain(cause.title)}", "", plain(cause.cases), "", *_failure(cause.shown)]
    for found in tables.failures(report):
        lines += [f"### {found.law} failed", "", plain(found.says), ""]
        for result in found.shown:
            lines += _failure(result)
        lines += [plain(found.rest), ""] if found.rest else []
    lines += [f"* {count} cases blocked by `{code(case)}`" for case, count in report.blocked.items()]
    lines += ["", *_folded("Laws", table(tables.laws(report)))]
    matrix = tables.ops_and_dtypes(report)
    if matrix.rows:
        lines += _folded("Ops and dtypes", [*table(matrix), "", plain(matrix.legend)])
    lines.append(plain("; ".join(f"{name}: {text}" for name, text in tables.facts(report).items())))
    return "\n".join(lines) + "\n"


def _failure(result: Result) -> list[str]:
    """A failed case, in an item of a list."""
    lines = [f"* `{code(result.case.id)}`: {plain(result.says)}", ""]
    if result.script:
        lines += ["  ```python", *(f"  {line}" for line in result.script), "  ```", ""]
    return lines


def several_to_markdown(reports: Sequence[Report]) -> str:
    """Several reports side by side."""
    ops = tables.ops(reports)
    return "\n".join([*table(tables.backends(reports)), "", *table(ops), "", plain(ops.legend)]) + "\n"


def table(content: Table) -> list[str]:
    """The lines of a table."""
    rows = [[plain(field.text) for field in row] for row in content.rows]
    lines = [[plain(text) for text in content.head], ["---", *["---:"] * (len(content.head) - 1)], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines in a section that unfolds."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


def plain(text: str) -> str:
    """Text escaped for Markdown, including its tables."""
    for character in "\\`*_[]#~":
        text = text.replace(character, f"\\{character}")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return " ".join(text.split())


def code(text: str) -> str:
    """Text for a code span."""
    return text.replace("`", "'")
