"""Tables: what a report shows, whatever its form: rows of short texts, each with a status.

The forms for a terminal, for Markdown and for a page lay out the same tables, failures and levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_conformance.case import Result
from tensorken_conformance.compilers import totals
from tensorken_conformance.levels import SYMBOLIC_TOP, TOP, Account, Level
from tensorken_conformance.report.model import Report, cases_in_order, stale, titles, worst_of, written
from tensorken_core.language.op import OPS

SHOWN = 3
"""How many failures of a law are shown in full."""

LINES = 5
"""How many lines of a script are shown."""


@dataclass(frozen=True, slots=True)
class Field:
    """A text in a table, and the status of the cases that it is about; empty if it is about none."""

    text: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        head: what each column is about.
        rows: the fields, the first of each row being what the row is about.
        legend: what the texts say.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]
    legend: str = ""


def table(head: Iterable[str], rows: Iterable[Iterable[Any]], legend: str = "") -> Table:
    """A table whose fields may be given as plain texts or numbers."""
    fields = [
        tuple([field if isinstance(field, Field) else Field(str(field)) for field in row]) for row in rows
    ]
    return Table(tuple(head), tuple(fields), legend)


# ---- one report --------------------------------------------------------------------------------------------


def facts(report: Report) -> dict[str, str]:
    """What a report is about, and how it was made; facts without a text are left out."""
    header = report.header
    options = "".join(f", {name}={value}" for name, value in header.options.items())
    found = {
        "backend": f"{header.interpreter or 'not loaded'}{options}",
        "runs as": header.stack,
        "distribution": " ".join(filter(None, (header.distribution, header.version))),
        "device": header.device,
        "notes": "; ".join(header.notes),
        "compilers": "; ".join(
            [
                f"{name}: {one.compiled} of {one.offered} programs compiled"
                for name, one in totals(report.results).items()
            ]
        ),
        "kit": f"{header.kit}, {header.detection}",
        "core": f"{header.core}, language {header.language}",
        "machine": f"Python {header.python}, numpy {header.numpy}, {header.platform}",
        "run": f"seed {header.seed}, {header.depth} depth, {header.seconds:.1f} s, {header.date}",
        "only": " ".join(header.select),
    }
    return {name: text for name, text in found.items() if text}


def warnings(report: Report) -> list[str]:
    """What makes the report worth less, or the run fail beside its cases."""
    partial = report.header.partial
    found = [f"Partial: {partial}; cases are missing", stale(report)] if partial else [stale(report)]
    return [*filter(None, found), *(f"Problem: {problem}" for problem in report.problems)]


def outcome(counts: Account, ulp: float | None) -> Field:
    """What became of some cases, in a few characters that need no colour."""
    status, ran, bad = worst_of(counts), counts.cases - counts.unsupported, counts.failed + counts.crashed
    if status == "unsupported":
        return Field("-", status)
    text = f"{bad}/{ran}{'!!' if counts.crashed else '!'}" if bad else f"{ran}{'~' * (counts.expected > 0)}"
    return Field(text if ulp is None else f"{text} {written(ulp)}u", status)


OUTCOMES = (
    "n: cases that passed; k/n!: k of n failed; !!: the backend crashed; ~: expected failures among them; "
    "-: declared unsupported; u: the largest error, in ULP"
)
"""What `outcome` writes."""


def counts(report: Report) -> Table:
    """How many cases became what."""
    c = report.counts
    head = ("cases", "passed", "failed", "expected failures", "declared unsupported", "crashed")
    return table(head, [(c.cases, c.passed, c.failed, c.expected, c.unsupported, c.crashed)])


def ops_and_dtypes(report: Report) -> Table:
    """What became of each op in each dtype; no rows if there were no such cases."""
    rows = []
    for op in report.ops:
        cells = [report.cells.get((op, dtype)) for dtype in report.dtypes]
        if any(cells):
            rows.append([op, *[Field() if c is None else outcome(c.counts, c.ulp) for c in cells]])
    return table(["op", *report.dtypes], rows, OUTCOMES)


def laws(report: Report) -> Table:
    """What became of the cases of each law."""
    rows = []
    for law in report.by_law:
        bad = law.counts.failed + law.counts.crashed - law.blocked
        status = "failed" if bad or law.blocked else "passed"
        fields = [Field(str(bad), status), Field(str(law.blocked), status)]
        rows.append([law.id, law.counts.cases, *fields, f"{law.seconds:.2f}"])
    return table(("law", "cases", "bad", "blocked", "seconds"), rows)


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of a law.

    Attributes:
        law: its id.
        says: the law in a sentence.
        shown: those that are shown.
        rest: says how many more there are, and of which ops; empty if there are none.
    """

    law: str
    says: str
    shown: list[Result]
    rest: str


