"""Terminal: a report as ASCII text: the matrix, the failures, the levels, and the slowest laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorken_conformance.case import Result
from tensorken_conformance.report import tables
from tensorken_conformance.report.model import Report, stale, titles
from tensorken_conformance.report.tables import LINES, Table

LONGEST = 400
"""The number of characters of a message that are shown; the JSON report has more."""

_COLOURS = {"passed": "32", "failed": "31;1", "crashed": "35;1", "expected failure": "33", "unsupported": "2"}


class Painter:
    """Colours text, if asked.

    >>> Painter(colour=False).paint("3/7!", "failed")
    '3/7!'
    """

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def paint(self, text: str, status: str) -> str:
        """The text in the colour of a status."""
        code = _COLOURS.get(status)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text.strip() else text

    def bold(self, text: str) -> str:
        """A heading."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def table(self, table: Table, right: bool = False) -> list[str]:
        """A table in aligned columns; all but the first are aligned to the right if `right`."""
        columns = zip(table.head, *[[field.text for field in row] for row in table.rows], strict=True)
        widths = [max(map(len, column)) for column in columns]

        def aligned(text: str, i: int) -> str:
            return text.rjust(widths[i]) if right and i else text.ljust(widths[i])

        lines = [self.bold("  ".join([aligned(text, i) for i, text in enumerate(table.head)]).rstrip())]
        for row in table.rows:
            fields = [self.paint(aligned(field.text, i), field.status) for i, field in enumerate(row)]
            lines.append("  ".join(fields).rstrip())
        return [*lines, *([f"({table.legend})"] if table.legend else [])]


def to_text(report: Report, colour: bool = False, matrix: bool = True) -> str:
    """A report for a terminal.

    Args:
        report: the report.
        colour: whether the terminal shows colours.
        matrix: whether to include the results of each op in each dtype.
    """
    painter = Painter(colour)
    facts = tables.facts(report).items()
    parts = [
        [painter.bold(report.header.title), *[f"  {name:<13} {text}" for name, text in facts]],
        painter.table(tables.ops_and_dtypes(report)) if matrix and report.cells else [],
        painter.table(tables.laws(report), right=True) if report.by_law else [],
        _failures(report, painter),
        _levels(report, painter),
        _end(report, painter),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def several_to_text(reports: Sequence[Report], colour: bool = False) -> str:
    """Several reports side by side."""
    painter = Painter(colour)
    old = [f"{name}: {why}" for r, name in zip(reports, titles(reports), strict=True) if (why := stale(r))]
    lines = [*painter.table(tables.backends(reports)), *old, "", *painter.table(tables.ops(reports))]
    return "\n".join(lines) + "\n"


def _failures(report: Report, painter: Painter) -> list[str]:
    lines: list[str] = []
    for cause in tables.causes(report):
        lines += ["", painter.paint(cause.title, "failed"), *_failure(cause.shown), f"  {cause.laws}"]
    for found in tables.failures(report):
        lines += ["", painter.paint(f"{found.law}: {found.says}".rstrip(": "), "failed")]
        for result in found.shown:
            lines += _failure(result)
        lines += [f"  {found.rest}"] if found.rest else []
    if report.blocked:
        lines += ["", painter.paint("blocked: cases that wait for one that failed", "failed")]
        lines += [f"  {count} by {blocker}" for blocker, count in report.blocked.items()]
    if report.failures:
        header = report.header
        depth = "" if header.depth == "default" else f" --{header.depth}"
        again = f"tensorken conformance repro CASE --backend {header.backend} --seed {header.seed}{depth}"
        lines += ["", f"one of them again, with the traceback of what a backend raised: {again}"]
    return lines[1:]


def _failure(result: Result) -> Iterator[str]:
    worst = f" (worst at {result.worst})" if result.worst and result.worst not in result.says else ""
    yield f"  {result.case.id}"
    yield f"    {_cut(result.says)}{_cut(worst)}"
    for line in result.script[:LINES]:
        yield f"      {line}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _levels(report: Report, painter: Painter) -> list[str]:
    steps, why_none = tables.levels(report)
    if not steps:
        return [painter.paint(why_none, "failed" if report.header.complete else "")]
    return [
        painter.bold("levels"),
        *[
            f"  {painter.paint(f'{step.level!s:<20}', 'passed' if step.reached else '')} {step.obstacle or 'reached'}"
            for step in steps
        ],
    ]


def _end(report: Report, painter: Painter) -> list[str]:
    lines = [
        painter.paint(warning.upper()[:7] + warning[7:], "failed") for warning in tables.warnings(report)
    ]
    lines += [f"NOTE: {remark}" for remark in report.remarks]
    lines.append(painter.paint(str(report.counts), "failed" if report.status else "passed"))
    slow = sorted(report.by_law, key=lambda law: -law.seconds)[:3]
    named = ", ".join(f"{law.id} {law.seconds:.1f} s" for law in slow if law.seconds >= 0.1)
    lines.append(f"{report.header.seconds:.1f} s in all" + (f"; most of it for {named}" if named else ""))
    return [*lines, painter.bold(f"{report.header.name}: {report.claim}")]
