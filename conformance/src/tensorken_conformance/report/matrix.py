"""Matrix: reports of several backends side by side: their levels, and what became of each op."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tensorken_conformance.report import markdown
from tensorken_conformance.report.model import Report, stale, titles, written
from tensorken_conformance.report.style import FILTER, document
from tensorken_conformance.report.terminal import Painter

FACTS = ("backend", "level", "dtypes", "cases", "bad", "kit", "date")

LEGEND = (
    "n: dtypes in which all cases passed; k/n!: in k of n dtypes cases failed; -: declared unsupported; "
    "u: the largest error, in ULP"
)


def facts(report: Report, title: str) -> list[str]:
    """A row about a report: FACTS."""
    header, counts = report.header, report.counts
    age = " stale" if stale(report) else ""
    part = "" if header.complete else " partial"
    return [
        title,
        f"{header.level_name}{part}",
        str(len(report.capabilities.dtypes)),
        str(counts.cases),
        str(counts.failed + counts.crashed),
        f"{header.kit}{age}",
        header.date[:10],
    ]


def cell(report: Report, op: str) -> tuple[str, str]:
    """What became of an op in all dtypes, in a few characters; and its status."""
    cells = [found for (name, _), found in report.cells.items() if name == op]
    if not cells:
        return "", "unsupported"
    took_part = [found for found in cells if found.status != "unsupported"]
    if not took_part:
        return "-", "unsupported"
    bad = sum(found.bad > 0 for found in took_part)
    text = f"{bad}/{len(took_part)}!" if bad else str(len(took_part))
    ulp = max((found.ulp for found in took_part if found.ulp is not None), default=None)
    status = next(
        s
        for s in ("crashed", "failed", "expected failure", "passed")
        if any(c.status == s for c in took_part)
    )
    return (f"{text} {written(ulp)}u" if ulp is not None else text), status


def ops(reports: Sequence[Report]) -> list[str]:
    """All ops of the reports."""
    return list(dict.fromkeys(op for report in reports for op, _ in report.cells))


def to_text(reports: Sequence[Report], colour: bool = False) -> str:
    """The matrix for a terminal."""
    painter, names = Painter(colour), titles(reports)
    rows = [list(FACTS), *[facts(report, name) for report, name in zip(reports, names, strict=True)]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines[0] = painter.bold(lines[0])
    lines += [f"{name}: {why}" for report, name in zip(reports, names, strict=True) if (why := stale(report))]
    listed = ops(reports)
    width = max([2, *map(len, listed)])
    wide = [
        max([len(name), *(len(cell(report, op)[0]) for op in listed)])
        for report, name in zip(reports, names, strict=True)
    ]
    lines += ["", painter.bold("  ".join(["op".ljust(width), *map(str.ljust, names, wide)]).rstrip())]
    for op in listed:
        found = [cell(report, op) for report in reports]
        texts = [painter.paint(text.ljust(w), status) for (text, status), w in zip(found, wide, strict=True)]
        lines.append("  ".join([op.ljust(width), *texts]).rstrip())
    return "\n".join([*lines, f"({LEGEND})"]) + "\n"


def to_markdown(reports: Sequence[Report]) -> str:
    """The matrix as Markdown."""
    names = titles(reports)
    rows = [facts(report, markdown.plain(name)) for report, name in zip(reports, names, strict=True)]
    cells = [[f"`{op}`", *(cell(report, op)[0] for report in reports)] for op in ops(reports)]
    lines = [
        *markdown.table(FACTS, rows),
        "",
        *markdown.table(["op", *map(markdown.plain, names)], cells),
        "",
        LEGEND,
    ]
    return "\n".join(lines) + "\n"


def to_page(reports: Sequence[Report]) -> str:
    """The matrix as a page without outside parts."""
    names = titles(reports)
    head = "".join(f"<th scope=col>{fact}</th>" for fact in FACTS)
    rows = "".join(
        f"<tr><th scope=row>{escape(first)}</th>{''.join(f'<td>{escape(text)}</td>' for text in rest)}</tr>\n"
        for first, *rest in (facts(report, name) for report, name in zip(reports, names, strict=True))
    )
    body = []
    for op in ops(reports):
        found = [cell(report, op) for report in reports]
        texts = "".join(f'<td class="{status.split()[0]}">{escape(text)}</td>' for text, status in found)
        body.append(f"<tr data-n='{escape(op)}'><th scope=row>{escape(op)}</th>{texts}</tr>\n")
    columns = "".join(f"<th scope=col>{escape(name)}</th>" for name in names)
    return document(
        "Tensorken backends",
        f"<h1>Tensorken backends</h1>{FILTER}<div class=wide><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
        f"<h2>Ops</h2><p class=legend>{escape(LEGEND)}</p><div class=wide><table class=matrix><thead><tr>"
        f"<th scope=col>op</th>{columns}</tr></thead><tbody>{''.join(body)}</tbody></table></div>",
    )