def failures(report: Report, most: int = SHOWN) -> list[Failures]:
    """The failures by law, at most so many of each, of different ops where possible."""
    found = []
    for law, results in cases_in_order(report.failures).items():
        ops = sorted(dict.fromkeys(result.case.op for result in results), key=_has_body)
        named = ", ".join(ops[:8]) + (f" and {len(ops) - 8} more" if len(ops) > 8 else "")
        rest = len(results) - most
        text = f"... and {rest} more; {len(results)} in all, of {named}" if rest > 0 else ""
        found.append(Failures(law, report.laws.get(law, ""), chosen(results, most), text))
    return found


def chosen(results: Sequence[Result], count: int) -> list[Result]:
    """Some of the results, of as many ops as possible; first those of the required ops, of which others are made."""
    ranks: dict[str, int] = {}
    order: list[tuple[int, bool, int]] = []
    for place, result in enumerate(results):
        rank = ranks.get(result.case.op, 0)
        ranks[result.case.op] = rank + 1
        order.append((rank, _has_body(result.case.op), place))
    return [results[place] for _, place in sorted((made, place) for _, made, place in sorted(order)[:count])]


def _has_body(op: str) -> bool:
    """Whether an op has a body in other ops, so that it may fail for their sake."""
    return op in OPS and OPS[op].body is not None


def levels(report: Report) -> tuple[list[tuple[str, bool, str]], str]:
    """Each level, whether it is reached, and what keeps the backend from it; or why there is no level at all."""
    if not report.header.complete:
        return [], "no level: only a run of all laws gives one"
    if not report.capabilities.dtypes:
        why = "declares no dtypes (Capabilities(dtypes=...))" if report.laws else "does not load"
        return [], f"no level: the backend {why}"
    symbolic = report.header.symbolic
    reached = -1 if report.header.level is None else report.header.level
    rows = []
    for number in range((SYMBOLIC_TOP if symbolic else TOP) + 1):
        why = obstacle(report.obstacles) if number == reached + 1 else "needs the levels below"
        rows.append((f"{Level(number, symbolic)}", number <= reached, "" if number <= reached else why))
    return rows, ""


def obstacle(results: Sequence[Result]) -> str:
    """What keeps a backend from the next level, in a line."""
    if not results:
        return "no case of it passed"
    by_law = {law: len(found) for law, found in cases_in_order(results).items()}
    most = sorted(by_law.items(), key=lambda item: -item[1])
    named = ", ".join(f"{count} of {law}" for law, count in most[:4])
    more = f", {sum(count for _, count in most[4:])} of others" if len(most) > 4 else ""
    return f"kept from it by {len(results)} case{'s'[: len(results) != 1]}: {named}{more}"


# ---- several reports ---------------------------------------------------------------------------------------


def backends(reports: Sequence[Report]) -> Table:
    """A row about each report."""
    rows = []
    for report, name in zip(reports, titles(reports), strict=True):
        header, c = report.header, report.counts
        level = f"{header.level_name}{'' if header.complete else ' partial'}"
        kit = f"{header.kit}{' stale' if stale(report) else ''}"
        dtypes = len(report.capabilities.dtypes)
        rows.append([name, level, dtypes, c.cases, c.failed + c.crashed, kit, header.date[:10]])
    return table(("backend", "level", "dtypes", "cases", "bad", "kit", "date"), rows)


def ops(reports: Sequence[Report]) -> Table:
    """What became of each op in each report, in all dtypes."""
    named = dict.fromkeys(op for report in reports for op, _ in report.cells)
    legend = (
        "n: dtypes in which all cases passed; k/n!: in k of n dtypes cases failed; -: declared unsupported; "
        "u: the largest error, in ULP"
    )
    rows = [[op, *[_in_all_dtypes(report, op) for report in reports]] for op in named]
    return table(["op", *titles(reports)], rows, legend)


def _in_all_dtypes(report: Report, op: str) -> Field:
    cells = [found for (name, _), found in report.cells.items() if name == op]
    ran = [found for found in cells if found.status != "unsupported"]
    if not ran:
        return Field("-" if cells else "", "unsupported")
    bad = sum(found.bad > 0 for found in ran)
    text = f"{bad}/{len(ran)}!" if bad else str(len(ran))
    ulp = max((found.ulp for found in ran if found.ulp is not None), default=None)
    order = ("crashed", "failed", "expected failure", "passed")
    status = min([found.status for found in ran], key=order.index)
    return Field(text if ulp is None else f"{text} {written(ulp)}u", status)
