"""Plan: the laws and cases of a run, their order, and their division into parts."""

from __future__ import annotations

import contextlib
import functools
import zlib
from collections.abc import Collection, Sequence
from typing import Any

from tensorken_conformance.case import Case
from tensorken_conformance.detection.finders import finders
from tensorken_conformance.law import LAWS, Law
from tensorken_conformance.running.examine import laws_for
from tensorken_conformance.running.options import RunError
from tensorken_conformance.subject import Subject
from tensorken_core.host.discovery import close_matches, suggested
from tensorken_core.language.op import OPS

TIMED = "performance"
"""The group of laws that measure time; they run last, one case at a time."""

ALONE = 1000
"""From this stage on, laws run one after the other in one process, since they measure time."""

IN_TURNS = 2
"""From this stage on, laws have cases in both turns of a run with a budget; others need those of lower stages."""

FINDERS = "finders"
"""Selects the cases that found the seeded faults."""

_PLACES = {name: place for place, name in enumerate(OPS)}
"""The place of each op in the table."""


class PlanError(RunError, ValueError):
    """A selected law or case does not exist."""


class Plan:
    """The selected laws of a subject, in their order, and the selected cases.

    Args:
        subject: the backend under test.
        select: ids of laws, groups, and beginnings of the ids of cases, such as `values.elementwise/exp` or
            `values/exp/float32`; `finders`: the cases that found the seeded faults; empty: all.
        done: the ids of cases that are left out.
        turns: with 2, the cases that others need, and those that found the seeded faults, are a turn of their own.

    Raises:
        PlanError: if a law, group or case of `select` is unknown.

    >>> from tensorken_conformance.backends.loading import load
    >>> plan = Plan(load("reference"), ["values.read-back/full/int32"])
    >>> [case.shape for case in plan.cases(plan.laws[0])][:3]
    ['scalar', 'empty', 'one']
    """

    def __init__(
        self, subject: Subject, select: Collection[str] = (), done: Collection[str] = (), turns: int = 1
    ) -> None:
        self.subject = subject
        self.turns = turns
        self._done = frozenset(done)
        self._first = frozenset(finders().values() if turns > 1 else ())
        named = [tuple(text.strip().strip("/").split("/", 5)) for text in select if text != FINDERS]
        check_select(select)
        _check_kind(subject, [beginning[0] for beginning in named])
        self._beginnings = named + (_finders_for(subject) if FINDERS in select else [])
        if select and not self._beginnings:
            raise PlanError(f"no case for backends like {subject.name} has found a seeded fault")
        laws = laws_for(subject, [beginning[0] for beginning in self._beginnings])
        self.laws = sorted(laws, key=stage_of)
        self.cases = functools.cache(self._cases)
        self._parts = functools.cache(self._split)
        for beginning in named:
            if len(beginning) > 1:
                self._check_case(beginning)

    def _cases(self, law: Law) -> Sequence[Case]:
        found = self.subject_cases(law)
        own = [b for b in self._beginnings if b[0] in (law.id, law.group)]
        if not own or any(len(beginning) == 1 for beginning in own):
            return found
        return [case for case in found if any(_begins(case, beginning) for beginning in own)]

    def count(self) -> int:
        """The number of cases of all laws that are not done, without laws whose cases cannot be listed."""
        total = 0
        for law in self.laws:
            with contextlib.suppress(Exception):  # the job that lists them records it
                total += sum(case.id not in self._done for case in self.cases(law))
        return total

    def subject_cases(self, law: Law) -> list[Case]:
        """All cases of a law, selected or not."""
        return list(law.cases(self.subject))

    def part(self, law: Law, part: int, parts: int) -> list[tuple[int, Case]]:
        """One of several parts of a law's cases that are not done, each case with its place among all.

        All cases of an op in one turn are in one part, the same for every law.  The parts of the first turn come first;
        their number is a multiple of that of the turns.
        """
        return self._parts(law, parts)[part]

    def _split(self, law: Law, parts: int) -> list[list[tuple[int, Case]]]:
        found: list[list[tuple[int, Case]]] = [[] for _ in range(parts)]
        of_turn = parts // self.turns
        for index, case in enumerate(self.cases(law)):
            if case.id not in self._done:
                later = of_turn * (self.turns > 1 and law.stage >= IN_TURNS and case.id not in self._first)
                found[later + _number_of(case.op) % of_turn].append((index, case))
        return found

    def described(self) -> list[dict[str, Any]]:
        """The laws, for the runner and the report."""
        return [{"id": law.id, "says": law.says, "stage": stage_of(law)} for law in self.laws]

    def _check_case(self, beginning: tuple[str, ...]) -> None:
        laws = [law for law in self.laws if beginning[0] in (law.id, law.group)]
        everything = [case for law in laws for case in self.subject_cases(law)]
        if not any(_begins(case, beginning) for case in everything):
            ops = sorted({case.op for case in everything})
            likely = suggested(close_matches(beginning[1], ops)) if beginning[1] not in ops else ""
            raise PlanError(f"no case begins with {'/'.join(beginning)!r}{likely}")


