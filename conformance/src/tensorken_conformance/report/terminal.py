"""Terminal: a report as text: facts, the matrix, the laws, the failures, the levels, and the slowest laws.

The text is a sequence of blocks: tables, and lines with the status of their cases.  `plain` lays them out for pipes and
files; `rich_text` does it for terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorken_conformance.case import Result
from tensorken_conformance.report import tables
from tensorken_conformance.report.model import Report, stale, titles
from tensorken_conformance.report.tables import LINES, Field, Table
from tensorken_core.host.load_monitor import to_ascii

LONGEST = 400
"""The number of characters of a message that are shown; the JSON report has more."""

TITLE, CODE = "title", "code"
"""The statuses of lines that are titles, and of lines of Python."""

Block = Table | Sequence[Field]


def to_text(report: Report, matrix: bool = True) -> str:
    """A report as plain text in ASCII; `matrix` includes the results of each op in each dtype."""
    return plain(blocks(report, matrix))


def blocks(report: Report, matrix: bool = True) -> list[Block]:
    """The blocks of a report; `matrix` includes the results of each op in each dtype."""
    steps, why_none = tables.levels(report)
    levels = [[Field(str(s.level), "passed" if s.reached else ""), s.obstacle or "reached"] for s in steps]
    parts: list[Block] = [
        [Field(report.header.title, TITLE)],
        tables.table((), tables.facts(report).items()),
        tables.ops_and_dtypes(report) if matrix and report.cells else [],
        tables.laws(report) if report.by_law else [],
        *_failures(report),
        tables.table(("level", "state"), levels)
        if levels
        else [Field(why_none, "failed" if report.header.complete else "")],
        list(_end(report)),
    ]
    return [part for part in parts if part]


def blocks_of_several(reports: Sequence[Report]) -> list[Block]:
    """The blocks of several reports side by side."""
    old = [f"{name}: {why}" for r, name in zip(reports, titles(reports), strict=True) if (why := stale(r))]
    return [tables.backends(reports), *([list(map(Field, old))] if old else []), tables.ops(reports)]


# ---- content -----------------------------------------------------------------------------------------------


def _failures(report: Report) -> Iterator[list[Field]]:
    for cause in tables.causes(report):
        yield [Field(cause.title, "failed"), *_failure(cause.shown), Field(f"  {cause.cases}")]
    for found in tables.failures(report):
        rest = [Field(f"  {found.rest}")] if found.rest else []
        lines = [line for result in found.shown for line in _failure(result)]
        yield [Field(f"{found.law}: {found.says}".rstrip(": "), "failed"), *lines, *rest]
    if report.blocked:
        title = Field("blocked: cases that wait for one that failed", "failed")
        yield [title, *(Field(f"  {count} by {blocker}") for blocker, count in report.blocked.items())]
    if report.failures:
        header = report.header
        depth = "" if header.depth == "default" else f" --{header.depth}"
        again = f"tensorken conformance repro CASE --backend {header.backend} --seed {header.seed}{depth}"
        yield [Field(f"one of them again, with the traceback of what a backend raised: {again}")]


def _failure(result: Result) -> Iterator[Field]:
    worst = f" (worst at {result.worst})" if result.worst and result.worst not in result.says else ""
    yield Field(f"  {result.case.id}", TITLE)
    yield Field(f"    {_cut(result.says)}{_cut(worst)}")
    for line in result.script[:LINES]:
        yield Field(f"      {line}", CODE)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _end(report: Report) -> Iterator[Field]:
    for warning in tables.warnings(report):
        yield Field(warning.upper()[:7] + warning[7:], "failed")
    for remark in report.remarks:
        yield Field(f"NOTE: {remark}")
    yield Field(str(report.counts), "failed" if report.status else "passed")
    slow = sorted(report.by_law, key=lambda law: -law.seconds)[:3]
    named = ", ".join(f"{law.id} {law.seconds:.1f} s" for law in slow if law.seconds >= 0.1)
    yield Field(f"{report.header.seconds:.1f} s in all" + (f"; most of it for {named}" if named else ""))
    yield Field(f"{report.header.name}: {report.claim}", TITLE)


# ---- layout for pipes --------------------------------------------------------------------------------------


def plain(content: Sequence[Block]) -> str:
    """Blocks as text in ASCII, without colours, a table in aligned columns."""
    parts = ["\n".join(_lines(block)) for block in content]
    return to_ascii("\n\n".join(parts) + "\n")


def _lines(block: Block) -> Iterator[str]:
    if not isinstance(block, Table):
        yield from (line.text for line in block)
        return
    rows = [[field.text for field in row] for row in block.rows]
    rows = [list(block.head), *rows] if block.head else rows
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if is_right else "<" for is_right in block.right]
    for row in rows:
        fields = zip(row, sides, widths, strict=True)
        yield "  ".join(f"{text:{side}{width}}" for text, side, width in fields).rstrip()
    if block.legend:
        yield f"({block.legend})"
