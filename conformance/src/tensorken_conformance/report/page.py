"""Page: a report as one HTML file, which needs nothing from elsewhere, and reads well without its script."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from html import escape

from tensorken_conformance.case import Result
from tensorken_conformance.levels import SYMBOLIC_TOP, TOP, Account, Level
from tensorken_conformance.report.model import (
    Cell,
    Report,
    cases_in_order,
    stale,
    timings,
    worst_of,
    written,
)
from tensorken_conformance.report.style import FILTER, document
from tensorken_conformance.report.terminal import LINES, chosen, obstacle

FULL = 600
"""How many failures are shown in full; the rest is counted."""

LEGEND = (
    "A number is how many cases passed; &times; 3/42: 3 of 42 failed; !: the backend crashed; ~: expected failures "
    "are among them; &ndash;: declared unsupported; u: the largest error, in units in the last place (ULP)."
)


def to_page(report: Report) -> str:
    """A report as a page."""
    sections = [section(report) for section in (_matrix, _failures, _laws, _ops, _errors, _times)]
    titles = re.findall(r"<h2 id=(\w+)>(.*?)</h2>", "".join(sections))
    links = "".join(f"<a href='#{place}'>{title}</a> " for place, title in titles)
    parts = [_head(report), f"<nav>{links}</nav>", FILTER, *filter(None, sections)]
    return document(f"{report.header.title}: {report.claim}", "\n".join(parts))


# ---- header ------------------------------------------------------------------------------------------------


def _head(report: Report) -> str:
    header, counts = report.header, report.counts
    options = "".join(f", {name}={value}" for name, value in header.options.items())
    facts = {
        "backend": f"{header.interpreter}{options}",
        "runs as": header.stack,
        "distribution": " ".join(filter(None, (header.distribution, header.version))),
        "device": header.device,
        "notes": "; ".join(header.notes),
        "kit": f"{header.kit}, {header.detection}",
        "core": f"{header.core}, language {header.language}",
        "machine": f"Python {header.python}, numpy {header.numpy}, {header.platform}",
        "run": f"seed {header.seed}, {header.depth} depth, {header.seconds:.1f} s, {header.date}",
        "only": " ".join(header.select),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(str(text))}</dd>" for name, text in facts.items() if text)
    warnings = [f"Partial: {header.partial}; cases are missing."] if header.partial else []
    warnings += [reason for reason in (stale(report),) if reason]
    warnings += [f"Problem: {problem}" for problem in report.problems]
    told = "".join(f"<p class=bad>{escape(text)}</p>" for text in warnings)
    told += "".join(f"<p>Note: {escape(remark)}</p>" for remark in report.remarks)
    state = "failed" if report.status else "passed"
    return (
        f"<h1>{escape(header.title)} conforms: {header.level_name}</h1>"
        if not report.status and header.complete
        else f"<h1>{escape(header.title)}: {header.level_name}, {state}</h1>"
    ) + (
        f"<p class='claim {state}'>{escape(report.claim)}</p>{told}{_levels(report)}"
        f"<p>{escape(str(counts))}</p><dl class=facts>{rows}</dl>"
    )


def _levels(report: Report) -> str:
    if not report.header.complete:
        return "<p>Only a run of all laws gives a level.</p>"
    symbolic, reached = report.header.symbolic, report.header.level
    top = SYMBOLIC_TOP if symbolic else TOP
    items = []
    for number in range(top + 1):
        has = reached is not None and number <= reached
        name = escape(str(Level(number, symbolic)))
        items.append(f"<li class=reached>{name} &check;</li>" if has else f"<li>{name}</li>")
    following = 0 if reached is None else reached + 1
    why = ""
    if not report.capabilities.dtypes:
        why = f"<p>No level: the backend {'declares no dtypes' if report.laws else 'does not load'}.</p>"
    elif following <= top:
        why = f"<p>{escape(str(Level(following, symbolic)))}: {escape(obstacle(report.obstacles))}.</p>"
    return f"<ul class=levels>{''.join(items)}</ul>{why}"


# ---- ops and dtypes ----------------------------------------------------------------------------------------


def _matrix(report: Report) -> str:
    dtypes = report.dtypes
    if not dtypes:
        return ""
    rows = []
    for op in report.ops:
        cells = [report.cells.get((op, dtype)) for dtype in dtypes]
        if any(cells):
            named = f"{op} {' '.join(c.dtype for c in cells if c is not None)}"
            texts = "".join(_linked(cell) for cell in cells)
            rows.append(f"<tr data-n='{escape(named)}'><th scope=row>{escape(op)}</th>{texts}</tr>")
    head = "".join(f"<th scope=col>{escape(dtype)}</th>" for dtype in dtypes)
    return (
        f"<h2 id=matrix>Ops and dtypes</h2><p class=legend>{LEGEND}</p><div class=wide><table class=matrix><thead><tr>"
        f"<th scope=col>op</th>{head}</tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _linked(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    kind = cell.status.split()[0]
    return f"<td class={kind}><a href='#op-{escape(cell.op)}'>{_shown(cell.counts, cell.ulp)}</a></td>"


def _shown(counts: Account, ulp: float | None) -> str:
    """What became of some cases, in a few characters that need no colour."""
    status = worst_of(counts)
    ran = counts.cases - counts.unsupported
    if status == "unsupported":
        return "&ndash;"
    if status in ("failed", "crashed"):
        text = f"{'!' if status == 'crashed' else '&times;'} {counts.failed + counts.crashed}/{ran}"
    else:
        text = f"{ran}{'~' if counts.expected else ''}"
    return text if ulp is None else f"{text} <small>{written(ulp)}u</small>"


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
    head = "".join(f"<th scope=col>{escape(cell.dtype)}</th>" for cell in cells)
    rows = []
    for law in laws:
        texts = ""
        for cell in cells:
            if law in cell.laws:
                counts, ulp = cell.laws[law]
                texts += f"<td class={worst_of(counts).split()[0]}>{_shown(counts, ulp)}</td>"
            else:
                texts += "<td></td>"
        rows.append(f"<tr><th scope=row><a href='#law-{law}'>{law}</a></th>{texts}</tr>")
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
        f"<details id='op-{escape(op)}' data-n='{named}'><summary><b>{escape(op)}</b> {said}</summary><div class=wide>"
        f"<table><thead><tr><th scope=col>law</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"{worst}{refused}{ids}{more}</details>"
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
    return {law: chosen(results, share) for law, results in by_law.items()}


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
