"""Terminal: a report as text of ASCII characters: the matrix, the failures, the levels, and what took how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorken_conformance.case import Result
from tensorken_conformance.levels import SYMBOLIC_TOP, TOP, Level
from tensorken_conformance.report.model import Cell, Report, cases_in_order, written
from tensorken_core.language.op import OPS

SHOWN = 3
"""How many failures of a law are shown in full."""

LONGEST = 400
"""How many characters of a message are shown; the JSON report has more."""

LINES = 5
"""How many lines of a script are shown."""

LEGEND = (
    "n: cases that passed; k/n!: k of n failed; ~: expected failures among them; -: declared unsupported; "
    "u: the largest error, in ULP"
)

_COLOURS = {"passed": "32", "failed": "31;1", "crashed": "35;1", "expected failure": "33", "unsupported": "2"}


class Painter:
    """Puts colours around text, or not.

    >>> Painter(colour=False).paint("3/7!", "failed")
    '3/7!'
    """

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def paint(self, text: str, status: str) -> str:
        """The text in the colour of a status."""
        return f"\x1b[{_COLOURS[status]}m{text}\x1b[0m" if self.colour and text.strip() else text

    def bold(self, text: str) -> str:
        """A heading."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text


def to_text(report: Report, colour: bool = False, matrix: bool = True) -> str:
    """A report for people in front of a terminal.

    Args:
        report: what to show.
        colour: whether the terminal understands colours.
        matrix: whether to show what became of each op in each dtype.
    """
    painter = Painter(colour)
    parts = [
        _head(report, painter),
        _matrix(report, painter) if matrix and report.cells else [],
        _laws(report, painter),
        _failures(report, painter),
        _levels(report, painter),
        _end(report, painter),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _head(report: Report, painter: Painter) -> list[str]:
    header = report.header
    options = "".join(f", {name}={value}" for name, value in header.options.items())
    selected = f", only {' '.join(header.select)}" if header.select else ""
    lines = [
        painter.bold(f"{header.title}: {header.interpreter or 'not loaded'}{options}"),
        f"kit {header.kit}, language {header.language}, core {header.core}, Python {header.python}, "
        f"numpy {header.numpy}, {header.platform}",
        f"seed {header.seed}, {header.depth} depth{selected}, {header.detection}",
        *header.notes,
    ]
    if header.partial:
        lines.append(painter.paint(f"PARTIAL: {header.partial}; cases are missing", "failed"))
    return lines


# ---- the matrix --------------------------------------------------------------------------------------------


def shown(cell: Cell | None) -> str:
    """A cell in a few characters: how many cases ran, how many of them are bad, the largest error."""
    if cell is None:
        return ""
    if cell.status == "unsupported":
        return "-"
    if cell.bad:
        count = f"{cell.bad}/{cell.run}!"
    else:
        count = f"{cell.run}{'~' if cell.counts.expected else ''}"
    return f"{count} {written(cell.ulp)}u" if cell.ulp is not None else count


def _matrix(report: Report, painter: Painter) -> list[str]:
    dtypes = report.dtypes
    rows = []
    for op in report.ops:
        cells = [report.cells.get((op, dtype)) for dtype in dtypes]
        if any(cells):
            rows.append((op, cells))
    widths = [max(len(dtype), *(len(shown(cells[i])) for _, cells in rows)) for i, dtype in enumerate(dtypes)]
    width = max(len(op) for op, _ in rows)
    names = "  ".join(dtype.ljust(w) for dtype, w in zip(dtypes, widths, strict=True))
    lines = [painter.bold(f"{'op':<{width}}  {names}".rstrip())]
    for op, cells in rows:
        texts = [
            painter.paint(shown(cell).ljust(w), cell.status if cell else "unsupported")
            for cell, w in zip(cells, widths, strict=True)
        ]
        lines.append(f"{op:<{width}}  {'  '.join(texts)}".rstrip())
    legend = (
        "n: cases that passed; k/n!: k of n failed; ~: expected failures among them; -: declared unsupported"
    )
    return [*lines, f"({legend}; u: the largest error, in ULP)"]


# ---- laws, failures, levels --------------------------------------------------------------------------------


def _laws(report: Report, painter: Painter) -> list[str]:
    if not report.by_law:
        return []
    width = max(len(law.id) for law in report.by_law)
    lines = [painter.bold(f"{'law':<{width}}   cases     bad  blocked  seconds")]
    for law in report.by_law:
        bad = law.counts.failed + law.counts.crashed - law.blocked
        counts = painter.paint(f"{bad:>7}  {law.blocked:>7}", "failed" if bad or law.blocked else "passed")
        lines.append(f"{law.id:<{width}} {law.counts.cases:>7} {counts} {law.seconds:>8.2f}")
    return lines


def _failures(report: Report, painter: Painter) -> list[str]:
    lines: list[str] = []
    for law, results in cases_in_order(report.failures).items():
        lines += ["", painter.paint(f"{law}: {report.laws.get(law, '')}".rstrip(": "), "failed")]
        for result in chosen(results, SHOWN):
            lines += _failure(result)
        rest = len(results) - SHOWN
        if rest > 0:
            ops = sorted(dict.fromkeys(result.case.op for result in results), key=_is_made)
            named = ", ".join(ops[:8]) + (f" and {len(ops) - 8} more" if len(ops) > 8 else "")
            lines.append(f"  ... and {rest} more; {len(results)} in all, of {named}")
    if report.blocked:
        lines += ["", painter.paint("blocked: cases that wait for one that failed", "failed")]
        lines += [f"  {count} by {blocker}" for blocker, count in report.blocked.items()]
    if report.failures:
        again = (
            f"tensorken conformance repro CASE --backend {report.header.backend} --seed {report.header.seed}"
            + ("" if report.header.depth == "default" else f" --{report.header.depth}")
        )
        lines += ["", f"one of them again, with the traceback of what a backend raised: {again}"]
    return lines[1:]


def chosen(results: Sequence[Result], count: int) -> list[Result]:
    """Some of the results, of as many ops as possible; first those of the required ops, of which others are made."""
    ranks: dict[str, int] = {}
    order: list[tuple[int, bool, int]] = []
    for place, result in enumerate(results):
        rank = ranks.get(result.case.op, 0)
        ranks[result.case.op] = rank + 1
        order.append((rank, _is_made(result.case.op), place))
    return [results[place] for _, place in sorted((made, place) for _, made, place in sorted(order)[:count])]


def _is_made(op: str) -> bool:
    """Whether an op has a body in other ops, so that it may fail for their sake."""
    return op in OPS and OPS[op].body is not None


def _failure(result: Result) -> Iterator[str]:
    yield f"  {result.case.id}"
    worst = f" (worst at {result.worst})" if result.worst and result.worst not in result.says else ""
    yield f"    {_cut(result.says)}{_cut(worst)}"
    for line in result.script[:LINES]:
        yield f"      {line}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _levels(report: Report, painter: Painter) -> list[str]:
    if not report.header.complete:
        return ["no level: only a run of all laws gives one"]
    if not report.capabilities.dtypes:
        why = "declares no dtypes (Capabilities(dtypes=...))" if report.laws else "does not load"
        return [painter.paint(f"no level: the backend {why}", "failed")]
    symbolic = report.header.symbolic
    reached = -1 if report.header.level is None else report.header.level
    lines = []
    for number in range((SYMBOLIC_TOP if symbolic else TOP) + 1):
        name = f"{Level(number, symbolic)}"
        if number <= reached:
            lines.append(f"  {painter.paint(f'{name:<20}', 'passed')} reached")
        else:
            why = obstacle(report.obstacles) if number == reached + 1 else "needs the levels below"
            lines.append(f"  {name:<20} {why}")
    return [painter.bold("levels"), *lines]


def obstacle(results: Sequence[Result]) -> str:
    """What keeps a backend from the next level, in a line."""
    if not results:
        return "no case of it passed"
    laws = {law: len(found) for law, found in cases_in_order(results).items()}
    most = sorted(laws.items(), key=lambda item: -item[1])
    named = ", ".join(f"{count} of {law}" for law, count in most[:4])
    more = f", {sum(count for _, count in most[4:])} of others" if len(most) > 4 else ""
    return f"kept from it by {_number(len(results), 'case')}: {named}{more}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _end(report: Report, painter: Painter) -> list[str]:
    status = "failed" if report.status else "passed"
    lines = [painter.paint(f"PROBLEM: {problem}", "failed") for problem in report.problems]
    lines += [f"NOTE: {remark}" for remark in report.remarks]
    lines.append(painter.paint(str(report.counts), status))
    lines.append(f"{report.header.seconds:.1f} s in all" + _slowest(report))
    lines.append(painter.bold(f"{report.header.backend}: {report.claim}"))
    return lines


def _slowest(report: Report) -> str:
    slow = sorted(report.by_law, key=lambda law: -law.seconds)[:3]
    named = ", ".join(f"{law.id} {law.seconds:.1f} s" for law in slow if law.seconds >= 0.1)
    return f"; most of it for {named}" if named else ""
