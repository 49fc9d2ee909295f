"""Page: a report as one HTML file, which needs nothing from elsewhere, and reads well without its script."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from html import escape
from importlib import resources

from tensorken_conformance.case import Result
from tensorken_conformance.report import tables
from tensorken_conformance.report.model import Cell, Report, cases_in_order, timings, written
from tensorken_conformance.report.tables import LINES, Field, Table

FULL = 600
"""How many failures are shown in full; the rest is counted."""

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
        f"<h2>Ops</h2><p class=legend>{escape(ops.legend)}</p>{_table(ops)}",
    )


def document(title: str, body: str) -> str:
    """A page, in ASCII, which needs nothing from elsewhere.

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
    """A table that can be filtered; its fields lead to where `linked` says for the name of their row."""

    def field(text: str, row: str) -> str:
        return f"<a href='{linked(row)}'>{escape(text)}</a>" if linked and text else escape(text)

    def cell(found: Field, row: str) -> str:
        status = f" class={found.status.split()[0]}" if found.status else ""
        return f"<td{status}>{field(found.text, row)}</td>"

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
    legend = f"<h2 id=matrix>Ops and dtypes</h2><p class=legend>{escape(found.legend)}</p>"
    return legend + _table(found, lambda op: f"#op-{escape(op)}")


def _ops(report: Report) -> str:
    by_op: dict[str, list[Cell]] = {}
    for (op, _), cell in report.cells.items():
        by_op.setdefault(op, []).append(cell)
    if not by_op:
        return ""
    linked = {result.case.id for results in _in_full(report).values() for result in results}
    parts = [_op(report, op, cells, linked) for op, cells in by_op.items()]
    return "<h2 id=ops>Each op</h2>\n" + "\n".join(parts)


def _op(report: Report, op: str, cells: Sequence[Cell], linked: Collection[str]) -> str:
    bad = sum(cell.bad for cell in cells)
    said = f"<span class=bad>&times; {bad} failed</span>" if bad else f"{sum(c.run for c in cells)} cases"
    laws = list(dict.fromkeys(law for cell in cells for law in cell.laws))
    rows = [
        [law, *[tables.outcome(*cell.laws[law]) if law in cell.laws else "" for cell in cells]]
        for law in laws
    ]
    table = tables.table(["law", *[cell.dtype for cell in cells]], rows)
    worst = "".join(
        f"<p>{escape(cell.dtype)}: {written(cell.ulp)} ULP"
        + (f" at <code>{escape(cell.worst)}</code>" if cell.worst else "")
        + (f", declared {written(cell.limit)}" if cell.limit is not None else "")
        + "</p>"
        for cell in cells
        if cell.ulp
    )
    why = {
        result.says for result in report.results if result.status == "unsupported" and result.case.op == op
    }
    refused = "".join(f"<p>Unsupported: {escape(reason)}</p>" for reason in sorted(why)[:4])
    failed = [result for result in report.failures if result.case.op == op]
    ids = "".join(f"<p>{_reference(result.case.id, linked)}</p>" for result in failed[:20])
    more = f"<p>... and {len(failed) - 20} more</p>" if len(failed) > 20 else ""
    named = escape(f"{op} {' '.join(cell.dtype for cell in cells)} {' '.join(laws)}")
    return (
        f"<details id='op-{escape(op)}' data-n='{named}'><summary><b>{escape(op)}</b> {said}</summary>"
        f"{_table(table, lambda law: f'#law-{law}')}{worst}{refused}{ids}{more}</details>"
    )


# ---- failures and laws -------------------------------------------------------------------------------------


def _failures(report: Report) -> str:
    failures = report.failures
    if not failures and not report.blocked:
        return ""
    parts = [f"<h2 id=failures>{len(failures)} failures</h2>"]
    in_full = _in_full(report)
    for law, results in cases_in_order(failures).items():
        full = in_full[law]
        rest = len(results) - len(full)
        more = f"<p>... and {rest} more; the JSON report has all.</p>" if rest else ""
        named = escape(" ".join({law, *(f"{r.case.op} {r.case.dtype}" for r in results)}))
        parts.append(
            f"<details open data-n='{named}'><summary><b>{law}</b> <span class=bad>&times; {len(results)} failed</span>"
            f" {escape(report.laws.get(law, ''))}</summary>{''.join(map(_failure, full))}{more}</details>"
        )
    if report.blocked:
        items = "".join(
            f"<li>{count} cases wait for <span class=id>{escape(blocker)}</span></li>"
            for blocker, count in report.blocked.items()
        )
        parts.append(f"<h3>Blocked</h3><ul>{items}</ul>")
    return "\n".join(parts)


def _in_full(report: Report) -> dict[str, list[Result]]:
    """The failures that are shown in full, by law: all, or as many of each law."""
    by_law = cases_in_order(report.failures)
    share = FULL if len(report.failures) <= FULL else max(1, FULL // len(by_law))
    return {law: tables.chosen(results, share) for law, results in by_law.items()}


def _reference(id: str, linked: Collection[str]) -> str:
    """The id of a case, and a link to it if it is shown in full."""
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
    grouped = cases_in_order(report.results)
    parts = []
    for law in report.by_law:
        counts = law.counts
        bad = counts.failed + counts.crashed
        said = f"<span class=bad>&times; {bad} of {counts.cases}</span>" if bad else f"{counts.cases} cases"
        found = Counter(result.case.op for result in grouped.get(law.id, ()))
        named = escape(" ".join([law.id, *found]))
        about = ", ".join(f"{escape(op)}&nbsp;{count}" for op, count in found.items())
        parts.append(
            f"<details id='law-{law.id}' data-n='{named}'><summary><b>{law.id}</b> {said}, "
            f"{law.seconds:.2f} s</summary><p>{escape(law.says)}</p><p class=legend>{about}</p></details>"
        )
    return "<h2 id=laws>Laws</h2>\n" + "\n".join(parts)


# ---- pictures ----------------------------------------------------------------------------------------------


def _errors(report: Report) -> str:
    parts = []
    for dtype in report.dtypes:
        cells = [cell for (_, own), cell in report.cells.items() if own == dtype and cell.ulp is not None]
        inexact = [cell for cell in cells if cell.ulp or cell.limit]
        exact = ", ".join(escape(cell.op) for cell in cells if cell not in inexact)
        if cells:
            ends = [v for c in inexact for v in (c.ulp, c.limit) if v is not None and math.isfinite(v)]
            rows = "".join(_error(cell, max([1.0, *ends])) for cell in inexact)
            parts.append(f"<h3>{escape(dtype)}</h3><div class=bars>{rows}</div>")
            parts.append(f"<p class=legend>Exact: {exact}.</p>" if exact else "")
    if not parts:
        return ""
    legend = (
        "Bars: the largest error found, in ULP, on a logarithmic scale; the line: what the backend declares."
    )
    return f"<h2 id=errors>Errors</h2><p class=legend>{legend}</p>" + "".join(parts)


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
    return f"<h2 id=times>Times</h2><p class=legend>{legend}</p><div class=bars>{''.join(rows)}</div>"


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
