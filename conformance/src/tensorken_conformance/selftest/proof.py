"""Selftest: check that the kit detects every seeded fault and every mutant, and that correct backends pass."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorken_conformance.faults
import tensorken_conformance.laws  # noqa: F401, entering faults and laws is what it does
from tensorken_conformance.backends.correct import CORRECT
from tensorken_conformance.detection.counts import fingerprint
from tensorken_conformance.detection.finders import finders
from tensorken_conformance.faults.fault import FAULTS, Fault
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.plan import PlanError
from tensorken_conformance.running.pool import Task, do_all
from tensorken_conformance.selftest import mutants
from tensorken_core.host.discovery import did_you_mean

PORTION = 0.05
"""The share of the cases of correct backends that an ordinary selftest examines; each seed selects others."""

NARROW = 0.01
"""The largest share of the cells of its ops in which a fault may fail, unless it is declared crude."""

LIMIT = 10.0
"""The seconds that a case may compute on a faulty backend before it counts as hanging."""

SLOW = 30.0
"""The same for the deepest cases, and for mutants, which have a shorter limit of their own."""

PATIENCE = 120.0
"""The same for correct backends."""

WITHOUT_VERDICT = ("performance",)
"""The groups of laws that measure and never fail."""


@dataclass(slots=True)
class Selftest:
    """The results of a selftest.

    Attributes:
        seeds: the number of seeds.
        faults: the number of faulty backends.
        caught: the number of faulty backends that the law aimed at caught with every seed.
        mutants: the number of changes of the reference backend.
        killed: the number of mutants that a law found.
        equivalent: the number of mutants that are listed as changing nothing.
        examined: the number of cases that were examined on correct backends.
        alarms: the number of these cases that failed.
        misses: a line for each error.
        found: for each fault the case that found it last.
        seconds: the time of the selftest.
    """

    seeds: int
    faults: int
    caught: int
    mutants: int = 0
    killed: int = 0
    equivalent: int = 0
    examined: int = 0
    alarms: int = 0
    misses: tuple[str, ...] = ()
    found: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

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
            f"{self.alarms} false alarms in {self.examined} cases on {len(CORRECT)} correct backends; "
            f"{self.seconds:.1f} s"
        )

    def as_data(self) -> dict[str, Any]:
        """The content of `detection.json`: the counts, and the fingerprint that they hold for."""
        names = ("faults", "caught", "mutants", "killed", "equivalent", "alarms", "seeds")
        return {"fingerprint": fingerprint(), **{name: getattr(self, name) for name in names}}

    @property
    def status(self) -> int:
        """The exit status: 0 if there was no error, else 1."""
        return 1 if self.misses else 0


def run(
    seeds: int = 1, deep: bool = False, select: Collection[str] = (), tell: Callable[[str], None] = print
) -> Selftest:
    """Run the kit on faulty backends, on mutants of a correct one, and on correct backends.

    Args:
        seeds: the number of seeds, from 0 on.
        deep: whether to examine the correct backends in full, to try each mutant that is listed as changing nothing on
            every case, and to measure how narrow the faults are.
        select: families or ids of faults, ids of laws, `mutants` or `right`; none: all.
        tell: receives each line of the report at once.

    Raises:
        PlanError: if `select` names something unknown.
    """
    start = time.perf_counter()
    faults, with_mutants, with_correct = _selected(select)
    plan = _Plan(seeds, faults, tell)
    tasks = plan.fault_tasks()
    if with_mutants:
        tasks += plan.mutant_tasks(deep)
    if with_correct:
        tasks += plan.correct_tasks(1.0 if deep else PORTION)
    if deep:
        tasks += plan.share_tasks()
    while tasks:
        do_all(tasks, "selftest.trials", min(8, os.cpu_count() or 1))
        tasks, plan.waiting = plan.waiting, []
    plan.found.seconds = time.perf_counter() - start
    tell(plan.found.summary)
    return plan.found


def _selected(select: Collection[str]) -> tuple[list[Fault], bool, bool]:
    """The selected faults, and whether mutants and correct backends are selected."""
    rest = set(select) - {"mutants", "right"}
    known = {name for fault in FAULTS.values() for name in (fault.family, fault.id, fault.law)}
    for name in sorted(rest - known):
        raise PlanError(f"there is no family, fault or law {name!r}{did_you_mean(name, sorted(known))}")
    faults = [f for f in FAULTS.values() if not select or rest & {f.family, f.id, f.law}]
    return faults, not select or "mutants" in select, not select or "right" in select


class _Plan:
    """The tasks of a selftest, and their findings so far."""

    def __init__(self, seeds: int, faults: Sequence[Fault], tell: Callable[[str], None]) -> None:
        self._faults, self._tell = faults, tell
        self._missed: set[str] = set()
        self._left = Counter(dict.fromkeys([fault.id for fault in faults], seeds))
        self.found = Selftest(seeds, len(faults), len(faults))
        self.waiting: list[Task] = []

    def _miss(self, says: str) -> None:
        self.found.misses += (says,)
        self._tell(says)

    # ---- faults --------------------------------------------------------------------------------------------

    def fault_tasks(self) -> list[Task]:
        """Each fault with each seed; faults aimed at one law follow each other, since they share oracles."""
        order = sorted(self._faults, key=lambda fault: fault.law)
        return [self._fault_task(fault, seed) for seed in range(self.found.seeds) for fault in order]

    def _fault_task(self, fault: Fault, seed: int) -> Task:
        def note(case: str, says: str) -> None:
            law = case.partition("/")[0]
            self.found.found[fault.id] = case
            if law != fault.law:
                self._missed.add(fault.id)
                self.found.caught = self.found.faults - len(self._missed)
                by = f"only {law} found it, in {case}: {says}" if law else "no law found it"
                self._miss(f"MISSED {fault.id} (seed {seed}), aimed at {fault.law}: {by}")
            self._left[fault.id] -= 1
            if not self._left[fault.id] and fault.id not in self._missed:
                self._tell(f"caught {fault.id}: {case}: {says}")

        data = {"kind": "fault", "id": fault.id, "seed": seed, "likely": finders().get(fault.id, "")}
        return Task(data, lambda found: note(found["case"], found["says"]), note, LIMIT, twice=False)

    def share_tasks(self) -> list[Task]:
        """Count the cells in which each fault in ops fails."""
        return [self._share_task(fault) for fault in self._faults if fault.ops]

    def _share_task(self, fault: Fault, deadly: tuple[str, ...] = ()) -> Task:
        """Count the failing cells of a fault; if the process dies in a cell, a new task counts the others."""

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
        """All mutants, on the cases that found them before, then on those that found other mutants of the function.

        With `deep`, each mutant that is listed as changing nothing is tried on every case.
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
        tasks.sort(key=lambda task: str(task.data["cases"][:1]))  # cases on one op share oracles
        return tasks + [self._mutant_task(name, {"kind": "hunt"}) for name in listed if deep]

    def _mutant_task(self, name: str, data: dict[str, Any]) -> Task:
        reason = mutants.equivalents().get(name, "")

        def note(case: str, says: str = "") -> None:
            if data["kind"] == "mutant":
                self.found.mutants += 1
                self.found.killed += bool(case)
                self.found.equivalent += bool(reason)
            if case and reason:
                self._miss(f"FOUND mutant {name} by {case}, though it is listed as equivalent: {reason}")
            if not case and not reason:
                self._miss(f"MISSED mutant {name} {says}".rstrip())

        return Task({**data, "id": name}, lambda found: note(found["case"]), note, SLOW)

    # ---- correct backends ----------------------------------------------------------------------------------

    def correct_tasks(self, portion: float) -> list[Task]:
        """Each law on each correct backend with each seed."""
        return [
            self._correct_task(name, law.id, seed, portion)
            for seed in range(self.found.seeds)
            for name in CORRECT
            for law in LAWS.values()
            if not law.symbolic and law.group not in WITHOUT_VERDICT
        ]

    def _correct_task(self, name: str, law: str, seed: int, portion: float) -> Task:
        def note(count: int, alarms: list[str]) -> None:
            self.found.examined += count
            self.found.alarms += len(alarms)
            for alarm in alarms:
                self._miss(f"FALSE ALARM on {name} (seed {seed}): {alarm}")

        data = {"kind": "right", "name": name, "law": law, "seed": seed, "portion": portion}
        return Task(
            data,
            lambda found: note(found["count"], found["alarms"]),
            lambda case, says: note(1, [f"{case}: {says}"]),
            PATIENCE,
        )
