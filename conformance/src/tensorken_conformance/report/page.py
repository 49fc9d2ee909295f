"""Page: a report as one self-contained HTML file; the templates in templates/ lay it out."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from tensorken_conformance.case import Result
from tensorken_conformance.levels import Account
from tensorken_conformance.report import tables
from tensorken_conformance.report.model import (
    Cell,
    LawSummary,
    Report,
    grouped,
    is_failure,
    results_by_law,
    timings,
    written,
)

FULL = 600
"""The number of failures that are shown in full; the others are counted."""

LEAST = 1.5
"""The least width of a part of a bar, in percent, so that one failure among many cases is visible."""


def to_page(report: Report) -> str:
    """A report as a page."""
    count, laws = len(report.failures), len(results_by_law(report.failures))
    failures = tables.failures(report, FULL if count <= FULL else max(1, FULL // laws))
    causes = tables.causes(report)
    in_full = [result for found in failures for result in found.shown] + [cause.shown for cause in causes]
    by_op = grouped(report.results, lambda result: result.case.op)
    cells_by_op = itertools.groupby(report.cells.values(), lambda cell: cell.op)
    ops = [_op(op, list(cells), by_op[op]) for op, cells in cells_by_op]
    return _rendered(
        "report.html",
        report=report,
        failures=failures,
        causes=causes,
        linked={result.case.id for result in in_full},
        groups=[_cases_of(name, laws) for name, laws in report.by_group.items()],
        ops_of_law={
            law: Counter(r.case.op for r in found) for law, found in results_by_law(report.results).items()
        },
        ops=ops,
        errors=list(_errors(report)),
        times=_times(report),
    )


def several_to_page(reports: Sequence[Report]) -> str:
    """Several reports side by side."""
    return _rendered("several.html", reports=reports)


def _rendered(template: str, **content: Any) -> str:
    """A template with its content, in ASCII."""
    page = _environment().get_template(template).render(content)
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tensorken_conformance.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(tables=tables, written=written)
    environment.filters["number"] = "{:,}".format
    environment.filters["names"] = _names
    return environment


def _names(results: Iterable[Result]) -> str:
    """The names by which the filter finds these results."""
    return " ".join(dict.fromkeys(f"{r.case.law} {r.case.op} {r.case.dtype}" for r in results))


# ---- ops ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Op:
    """The results of an op: its cells, a table of its laws, and its failed and unsupported cases."""

    name: str
    cells: Sequence[Cell]
    counts: Account
    laws: tables.Table
    failed: Sequence[Result]
    unsupported: Sequence[str]

    @property
    def names(self) -> str:
        """The names by which the filter finds the op."""
        return " ".join([self.name, *(c.dtype for c in self.cells), *(row[0].text for row in self.laws.rows)])


def _op(op: str, cells: Sequence[Cell], results: Sequence[Result]) -> Op:
    laws = dict.fromkeys(law for cell in cells for law in cell.laws)
    rows = [
        [law, *[tables.outcome(*cell.laws[law]) if law in cell.laws else "" for cell in cells]]
        for law in laws
    ]
    table = tables.table(["law", *(cell.dtype for cell in cells)], rows)
    failed = [result for result in results if is_failure(result)]
    reasons = {result.says for result in results if result.status == "unsupported"}
    counts = sum((cell.counts for cell in cells), Account())
    return Op(op, cells, counts, table, failed, sorted(reasons))


# ---- charts ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar, in percent of the row's width, and the status that gives its colour."""

    start: float
    width: float
    status: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a chart.

    Attributes:
        name: the text at the left.
        label: a sentence for screen readers.
        text: the text at the right.
        parts: the parts of the bar.
        mark: the position of a line, in percent; None if there is none.
        link: the id of the place that the name links to; empty if there is none.
    """

    name: str
    label: str
    text: str
    parts: Sequence[Part]
    mark: float | None = None
    link: str = ""


def _cases_of(group: str, laws: Sequence[LawSummary]) -> Row:
    """The cases of a group of laws, by outcome."""
    counts = sum((law.counts for law in laws), Account())
    said = [
        f"{number:,} {name.removeprefix('declared ')}"
        for _, name, number in tables.outcomes(counts)
        if number
    ]
    text = ", ".join(said) or "no cases"
    return Row(group, f"{group}: {text}", text, _stacked(counts), link=f"group-{group}")


def _stacked(counts: Account) -> list[Part]:
    """The shares of the statuses, side by side; each one that occurs is at least LEAST wide.

    >>> [(part.status, part.start, part.width) for part in _stacked(Account(passed=999, failed=1))]
    [('passed', 0.0, 98.52), ('failed', 98.52, 1.48)]
    """
    found = [(status, number) for status, _, number in tables.outcomes(counts) if number]
    widths = {status: max(LEAST, 100.0 * number / counts.cases) for status, number in found}
    parts, start = [], 0.0
    for status, width in widths.items():
        width = round(100.0 * width / sum(widths.values()), 2)
        parts.append(Part(round(start, 2), width, status))
        start += width
    return parts


def _errors(report: Report) -> Iterator[tuple[str, list[Row], list[str]]]:
    """For each dtype, the ops with errors, and the exact ops."""
    for dtype in report.dtypes:
        cells = [cell for (_, own), cell in report.cells.items() if own == dtype and cell.ulp is not None]
        inexact = [cell for cell in cells if cell.ulp or cell.limit]
        if cells:
            ends = [v for c in inexact for v in (c.ulp, c.limit) if v is not None and math.isfinite(v)]
            rows = [_error(cell, max([1.0, *ends])) for cell in inexact]
            yield dtype, rows, [cell.op for cell in cells if cell not in inexact]


def _error(cell: Cell, end: float) -> Row:
    def place(ulp: float) -> float:
        return round(100 * math.log2(1 + ulp) / math.log2(1 + end), 1) if math.isfinite(ulp) else 100.0

    assert cell.ulp is not None
    mark, text = None, written(cell.ulp)
    if cell.limit is not None:
        mark, text = place(cell.limit), f"{text} of {written(cell.limit)}"
    bar = Part(0.0, place(cell.ulp))
    return Row(cell.op, f"{cell.op} in {cell.dtype}: {text} ULP", text, [bar], mark, f"op-{cell.op}")


def _times(report: Report) -> list[Row]:
    """The times relative to numpy's; the line in the middle is numpy's."""
    measured = timings(report)
    end = max([2.0, *(max(timing.ratio, 1 / timing.ratio) for timing in measured)])
    rows = []
    for timing in measured:
        x = round(50 + 50 * math.log(timing.ratio) / math.log(end), 1)
        text = f"{_time(timing.microseconds)}, {timing.rate}"
        label = f"{timing.name}: {timing.ratio:.2g} times as long as numpy, {text}"
        bar = Part(min(x, 50.0), round(abs(x - 50), 1))
        rows.append(
            Row(timing.name, label, f"{timing.ratio:.2g}\N{MULTIPLICATION SIGN}, {text}", [bar], 50.0)
        )
    return rows


def _time(microseconds: float) -> str:
    """A time with its unit.

    >>> _time(12.34), _time(250_000)
    ('12.3 us', '250 ms')
    """
    for unit, size in (("s", 1e6), ("ms", 1e3), ("us", 1.0)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds * 1e3:.3g} ns"
