"""Markdown: a report for the summary of a CI step, a README or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensorken_conformance.report.model import Report, cases_in_order
from tensorken_conformance.report.terminal import LEGEND, chosen, obstacle, shown

SHOWN = 3
"""How many failures of a law are shown in full."""


def to_markdown(report: Report) -> str:
    """A report as Markdown, as GitHub understands it."""
    header = report.header
    verdict = "passed" if not report.status else "failed"
    lines = [f"## {plain(header.title)}: {header.level_name}, {verdict}", "", f"`{report.claim}`", ""]
    if header.partial:
        lines += [f"**Partial: {plain(header.partial)}; cases are missing.**", ""]
    counts = report.counts
    lines += table(
        ["cases", "passed", "failed", "expected failures", "declared unsupported", "crashed"],
        [
            [
                str(n)
                for n in (
                    counts.cases,
                    counts.passed,
                    counts.failed,
                    counts.expected,
                    counts.unsupported,
                    counts.crashed,
                )
            ]
        ],
    )
    lines += ["", *(f"* problem: {plain(problem)}" for problem in report.problems)]
    lines += [f"* note: {plain(remark)}" for remark in report.remarks]
    if header.complete and report.level is not None and not report.level.is_highest:
        lines += [f"Next level: {plain(obstacle(report.obstacles))}.", ""]
    lines += _failures(report)
    laws = [
        [
            f"`{law.id}`",
            str(law.counts.cases),
            str(law.counts.failed + law.counts.crashed),
            f"{law.seconds:.2f}",
        ]
        for law in report.by_law
    ]
    lines += folded("Laws", table(["law", "cases", "bad", "seconds"], laws))
    rows = [
        [f"`{op}`", *[shown(report.cells.get((op, dtype))) for dtype in report.dtypes]]
        for op in report.ops
        if any((op, dtype) in report.cells for dtype in report.dtypes)
    ]
    if rows:
        lines += folded("Ops and dtypes", [*table(["op", *report.dtypes], rows), "", plain(LEGEND)])
    lines.append(
        f"kit {header.kit}, core {header.core}, Python {header.python}, numpy {header.numpy}, "
        f"{plain(header.platform)}, seed {header.seed}, {header.depth} depth, {header.seconds:.1f} s, {header.date}"
    )
    return "\n".join(lines) + "\n"


def _failures(report: Report) -> list[str]:
    lines: list[str] = []
    for law, results in cases_in_order(report.failures).items():
        lines += [f"### {law}: {len(results)} failed", "", plain(report.laws.get(law, "")), ""]
        for result in chosen(results, SHOWN):
            lines += [f"* `{code(result.case.id)}`: {plain(result.says)}", ""]
            if result.script:
                lines += ["  ```python", *(f"  {line}" for line in result.script), "  ```", ""]
        if len(results) > SHOWN:
            lines += [f"... and {len(results) - SHOWN} more.", ""]
    for blocker, count in report.blocked.items():
        lines.append(f"* {count} cases blocked by `{code(blocker)}`")
    return [*lines, ""] if lines else []


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; the cells are Markdown."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines]


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that are shown when one asks for them."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", ""]


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    for character in "\\`*_[]|#~":
        text = text.replace(character, f"\\{character}")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(text.split())


def code(text: str) -> str:
    """Text that may stand between backticks."""
    return text.replace("`", "'")
