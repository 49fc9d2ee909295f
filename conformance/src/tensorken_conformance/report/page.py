"""Page: a report as one self-contained HTML file, which also works without its script."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from importlib import resources

from tensorken_conformance.case import Result
from tensorken_conformance.report import tables
from tensorken_conformance.report.model import Cell, Report, results_by_law, timings, written
from tensorken_conformance.report.tables import LINES, Failures, Field, Table

FULL = 600
"""The number of failures that are shown in full; the others are counted."""

FILTER = (
    "<p hidden><label for=filter>Show only what is named</label> "
    "<input id=filter type=search placeholder='exp, float32, values.cast ...'></p>"
)


def to_page(report: Report) -> str:
    """A report as a page."""
    sections = [section(report) for section in (_matrix, _failures, _laws, _ops, _errors, _times)]
    titles = re.findall(r"<h2 id=(\w+)>(.*?)</h2>", "".join(sections))
    links = "".join(f"<a href='#{place}'>{title}</a> " for place, title in titles)
    parts = [_head(report), f"<nav>{links}</nav>", FILTER, *filter(None, sections)]
    return document(f"{report.header.title}: {report.claim}", "\n".join(parts))


def several_to_page(reports: Sequence[Report]) -> str:
    """Several reports side by side."""
    ops = tables.ops(reports)
    return document(
        "Tensorken backends",
        f"<h1>Tensorken backends</h1>{FILTER}{_table(tables.backends(reports))}"
        f"<h2>Ops</h2>{_legend(escape(ops.legend))}{_table(ops)}",
    )


def document(title: str, body: str) -> str:
    """A self-contained page, in ASCII.

    >>> document("A page", "<p>text</p>").startswith("<!doctype html>")
    True
    """
    folder = resources.files(__package__)
    look, script = (folder.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    page = (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        "<meta name=viewport content='width=device-width,initial-scale=1'>\n"
        f"<title>{escape(title)}</title>\n<style>\n{look}</style>\n</head>\n<body>\n{body}\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _table(table: Table, linked: Callable[[str], str] | None = None) -> str:
    """A table that can be filtered; `linked` gives the target of the links in a row, from the row's title."""

    def cell(field: Field, row: str) -> str:
        status = f" class={field.status.split()[0]}" if field.status else ""
        text = escape(field.text)
        return (
            f"<td{status}>" + (f"<a href='{linked(row)}'>{text}</a>" if linked and text else text) + "</td>"
        )

    rows = [
        f"<tr data-n='{escape(first.text)}'><th scope=row>{escape(first.text)}</th>"
        f"{''.join([cell(found, first.text) for found in rest])}</tr>"
        for first, *rest in table.rows
    ]
    head = "".join(f"<th scope=col>{escape(text)}</th>" for text in table.head)
    return (
        f"<div class=wide><table class=matrix><thead><tr>{head}</tr></thead><tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table></div>"
    )


def _legend(text: str) -> str:
    return f"<p class=legend>{text}</p>"


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{text}</p>" for text in texts)


def _details(attributes: str, names: Iterable[str], summary: str, body: str) -> str:
    """A section that unfolds; the filter finds it by its names."""
    named = escape(" ".join(names))
    return f"<details {attributes} data-n='{named}'><summary>{summary}</summary>{body}</details>"


def _count(bad: int, failed: str, cases: int) -> str:
    """The number of failures in words, or else of cases."""
    return f"<span class=bad>&times; {bad} {failed}</span>" if bad else f"{cases} cases"


# ---- header ------------------------------------------------------------------------------------------------


def _head(report: Report) -> str:
    header = report.header
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in tables.facts(report).items())
    said = "".join(f"<p class=bad>{escape(warning)}</p>" for warning in tables.warnings(report))
    said += "".join(f"<p>Note: {escape(remark)}</p>" for remark in report.remarks)
    state, level = "failed" if report.status else "passed", header.level_name
    conforms = not report.status and header.complete
    title = f"{header.title}{f' conforms: {level}' if conforms else f': {level}, {state}'}"
    levels, why_none = tables.levels(report)
    items = [
        f"<li class=reached>{escape(n)} &check;</li>" if has else f"<li>{escape(n)}</li>"
        for n, has, _ in levels
    ]
    why = next((f"{name}: {why}" for name, has, why in levels if not has), why_none)
    return (
        f"<h1>{escape(title)}</h1><p class='claim {state}'>{escape(report.claim)}</p>{said}"
        f"{'<ul class=levels>' + ''.join(items) + '</ul>' if items else ''}{f'<p>{escape(why)}.</p>' if why else ''}"
        f"<p>{escape(str(report.counts))}</p><dl class=facts>{rows}</dl>"
    )