def _finders_for(subject: Subject) -> list[tuple[str, ...]]:
    """The cases of the subject's laws that found the seeded faults, split like other selections."""
    laws = {law.id for law in laws_for(subject)}
    found = {tuple(id.split("/", 5)) for id in finders().values()}
    return sorted(id for id in found if id[0] in laws)


def _number_of(op: str) -> int:
    """A number for an op; those of the table are consecutive, which spreads them over the parts."""
    return _PLACES[op] if op in _PLACES else zlib.crc32(op.encode())


def stage_of(law: Law) -> int:
    """The stage of a law; lower stages run first."""
    return law.stage + ALONE * (law.group == TIMED)


def law_named(name: str) -> Law:
    """The law of an id.

    Raises:
        PlanError: if there is none; it suggests similar ids.

    >>> law_named("values.movement").group
    'values'
    """
    import tensorken_conformance.laws  # noqa: F401, importing it registers the laws

    if name not in LAWS:
        group = [id for id in LAWS if name in id.split(".")]
        likely = f"; the laws of it are {', '.join(group)}" if group else suggested(close_matches(name, LAWS))
        groups = ", ".join(dict.fromkeys(law.group for law in LAWS.values()))
        likely = likely or f"; `tensorken conformance explain GROUP` lists the laws of a group: {groups}"
        raise PlanError(f"there is no law {name!r}{likely}")
    return LAWS[name]


def check_select(select: Collection[str], may_have_laws: bool = False) -> None:
    """Raise PlanError if a selected law or group does not exist; this needs no backend.

    A backend that `may_have_laws` of its own may have one whose name is like no other.
    """
    import tensorken_conformance.laws  # noqa: F401, importing it registers the laws

    groups = {law.group for law in LAWS.values()}
    for text in select:
        name = text.strip().strip("/").partition("/")[0]
        if name != FINDERS and name not in groups and name not in LAWS:
            likely = suggested(close_matches(name, {*LAWS, *groups}))
            if may_have_laws and not likely:
                continue
            likely = likely or f"; there are {', '.join(sorted(groups))}"
            raise PlanError(f"there is no law and no group of laws {name!r}{likely}")


def _check_kind(subject: Subject, names: Collection[str]) -> None:
    """Raise PlanError if a law or group is not for the subject."""
    for name in names:
        if not laws_for(subject, [name]):
            kind = "have no values" if subject.capabilities.symbolic else "have values"
            raise PlanError(f"{name} is not for backends that {kind}, as {subject.name} is")


def _begins(case: Case, beginning: tuple[str, ...]) -> bool:
    """Whether the id of a case has this beginning, whose first part may be the group."""
    parts = ["" if part == "-" else part for part in beginning[1:]]
    return [case.op, case.dtype, case.shape, case.values, case.detail][: len(parts)] == parts and (
        beginning[0] in (case.law, case.law.partition(".")[0])
    )
