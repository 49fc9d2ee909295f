"""Tables: the content of a report for all formats: rows of short texts, each with a status.

The text, Markdown and HTML formats lay out the same tables, failures and levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorken_conformance.case import Result, Status
from tensorken_conformance.compilers import totals
from tensorken_conformance.levels import SYMBOLIC_TOP, TOP, WORST_FIRST, Account, Level
from tensorken_conformance.report.model import Report, grouped, results_by_law, stale, titles, written
from tensorken_core.language.op import OPS

SHOWN = 3
"""The number of failures of a law that are shown in full."""

COMMON = 4
"""From this number of cases on, those that fail by the same cause are shown as one failure."""

LINES = 5
"""The number of lines of a script that are shown."""


@dataclass(frozen=True, slots=True)
class Field:
    """A text in a table, and the status of its cases; empty if it has none."""

    text: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        head: the titles of the columns; empty if they have none.
        rows: the fields; the first of each row is its title.
        legend: the meaning of the texts.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]
    legend: str = ""

    @property
    def right(self) -> list[bool]:
        """For each column, whether it has numbers only, and so is aligned to the right."""
        columns = zip(*self.rows, strict=True)
        return [all(field.text.replace(".", "").isdecimal() for field in column) for column in columns]


def table(head: Iterable[str], rows: Iterable[Iterable[Any]], legend: str = "") -> Table:
    """A table of fields, texts or numbers."""
    fields = [
        tuple([field if isinstance(field, Field) else Field(str(field)) for field in row]) for row in rows
    ]
    return Table(tuple(head), tuple(fields), legend)


# ---- one report --------------------------------------------------------------------------------------------


def facts(report: Report) -> dict[str, str]:
    """The subject of a report and the settings of its run, without empty ones."""
    header = report.header
    options = "".join(f", {name}={value}" for name, value in header.options.items())
    versions = {
        "kit": header.kit,
        "core": header.core,
        "language": header.language,
        "Python": header.python,
        "numpy": header.numpy,
    }
    found = {
        "backend": f"{header.interpreter or 'not loaded'}{options}",
        "runs as": header.stack,
        "distribution": " ".join(filter(None, (header.distribution, header.version))),
        "device": header.device,
        "notes": "; ".join(header.notes),
        "dtypes": ", ".join(report.capabilities.dtypes),
        "compilers": "; ".join(
            [
                f"{name}: {one.compiled} of {one.offered} programs compiled"
                for name, one in totals(report.results).items()
            ]
        ),
        "detection": header.detected,
        "run": f"{header.depth} depth, seed {header.seed}",
        "only": " ".join(header.select),
        "time": f"{header.seconds:.1f} s, ended {header.date[:16].replace('T', ' ')} UTC",
        "versions": ", ".join(f"{name} {text}" for name, text in versions.items() if text),
        "machine": header.platform,
    }
    return {name: text for name, text in found.items() if text}


def verdict(report: Report) -> str:
    """The result of a run in a few words, without its level."""
    counts, header = report.counts, report.header
    if counts.bad:
        found = f"{counts.bad:,} of {counts.ran:,} cases failed"
    elif counts.expected:
        found = f"{counts.passed:,} cases passed, {counts.expected:,} failed as expected"
    else:
        found = f"all {counts.passed:,} cases passed" if counts.passed else "no case passed"
    if not header.complete:
        return f"{found}; only a part of the laws was examined"
    notes = {"smoke": "; a smoke run, so the level is preliminary", "deep": "; a deep run"}
    return found + notes.get(header.depth, "")


def warnings(report: Report) -> list[str]:
    """Why the report is incomplete or out of date, and the problems of the run."""
    partial = report.header.partial
    found = [f"Partial: {partial}; {report.so_far}", stale(report)] if partial else [stale(report)]
    return [*filter(None, found), *(f"Problem: {problem}" for problem in report.problems)]


def outcome(counts: Account, ulp: float | None) -> Field:
    """The results of some cases, in a few characters that need no colour."""
    if counts.worst == "unsupported":
        return Field("-", counts.worst)
    bad, mark = f"{counts.bad}/{counts.ran}{'!!' if counts.crashed else '!'}", "~" * (counts.expected > 0)
    return _measured(bad if counts.bad else f"{counts.ran}{mark}", ulp, counts.worst)


def _measured(text: str, ulp: float | None, status: str) -> Field:
    return Field(text if ulp is None else f"{text} {written(ulp)}u", status)


OUTCOMES = (
    "n: cases that passed; k/n!: k of n failed; !!: the backend crashed; ~: expected failures among them; "
    "-: declared unsupported; u: the largest error, in ULP"
)
"""The legend of `outcome`."""


def outcomes(counts: Account) -> list[tuple[Status, str, int]]:
    """Each status, its name for readers, and the number of cases."""
    return [
        ("passed", "passed", counts.passed),
        ("failed", "failed", counts.failed),
        ("crashed", "crashed", counts.crashed),
        ("expected failure", "expected failures", counts.expected),
        ("unsupported", "declared unsupported", counts.unsupported),
    ]


def counts(report: Report) -> Table:
    """The number of cases of each status."""
    found = outcomes(report.counts)
    names, numbers = [name for _, name, _ in found], [number for _, _, number in found]
    return table(["cases", *names], [[report.counts.cases, *numbers]])


def ops_and_dtypes(report: Report) -> Table:
    """The results of each op in each dtype; no rows if there were no such cases."""
    rows = []
    for op in report.ops:
        cells = [report.cells.get((op, dtype)) for dtype in report.dtypes]
        if any(cells):
            rows.append([op, *[Field() if c is None else outcome(c.counts, c.ulp) for c in cells]])
    return table(["op", *report.dtypes], rows, OUTCOMES)


def laws(report: Report) -> Table:
    """The results of each law."""
    rows = []
    for law in report.by_law:
        status = "failed" if law.counts.bad else "passed"
        bad = [Field(str(count), status) for count in (law.counts.bad - law.blocked, law.blocked)]
        rows.append([law.id, law.counts.cases, *bad, f"{law.seconds:.2f}"])
    return table(("law", "cases", "bad", "blocked", "seconds"), rows)


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of a law.

    Attributes:
        law: the id of the law.
        says: the law in a sentence.
        results: all failures.
        shown: the failures that are shown in full.
    """

    law: str
    says: str
    results: list[Result]
    shown: list[Result]

    @property
    def rest(self) -> str:
        """The number of other failures, and the ops of all; empty if all are shown."""
        count, rest = len(self.results), len(self.results) - len(self.shown)
        return f"... and {rest} more; {count} in all, of {ops_of(self.results)}" if rest else ""


