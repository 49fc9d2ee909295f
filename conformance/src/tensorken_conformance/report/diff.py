"""Diff: the changes between two reports of a backend, and whether something got worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tensorken_conformance.case import Result
from tensorken_conformance.report.model import Report, is_blocked, stale, timings, written

SHOWN = 12
"""The number of changes of a group that are shown; the others are counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """A group of changes: its title, a line for each, and whether they make the backend worse."""

    title: str
    lines: tuple[str, ...]
    worse: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """The descriptions of the two reports, and the non-empty groups of changes."""

    head: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def worse(self) -> bool:
        """Whether something got worse."""
        return any(change.worse for change in self.changes)

    @property
    def status(self) -> int:
        """The exit status: 1 if something got worse."""
        return int(self.worse)

    @property
    def text(self) -> str:
        """The differences as text."""
        lines = list(self.head)
        for change in self.changes:
            lines += ["", f"{change.title}: {len(change.lines)}{' (worse)' if change.worse else ''}"]
            lines += [f"  {line}" for line in change.lines[:SHOWN]]
            if len(change.lines) > SHOWN:
                lines.append(f"  ... and {len(change.lines) - SHOWN} more")
        verdict = "worse" if self.worse else "nothing got worse" if self.changes else "no difference"
        return "\n".join([*lines, "", verdict])


def compare(old: Report, new: Report, slower: float = 2.0) -> Difference:
    """The changes from one report to another.

    Args:
        old: the earlier report.
        new: the later report.
        slower: the factor by which the time of an op, relative to numpy's, must grow to count as slower.
    """
    before = {result.case.id: result for result in old.results}
    after = {result.case.id: result for result in new.results}
    times = f"more than {slower:g} times"
    changes = (
        *_both("level lower", "level higher", _levels(old, new)),
        Change("new failures", tuple(_failures(before, after)), True),
        Change("mended", tuple(_mended(before, after)), False),
        Change("lost capabilities", tuple(_capabilities(old, new)), True),
        Change("gained capabilities", tuple(_capabilities(new, old)), False),
        *_both("less exact", "more exact", _errors(old, new)),
        *_both(f"{times} slower", f"{times} faster", _times(old, new, slower)),
        Change("cases that are gone", tuple(_gone(before, after)), False),
        Change("problems", tuple(p for p in new.problems if p not in old.problems), True),
    )
    return Difference(tuple(_head(old, new)), tuple(change for change in changes if change.lines))


def _head(old: Report, new: Report) -> Iterable[str]:
    for name, report in (("old", old), ("new", new)):
        header = report.header
        yield f"{name}: {header.title}, {header.level_name}, {header.date}, {report.counts}"
        if reason := stale(report):
            yield f"     {reason}"
        if not header.complete:
            yield "     only a part of the laws was examined"
    if old.header.kit != new.header.kit:
        yield f"two kits: {old.header.kit} and {new.header.kit} need not have the same cases"
    if (old.header.seed, old.header.depth) != (new.header.seed, new.header.depth):
        yield "two seeds or depths: the operands are not the same, and only errors of 1 ULP more count"
    if old.header.distribution != new.header.distribution:
        yield f"two backends: {old.header.distribution} and {new.header.distribution}"


Moves = Iterable[tuple[bool, str]]
"""Changes that may go both ways: whether each one is for the worse, and its line."""


def _both(worse: str, better: str, moves: Moves) -> Iterator[Change]:
    moves = list(moves)
    for title, is_worse in ((worse, True), (better, False)):
        yield Change(title, tuple(line for found, line in moves if found is is_worse), is_worse)


def _levels(old: Report, new: Report) -> Moves:
    before, after = (-1 if r.header.level is None else r.header.level for r in (old, new))
    if old.header.complete and new.header.complete and before != after:
        yield after < before, f"{old.header.level_name} -> {new.header.level_name}"


def _bad(result: Result | None) -> bool:
    return result is not None and result.status in ("failed", "crashed")


def _failures(before: Mapping[str, Result], after: Mapping[str, Result]) -> Iterable[str]:
    blocked = 0
    for id, result in after.items():
        if _bad(result) and not _bad(before.get(id)):
            if is_blocked(result):
                blocked += 1
            else:
                was = before[id].status if id in before else "new"
                yield f"{id} (was {was}): {result.says}"
    if blocked:
        yield f"{blocked} cases that wait for one that failed"


def _mended(before: Mapping[str, Result], after: Mapping[str, Result]) -> Iterable[str]:
    for id, result in before.items():
        if _bad(result) and id in after and not _bad(after[id]):
            yield f"{id} ({after[id].status})"


def _gone(before: Mapping[str, Result], after: Mapping[str, Result]) -> Iterable[str]:
    gone = (result.case.law for id, result in before.items() if id not in after and result.status == "passed")
    return [f"{count} of {law}, which passed" for law, count in Counter(gone).items()]


def _capabilities(had: Report, has: Report) -> Iterable[str]:
    """The capabilities that only the first report has."""
    dtypes = [d for d in had.capabilities.dtypes if d not in has.capabilities.dtypes]
    yield from (f"dtype {dtype}" for dtype in dtypes)
    for (op, dtype), cell in had.cells.items():
        other = has.cells.get((op, dtype))
        if dtype not in dtypes and cell.counts.passed and other and other.counts.worst == "unsupported":
            yield f"{op} in {dtype}"
    for fact in ("flushes_subnormals", "nondeterministic"):
        for name in getattr(has.capabilities, fact):
            if name not in getattr(had.capabilities, fact):
                yield f"{name}: now {fact.replace('_', ' ')}"
    for place, limit in has.capabilities.ulp.items():
        declared = had.capabilities.ulp.get(place)
        if declared is not None and limit > declared:
            yield f"{place}: an error of {declared} ULP declared, {limit} here"


def _errors(old: Report, new: Report) -> Moves:
    """The ops whose largest error changed; by more than 1 ULP if the operands differ."""
    same = all(getattr(old.header, f) == getattr(new.header, f) for f in ("seed", "depth", "kit"))
    slack = 0 if same else 1
    for place, cell in new.cells.items():
        former = old.cells.get(place)
        if former is None or former.ulp is None or cell.ulp is None:
            continue
        if (worse := cell.ulp > former.ulp + slack) or former.ulp > cell.ulp + slack:
            worst = f", at {cell.worst}" if cell.worst else ""
            yield worse, f"{cell.op} in {cell.dtype}: {written(former.ulp)} -> {written(cell.ulp)} ULP{worst}"


def _times(old: Report, new: Report, slower: float) -> Moves:
    """The ops whose time changed relative to numpy's, which was measured on the same machine."""
    former = {timing.name: timing.ratio for timing in timings(old)}
    for timing in timings(new):
        before, after = former.get(timing.name, timing.ratio), timing.ratio
        if after > slower * before or before > slower * after:
            yield after > before, f"{timing.name}: {before:.3g} -> {after:.3g} times as long as numpy"