# ---- ops and dtypes ----------------------------------------------------------------------------------------


def _matrix(report: Report) -> str:
    found = tables.ops_and_dtypes(report)
    if not found.rows:
        return ""
    heading = f"<h2 id=matrix>Ops and dtypes</h2>{_legend(escape(found.legend))}"
    return heading + _table(found, lambda op: f"#op-{escape(op)}")


def _ops(report: Report) -> str:
    by_op: dict[str, list[Cell]] = {}
    for (op, _), cell in report.cells.items():
        by_op.setdefault(op, []).append(cell)
    if not by_op:
        return ""
    linked = {result.case.id for failures in _in_full(report) for result in failures.shown}
    linked |= {cause.shown.case.id for cause in tables.causes(report)}
    parts = [_op(report, op, cells, linked) for op, cells in by_op.items()]
    return "<h2 id=ops>Each op</h2>\n" + "\n".join(parts)


def _op(report: Report, op: str, cells: Sequence[Cell], linked: Collection[str]) -> str:
    laws = list(dict.fromkeys(law for cell in cells for law in cell.laws))
    dtypes = [cell.dtype for cell in cells]
    rows = [
        [law, *[tables.outcome(*cell.laws[law]) if law in cell.laws else "" for cell in cells]]
        for law in laws
    ]
    about = [result for result in report.results if result.case.op == op]
    unsupported = sorted({result.says for result in about if result.status == "unsupported"})
    failed = [result for result in report.failures if result.case.op == op]
    body = [
        _table(tables.table(["law", *dtypes], rows), lambda law: f"#law-{law}"),
        *map(_worst, cells),
        _paragraphs(f"Unsupported: {escape(reason)}" for reason in unsupported[:4]),
        _paragraphs(_reference(result.case.id, linked) for result in failed[:20]),
        f"<p>... and {len(failed) - 20} more</p>" if len(failed) > 20 else "",
    ]
    count = _count(sum(cell.counts.bad for cell in cells), "failed", sum(cell.counts.ran for cell in cells))
    summary = f"<b>{escape(op)}</b> {count}"
    return _details(f"id='op-{escape(op)}'", [op, *dtypes, *laws], summary, "".join(body))


def _worst(cell: Cell) -> str:
    """The largest error in a cell, in a paragraph; nothing if there is none."""
    worst = f" at <code>{escape(cell.worst)}</code>" if cell.worst else ""
    limit = f", declared {written(cell.limit)}" if cell.limit is not None else ""
    return f"<p>{escape(cell.dtype)}: {written(cell.ulp)} ULP{worst}{limit}</p>" if cell.ulp else ""


# ---- failures and laws -------------------------------------------------------------------------------------


def _failures(report: Report) -> str:
    if not report.failures and not report.blocked:
        return ""
    parts = [f"<h2 id=failures>{len(report.failures)} failures</h2>"]
    for cause in tables.causes(report):
        names = dict.fromkeys(f"{r.case.law} {r.case.op} {r.case.dtype}" for r in cause.results)
        body = f"<p>{escape(cause.laws)}</p>{_failure(cause.shown)}"
        parts.append(_details("open", names, f"<b>{escape(cause.title)}</b>", body))
    for failures in _in_full(report):
        law, results = failures.law, failures.results
        rest = len(results) - len(failures.shown)
        more = f"<p>... and {rest} more; the JSON report has all.</p>" if rest else ""
        names = dict.fromkeys([law, *(f"{r.case.op} {r.case.dtype}" for r in results)])
        summary = f"<b>{law}</b> {_count(len(results), 'failed', 0)} {escape(failures.says)}"
        parts.append(_details("open", names, summary, "".join(map(_failure, failures.shown)) + more))
    if report.blocked:
        items = "".join(
            f"<li>{count} cases wait for <span class=id>{escape(blocker)}</span></li>"
            for blocker, count in report.blocked.items()
        )
        parts.append(f"<h3>Blocked</h3><ul>{items}</ul>")
    return "\n".join(parts)