def failures(report: Report, most: int = SHOWN) -> list[Failures]:
    """The failures by law, without those of a common cause.

    At most `most` of each law are shown, of different ops where possible.
    """
    common = {result.case.id for cause in causes(report) for result in cause.results}
    others = [result for result in report.failures if result.case.id not in common]
    return [
        Failures(law, report.laws.get(law, ""), results, chosen(results, most))
        for law, results in results_by_law(others).items()
    ]


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of several cases, such as one line of code that raised their exceptions.

    Attributes:
        says: the class of the exception, and the line; or another cause.
        results: the cases.
        shown: the case that is shown in full.
    """

    says: str
    results: list[Result]
    shown: Result

    @property
    def title(self) -> str:
        """The number of cases, the line, and the message if it is the same for all."""
        messages = {result.says for result in self.results}
        message = f": {self.shown.says}" if len(messages) == 1 else ""
        by = "by one exception: " if " raised by " in self.says else ""
        return f"{len(self.results)} failures {by}{self.says}{message}"

    @property
    def cases(self) -> str:
        """The number of cases of each law, and the ops."""
        count = Counter(result.case.law for result in self.results)
        laws = ", ".join(f"{number} of {law}" for law, number in count.most_common())
        return f"{laws}; {ops_of(self.results)}"


def causes(report: Report) -> list[Cause]:
    """The causes of COMMON cases or more, the most frequent first."""
    found = grouped([r for r in report.failures if r.cause], lambda result: result.cause)
    common = [(says, results) for says, results in found.items() if len(results) >= COMMON]
    common.sort(key=lambda pair: -len(pair[1]))
    return [Cause(says, results, chosen(results, 1)[0]) for says, results in common]


def chosen(results: Sequence[Result], count: int) -> list[Result]:
    """Some of the results, of as many ops as possible; required ops first, since bodies of other ops use them."""
    ranked: list[tuple[int, bool, int]] = []
    places = {id(result): place for place, result in enumerate(results)}
    for op, found in grouped(results, lambda result: result.case.op).items():
        ranked += [(rank, _has_body(op), places[id(result)]) for rank, result in enumerate(found)]
    return [results[place] for _, place in sorted((made, place) for _, made, place in sorted(ranked)[:count])]


def ops_of(results: Sequence[Result]) -> str:
    """The ops of some cases, at most eight of them, required ops first."""
    ops = sorted(dict.fromkeys(result.case.op for result in results), key=_has_body)
    return ", ".join(ops[:8]) + (f" and {len(ops) - 8} more" if len(ops) > 8 else "")


def _has_body(op: str) -> bool:
    """Whether an op has a body in other ops, which may be the cause of its failure."""
    return op in OPS and OPS[op].body is not None


@dataclass(frozen=True, slots=True)
class Step:
    """A level, whether it is reached, and the obstacle if it is not."""

    level: Level
    reached: bool
    obstacle: str = ""


def levels(report: Report) -> tuple[list[Step], str]:
    """Each level as a step; or why there is no level at all."""
    if not report.header.complete:
        return [], "no level: only a run of all laws gives one"
    if not report.capabilities.dtypes:
        why = "declares no dtypes (Capabilities(dtypes=...))" if report.laws else "does not load"
        return [], f"no level: the backend {why}"
    symbolic = report.header.symbolic
    reached = -1 if report.header.level is None else report.header.level
    steps = []
    for number in range((SYMBOLIC_TOP if symbolic else TOP) + 1):
        why = "needs the lower levels" if number > reached else ""
        why = obstacle(report.obstacles) if number == reached + 1 else why
        steps.append(Step(Level(number, symbolic), number <= reached, why))
    return steps, ""


def obstacle(results: Sequence[Result]) -> str:
    """The cases that prevent the next level, in one line."""
    if not results:
        return "no case of it passed"
    most = Counter(result.case.law for result in results).most_common()
    named = ", ".join(f"{count} of {law}" for law, count in most[:4])
    more = f", {sum(count for _, count in most[4:])} of others" if len(most) > 4 else ""
    return f"prevented by {len(results)} case{'s'[: len(results) != 1]}: {named}{more}"


# ---- several reports ---------------------------------------------------------------------------------------


def backends(reports: Sequence[Report]) -> Table:
    """One row for each report."""
    rows = []
    for report, name in zip(reports, titles(reports), strict=True):
        header, c = report.header, report.counts
        level = f"{header.level_name}{'' if header.complete else ' partial'}"
        kit = f"{header.kit}{' stale' if stale(report) else ''}"
        dtypes = len(report.capabilities.dtypes)
        rows.append([name, level, dtypes, c.cases, c.bad, kit, header.date[:10]])
    return table(("backend", "level", "dtypes", "cases", "bad", "kit", "date"), rows)


def ops(reports: Sequence[Report]) -> Table:
    """The results of each op in each report, in all dtypes."""
    named = dict.fromkeys(op for report in reports for op, _ in report.cells)
    legend = (
        "n: dtypes in which all cases passed; k/n!: in k of n dtypes cases failed; -: declared unsupported; "
        "u: the largest error, in ULP"
    )
    rows = [[op, *[_in_all_dtypes(report, op) for report in reports]] for op in named]
    return table(["op", *titles(reports)], rows, legend)


def _in_all_dtypes(report: Report, op: str) -> Field:
    cells = [found for (name, _), found in report.cells.items() if name == op]
    ran = [found for found in cells if found.counts.worst != "unsupported"]
    if not ran:
        return Field("-" if cells else "", "unsupported")
    bad = sum(found.counts.bad > 0 for found in ran)
    ulp = max((found.ulp for found in ran if found.ulp is not None), default=None)
    status = min([found.counts.worst for found in ran], key=WORST_FIRST.index)
    return _measured(f"{bad}/{len(ran)}!" if bad else str(len(ran)), ulp, status)
