"""Selftest: the proof of the kit: it finds every seeded fault and every mutant, and none where there is none."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, entering faults and laws is what it does
from tensorken_conformance.faults.fault import FAULTS, Fault
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.finders import finders
from tensorken_conformance.running.plan import PlanError
from tensorken_conformance.running.pool import Task, do_all
from tensorken_conformance.selftest import mutants
from tensorken_conformance.selftest.detection import fingerprint
from tensorken_conformance.selftest.right import RIGHT
from tensorken_core.host.discovery import did_you_mean

PORTION = 0.05
"""How many of the cases of right backends an ordinary selftest examines; each seed picks its own."""

NARROW = 0.01
"""In how many cells of its ops a fault may show that is not crude."""

LIMIT = 10.0
"""Seconds that a case may compute on a faulty backend before that counts as hanging: it is one of its faults."""

SLOW = 30.0
"""The same where the deepest cases are examined, and for mutants, which stop by themselves sooner."""

PATIENCE = 120.0
"""The same for right backends."""

WITHOUT_VERDICT = ("performance",)
"""The groups of laws that measure and never fail, so that no fault is aimed at them."""


@dataclass(frozen=True, slots=True)
class Selftest:
    """What a selftest has found.

    Attributes:
        seeds: how many seeds of random numbers it ran with.
        faults: how many faulty backends there are.
        caught: how many of them every seed caught by the law that they are aimed at.
        mutants: how many changes of the reference backend there are.
        killed: how many of them a law found.
        equivalent: how many of them are listed as changing nothing.
        examined: how many cases were examined on right backends.
        alarms: how many of them failed.
        misses: a line for each thing that is not as it should be.
        found: for each fault the case that found it last.
        seconds: how long it took.
    """

    seeds: int
    faults: int
    caught: int
    mutants: int
    killed: int
    equivalent: int
    examined: int
    alarms: int
    misses: tuple[str, ...]
    found: dict[str, str]
    seconds: float

    @property
    def detection(self) -> str:
        """Such as `detection 78/78`."""
        return f"detection {self.caught}/{self.faults}"

    @property
    def summary(self) -> str:
        """All counts in one line."""
        return (
            f"{self.detection}, {self.seeds} seed{'s'[: self.seeds != 1]}; "
            f"mutants {self.killed} of {self.mutants} found, {self.equivalent} equivalent; "
            f"{self.alarms} false alarms in {self.examined} cases on {len(RIGHT)} right backends; "
            f"{self.seconds:.1f} s"
        )

    def as_data(self) -> dict[str, Any]:
        """The counts, as `detection.json` has them, and what they hold for."""
        names = ("faults", "caught", "mutants", "killed", "equivalent", "alarms", "seeds")
        return {"fingerprint": fingerprint(), **{name: getattr(self, name) for name in names}}

    @property
    def status(self) -> int:
        """The exit status: 0 if everything was as it should be, else 1."""
        return 1 if self.misses else 0


def run(
    seeds: int = 1, deep: bool = False, select: Collection[str] = (), tell: Callable[[str], None] = print
) -> Selftest:
    """Try the kit on backends whose faults are known, on mutants of a right one, and on right ones.

    Args:
        seeds: with how many seeds of random numbers, from 0 on.
        deep: whether to examine the right backends in full, to try each mutant that is listed as changing nothing on
            every case, and to measure how narrow the faults are.
        select: families or ids of faults, ids of laws, `mutants` or `right`; none: all.
        tell: called with each line of the report, as it comes.

    Raises:
        PlanError: if `select` names something unknown.
    """
    start = time.perf_counter()
    faults, with_mutants, with_right = _selected(select)
    tally = _Tally(seeds, {fault.id: fault for fault in faults}, tell)
    tasks = tally.fault_tasks()
    if with_mutants:
        tasks += tally.mutant_tasks(deep)
    if with_right:
        tasks += tally.right_tasks(1.0 if deep else PORTION)
    if deep:
        tasks += tally.share_tasks()
    while tasks:
        do_all(tasks, "selftest.trials", min(8, os.cpu_count() or 1))
        tasks, tally.waiting = tally.waiting, []
    found = tally.result(time.perf_counter() - start)
    tell(found.summary)
    return found


def _selected(select: Collection[str]) -> tuple[list[Fault], bool, bool]:
    """The faults that are chosen, and whether mutants and right backends are."""
    rest = set(select) - {"mutants", "right"}
    known = {name for fault in FAULTS.values() for name in (fault.family, fault.id, fault.law)}
    for name in sorted(rest - known):
        raise PlanError(f"there is no family, fault or law {name!r}{did_you_mean(name, sorted(known))}")
    faults = [f for f in FAULTS.values() if not select or rest & {f.family, f.id, f.law}]
    return faults, not select or "mutants" in select, not select or "right" in select


class _Tally:
    """What a selftest has found so far."""

    def __init__(self, seeds: int, faults: dict[str, Fault], tell: Callable[[str], None]) -> None:
        self._seeds, self._faults, self._tell = seeds, faults, tell
        self._missed: set[str] = set()
        self._found: dict[str, str] = {}
        self._counts = Counter[str]()
        self._misses: list[str] = []
        self._left = Counter(dict.fromkeys(faults, seeds))
        self.waiting: list[Task] = []

    def _miss(self, says: str) -> None:
        self._misses.append(says)
        self._tell(says)

    # ---- faults --------------------------------------------------------------------------------------------

    def fault_tasks(self) -> list[Task]:
        """Each fault with each seed; those that are aimed at one law together, as they share oracles."""
        order = sorted(self._faults.values(), key=lambda fault: fault.law)
        return [self._fault_task(fault, seed) for seed in range(self._seeds) for fault in order]

    def _fault_task(self, fault: Fault, seed: int) -> Task:
        def note(case: str, says: str) -> None:
            law = case.partition("/")[0]
            self._found[fault.id] = case
            if law != fault.law:
                self._missed.add(fault.id)
                by = f"only {law} found it, in {case}: {says}" if law else "no law found it"
                self._miss(f"MISSED {fault.id} (seed {seed}), aimed at {fault.law}: {by}")
            self._left[fault.id] -= 1
            if not self._left[fault.id] and fault.id not in self._missed:
                self._tell(f"caught {fault.id}: {case}: {says}")

        data = {"kind": "fault", "id": fault.id, "seed": seed, "likely": finders().get(fault.id, "")}
        return Task(data, lambda found: note(found["case"], found["says"]), note, LIMIT, twice=False)

    def share_tasks(self) -> list[Task]:
        """For each fault in ops, in how many of their cells it shows."""
        return [self._share_task(fault) for fault in self._faults.values() if fault.ops]

    def _share_task(self, fault: Fault, deadly: tuple[str, ...] = ()) -> Task:
        """A process that dies of a cell is asked again without it, so that the cells are counted in the end."""

        def note(found: dict[str, Any]) -> None:
            wrong, total = found["wrong"], found["total"]
            self._tell(f"{fault.id}: wrong in {wrong} of {total} cells")
            if not fault.crude and wrong > NARROW * total:
                self._miss(f"BROAD {fault.id}: wrong in {wrong} of {total} cells, and not declared crude")

        def died(case: str, says: str) -> None:
            if case:
                self.waiting.append(self._share_task(fault, (*deadly, case)))
            else:
                self._miss(f"LOST {fault.id}: {says}")

        return Task({"kind": "share", "id": fault.id, "deadly": deadly}, note, died, SLOW)

    # ---- mutants -------------------------------------------------------------------------------------------

    def mutant_tasks(self, deep: bool) -> list[Task]:
        """All mutants, on the cases that found them before; then, where needed, on those that found their like.

        A mutant that is listed as changing nothing is tried on all that is known to find others of its function, and
        with `deep` on every case.
        """
        known, listed = finders(), mutants.equivalents()
        likely: dict[str, list[str]] = {}
        for mutant in mutants.mutants().values():
            likely.setdefault(mutant.place, []).extend([known[mutant.id]] if mutant.id in known else [])
        tasks = []
        for mutant in mutants.mutants().values():
            first = [known[mutant.id]] if mutant.id in known else []
            cases = list(dict.fromkeys([*first, *likely[mutant.place]]))
            tasks.append(self._mutant_task(mutant.id, {"kind": "mutant", "seed": 0, "cases": cases}))
        tasks.sort(
            key=lambda task: str(task.data["cases"][:1])
        )  # those on one op together: they share oracles
        return tasks + [self._mutant_task(name, {"kind": "hunt"}) for name in listed if deep]

    def _mutant_task(self, name: str, data: dict[str, Any]) -> Task:
        reason = mutants.equivalents().get(name, "")

        def note(case: str, says: str = "") -> None:
            if data["kind"] == "mutant":
                self._counts["mutants"] += 1
                self._counts["killed"] += bool(case)
                self._counts["equivalent"] += bool(reason)
            if case and reason:
                self._miss(f"FOUND mutant {name} by {case}, though it is listed as equivalent: {reason}")
            if not case and not reason:
                self._miss(f"MISSED mutant {name} {says}".rstrip())

        return Task({**data, "id": name}, lambda found: note(found["case"]), note, SLOW)

    # ---- right backends ------------------------------------------------------------------------------------

    def right_tasks(self, portion: float) -> list[Task]:
        """Each law on each right backend with each seed."""
        return [
            self._right_task(name, law.id, seed, portion)
            for seed in range(self._seeds)
            for name in RIGHT
            for law in LAWS.values()
            if not law.symbolic and law.group not in WITHOUT_VERDICT
        ]

    def _right_task(self, name: str, law: str, seed: int, portion: float) -> Task:
        def note(count: int, alarms: list[str]) -> None:
            self._counts["examined"] += count
            self._counts["alarms"] += len(alarms)
            for alarm in alarms:
                self._miss(f"FALSE ALARM on {name} (seed {seed}): {alarm}")

        data = {"kind": "right", "name": name, "law": law, "seed": seed, "portion": portion}
        return Task(
            data,
            lambda found: note(found["count"], found["alarms"]),
            lambda case, says: note(1, [f"{case}: {says}"]),
            PATIENCE,
        )

    # ---- in all --------------------------------------------------------------------------------------------

    def result(self, seconds: float) -> Selftest:
        """What was found."""
        counts = self._counts
        return Selftest(
            seeds=self._seeds,
            faults=len(self._faults),
            caught=len(self._faults) - len(self._missed),
            mutants=counts["mutants"],
            killed=counts["killed"],
            equivalent=counts["equivalent"],
            examined=counts["examined"],
            alarms=counts["alarms"],
            misses=tuple(self._misses),
            found=self._found,
            seconds=seconds,
        )
