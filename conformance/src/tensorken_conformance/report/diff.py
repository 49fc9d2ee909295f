"""Diff: what has changed between two reports of a backend, and whether something got worse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorken_conformance.case import Result
from tensorken_conformance.report.model import Report, is_blocked, stale, timings, written

SHOWN = 12
"""How many changes of a kind are shown; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """A kind of change, and all changes of this kind.

    Attributes:
        title: what kind it is.
        lines: the changes.
        worse: whether they make the backend worse.
    """

    title: str
    lines: tuple[str, ...]
    worse: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """All that has changed.

    Attributes:
        head: what is compared.
        changes: the kinds of changes of which there are any.
    """

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
        """The differences for people."""
        lines = list(self.head)
        for change in self.changes:
            lines += ["", f"{change.title}: {len(change.lines)}{' (worse)' if change.worse else ''}"]
            lines += [f"  {line}" for line in change.lines[:SHOWN]]
            if len(change.lines) > SHOWN:
                lines.append(f"  ... and {len(change.lines) - SHOWN} more")
        verdict = "worse" if self.worse else "nothing got worse" if self.changes else "no difference"
        return "\n".join([*lines, "", verdict])


def compare(old: Report, new: Report, slower: float = 2.0) -> Difference:
    """What has changed from one report to another.

    Args:
        old: the former report.
        new: the later one.
        slower: how many times as long, compared with numpy, an op must take to count as slower.
    """
    before = {result.case.id: result for result in old.results}
    after = {result.case.id: result for result in new.results}
    lost, gained = _capabilities(old, new), _capabilities(new, old)
    changes = (
        Change("level lower", tuple(_level(old, new)), True),
        Change("level higher", tuple(_level(new, old, backwards=True)), False),
        Change("new failures", tuple(_failures(before, after)), True),
        Change("mended", tuple(_mended(before, after)), False),
        Change("lost capabilities", tuple(lost), True),
        Change("gained capabilities", tuple(gained), False),
        Change("less exact", tuple(_errors(old, new)), True),
        Change("more exact", tuple(_errors(new, old, backwards=True)), False),
        Change(f"more than {slower:g} times slower", tuple(_times(old, new, slower)), True),
        Change(f"more than {slower:g} times faster", tuple(_times(new, old, slower, backwards=True)), False),
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


def _level(old: Report, new: Report, backwards: bool = False) -> Iterable[str]:
    before, after = (-1 if r.header.level is None else r.header.level for r in (old, new))
    if old.header.complete and new.header.complete and after < before:
        first, last = (new, old) if backwards else (old, new)
        yield f"{first.header.level_name} -> {last.header.level_name}"


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
    by_law: dict[str, int] = {}
    for id, result in before.items():
        if id not in after and result.status == "passed":
            by_law[result.case.law] = by_law.get(result.case.law, 0) + 1
    return [f"{count} of {law}, which passed" for law, count in by_law.items()]


def _capabilities(had: Report, has: Report) -> Iterable[str]:
    """What the first report has and the second has not."""
    dtypes = [d for d in had.capabilities.dtypes if d not in has.capabilities.dtypes]
    yield from (f"dtype {dtype}" for dtype in dtypes)
    for (op, dtype), cell in had.cells.items():
        other = has.cells.get((op, dtype))
        if dtype not in dtypes and cell.counts.passed and other and other.status == "unsupported":
            yield f"{op} in {dtype}"
    for fact in ("flushes_subnormals", "nondeterministic"):
        for name in getattr(has.capabilities, fact):
            if name not in getattr(had.capabilities, fact):
                yield f"{name}: now {fact.replace('_', ' ')}"
    for place, limit in has.capabilities.ulp.items():
        declared = had.capabilities.ulp.get(place)
        if declared is not None and limit > declared:
            yield f"{place}: an error of {declared} ULP declared, {limit} here"


def _errors(old: Report, new: Report, backwards: bool = False) -> Iterable[str]:
    """The ops whose largest error grew; with other operands, by more than what other operands may do."""
    same = all(getattr(old.header, f) == getattr(new.header, f) for f in ("seed", "depth", "kit"))
    for place, cell in new.cells.items():
        former = old.cells.get(place)
        if former is None or former.ulp is None or cell.ulp is None:
            continue
        if cell.ulp > former.ulp + (0 if same else 1):
            first, last = (cell, former) if backwards else (former, cell)
            worst = f", at {last.worst}" if last.worst else ""
            yield f"{cell.op} in {cell.dtype}: {written(first.ulp)} -> {written(last.ulp)} ULP{worst}"


def _times(old: Report, new: Report, slower: float, backwards: bool = False) -> Iterable[str]:
    """The ops that got slower compared with numpy, which was measured beside them on the same machine."""
    former = {timing.name: timing for timing in timings(old)}
    for timing in timings(new):
        before = former.get(timing.name)
        if before is None:
            continue
        first, last = before.ratio, timing.ratio
        if last > slower * first:
            first, last = (last, first) if backwards else (first, last)
            yield f"{timing.name}: {first:.3g} -> {last:.3g} times as long as numpy"