def _in_full(report: Report) -> list[Failures]:
    """The failures by law; FULL of them are shown in full, as many of each law."""
    count, laws = len(report.failures), len(results_by_law(report.failures))
    return tables.failures(report, FULL if count <= FULL else max(1, FULL // laws))


def _reference(id: str, linked: Collection[str]) -> str:
    """The id of a case, with a link to it if it is shown in full."""
    name = escape(id)
    return f"<a class=id href='#{name}'>{name}</a>" if id in linked else f"<span class=id>{name}</span>"


def _failure(result: Result) -> str:
    worst = f" Worst at <code>{escape(result.worst)}</code>." if result.worst not in result.says else ""
    script = escape("\n".join(result.script[:LINES]))
    id = escape(result.case.id)
    return (
        f"<div class=case id='{id}'><p class=id><b>{id}</b></p><p>{escape(result.says)}{worst}</p>"
        + (f"<pre>{script}</pre>" if script else "")
        + "</div>\n"
    )


def _laws(report: Report) -> str:
    if not report.by_law:
        return ""
    grouped = results_by_law(report.results)
    parts = []
    for law in report.by_law:
        ops = Counter(result.case.op for result in grouped.get(law.id, ()))
        about = ", ".join(f"{escape(op)}&nbsp;{count}" for op, count in ops.items())
        count = _count(law.counts.bad, f"of {law.counts.cases}", law.counts.cases)
        summary = f"<b>{law.id}</b> {count}, {law.seconds:.2f} s"
        body = f"<p>{escape(law.says)}</p>{_legend(about)}"
        parts.append(_details(f"id='law-{law.id}'", [law.id, *ops], summary, body))
    return "<h2 id=laws>Laws</h2>\n" + "\n".join(parts)


# ---- pictures ----------------------------------------------------------------------------------------------


def _errors(report: Report) -> str:
    parts: list[str] = []
    for dtype in report.dtypes:
        cells = [cell for (_, own), cell in report.cells.items() if own == dtype and cell.ulp is not None]
        inexact = [cell for cell in cells if cell.ulp or cell.limit]
        exact = ", ".join(escape(cell.op) for cell in cells if cell not in inexact)
        if cells:
            ends = [v for c in inexact for v in (c.ulp, c.limit) if v is not None and math.isfinite(v)]
            rows = "".join(_error(cell, max([1.0, *ends])) for cell in inexact)
            parts.append(f"<h3>{escape(dtype)}</h3><div class=bars>{rows}</div>")
            parts.append(_legend(f"Exact: {exact}.") if exact else "")
    if not parts:
        return ""
    legend = (
        "Bars: the largest error found, in ULP, on a logarithmic scale; the line: what the backend declares."
    )
    return f"<h2 id=errors>Errors</h2>{_legend(legend)}" + "".join(parts)


def _error(cell: Cell, end: float) -> str:
    def place(ulp: float) -> float:
        return 100.0 if not math.isfinite(ulp) else 100 * math.log2(1 + ulp) / math.log2(1 + end)

    assert cell.ulp is not None
    mark = ""
    said = written(cell.ulp)
    if cell.limit is not None:
        x = f"{place(cell.limit):.1f}"
        mark, said = f"<line x1={x} x2={x} y1=0 y2=10 />", f"{said} of {written(cell.limit)}"
    label = escape(f"{cell.op} in {cell.dtype}: {said} ULP")
    bar = f"<rect width={place(cell.ulp):.1f} height=10 />"
    return _row(f"{cell.op} {cell.dtype}", cell.op, label, bar + mark, said)


def _times(report: Report) -> str:
    measured = timings(report)
    if not measured:
        return ""
    end = max(2.0, *(max(timing.ratio, 1 / timing.ratio) for timing in measured))
    rows = []
    for timing in measured:
        x = 50 + 50 * math.log(timing.ratio) / math.log(end)
        bar = f"<rect x={min(x, 50):.1f} width={abs(x - 50):.1f} height=10 />"
        line = "<line class=one x1=50 x2=50 y1=0 y2=10 />"
        said = f"{_time(timing.microseconds)}, {timing.rate}"
        label = escape(f"{timing.name}: {timing.ratio:.2g} times as long as numpy, {said}")
        rows.append(_row(timing.name, timing.name, label, bar + line, f"{timing.ratio:.2g}&times;, {said}"))
    legend = (
        "How many times as long as numpy on the same machine, on a logarithmic scale: left of the line is faster. "
        "Only of what passed."
    )
    return f"<h2 id=times>Times</h2>{_legend(legend)}<div class=bars>{''.join(rows)}</div>"


def _row(key: str, name: str, label: str, drawing: str, said: str) -> str:
    return (
        f"<div data-n='{escape(key)}'><span>{escape(name)}</span><svg viewBox='0 0 100 10' preserveAspectRatio=none "
        f"role=img aria-label='{label}'>{drawing}</svg><span>{said}</span></div>\n"
    )


def _time(microseconds: float) -> str:
    """A time with its unit.

    >>> _time(12.34), _time(250_000)
    ('12.3 us', '250 ms')
    """
    for unit, size in (("s", 1e6), ("ms", 1e3), ("us", 1.0)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds * 1e3:.3g} ns"
