"""Trials: the tasks of a selftest, run in worker processes: a fault, a mutant, or cases on a correct backend."""

from __future__ import annotations

import _thread
import contextlib
import functools
import json
import math
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import IO, Any

from tensorken_conformance.backends.correct import CORRECT
from tensorken_conformance.case import Case
from tensorken_conformance.faults.fault import FAULTS, Fault
from tensorken_conformance.law import LAWS, Law
from tensorken_conformance.programs.offers import without_installed
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.selftest import mutants
from tensorken_conformance.subject import Depth, Subject

PATIENCE = 2.0
"""The CPU seconds after which a mutant that has not finished a case counts as found: it hangs."""

ELSEWHERE = 10.0
"""The time limit, in seconds, for other laws to detect a fault that its own law missed."""

Start = Callable[[str], None]
"""Receives each case before it is examined, so that a death of the process can be assigned to a case."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The case that failed, and its message; both empty if none failed."""

    case: str = ""
    says: str = ""

    @property
    def law(self) -> str:
        """The id of the law."""
        return self.case.partition("/")[0]


# ---- faults ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def subject_of(fault: Fault, seed: int, depth: Depth = "default") -> Iterator[Subject]:
    """The faulty backend as a subject of laws; the fault ends with the block."""
    with fault.place() as name:
        yield Subject(fault.make(), name or fault.id, seed, depth)


def cases_about(law: Law, subject: Subject, ops: tuple[str, ...]) -> list[Case]:
    """The cases of a law on these ops, the only ones that a fault in these ops can change.

    All cases, if the law is not about single ops or no ops are given.
    """
    named = law.group == "host" or subject.is_selectable  # then some cases load it in other processes
    found = _about(law.id, repr((subject.capabilities, subject.seed, named and subject.name)))
    if not found:
        for case in law.cases(subject):
            found.setdefault(case.op, []).append(case)
    some = [case for op in ops for case in found.get(op, ())]
    return some or [case for cases in found.values() for case in cases]


@functools.lru_cache(maxsize=256)
def _about(law: str, subject: str) -> dict[str, list[Case]]:
    """The cases of a law by op, for all subjects with the same declarations; empty before they are enumerated."""
    return {}


def try_fault(fault: Fault, seed: int, start: Start, likely: str = "") -> Finding:
    """The case with which the fault's law detects it, or else another law; `likely` is tried first."""
    with subject_of(fault, seed) as subject:
        aimed = LAWS[fault.law]
        end = math.inf
        others = [law for law in LAWS.values() if law is not aimed and law.symbolic == aimed.symbolic]
        for law in (aimed, *others):
            cases = cases_about(law, subject, fault.ops)
            for case in sorted(cases, key=lambda case: case.id != likely):
                if time.perf_counter() > end:
                    return Finding()
                start(case.id)
                result = examine(subject, law, case)
                if result.status == "failed":
                    return Finding(case.id, result.says)
            end = min(end, time.perf_counter() + ELSEWHERE)
    return Finding()


def share_of_wrong_cells(
    fault: Fault, seed: int = 0, start: Start = lambda case: None, deadly: Collection[str] = ()
) -> tuple[int, int]:
    """The number of cells of its ops in which a fault is found, and the number of all their cells.

    A cell is a deep case of a law on values.  The `deadly` cases end the process, so they count and are not run.
    """
    with subject_of(fault, seed, "deep") as subject:
        wrong = total = 0
        for law in laws_for(subject, ["values"]):
            for case in law.cases(subject):
                if case.op in fault.ops:
                    total += 1
                    if case.id not in deadly:
                        start(case.id)
                    wrong += case.id in deadly or examine(subject, law, case).status == "failed"
    return wrong, total


# ---- mutants -----------------------------------------------------------------------------------------------


def try_mutant(mutant: mutants.Mutant, subject: Subject, cases: list[Case], start: Start) -> Finding:
    """The first of these cases that finds a mutant of the reference backend."""
    with mutants.mutated(mutant):
        for case in cases:
            start(case.id)
            try:
                with _no_longer_than(PATIENCE):
                    result = examine(subject, LAWS[case.law], case)
            except KeyboardInterrupt:
                return Finding(case.id, f"no result within {PATIENCE:g} s")
            if result.status == "failed":
                return Finding(case.id, result.says)
    return Finding()


@contextlib.contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    """Interrupt the block after these CPU seconds of this process."""
    end, over = time.process_time() + seconds, threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            if time.process_time() > end:
                _thread.interrupt_main()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


# ---- correct backends --------------------------------------------------------------------------------------


def try_correct(name: str, law: Law, seed: int, portion: float, start: Start) -> tuple[int, list[Finding]]:
    """The number of cases of a law that were examined on a correct backend, and the false alarms.

    A portion from 0 to 1 of the cases is examined; the seed picks them.
    """
    subject = Subject(CORRECT[name](), name, seed)
    alarms = []
    count = 0
    for case in law.cases(subject):
        if zlib.crc32(f"{seed} {case.id}".encode()) < portion * 2**32:
            start(case.id)
            result = examine(subject, law, case)
            count += 1
            if result.status == "failed":
                alarms.append(Finding(case.id, result.says))
    return count, alarms


# ---- in a worker process -----------------------------------------------------------------------------------


def do(task: dict[str, Any], start: Start) -> dict[str, Any]:
    """Do one task of a selftest; the task and its result are JSON data."""
    kind = task["kind"]
    if kind == "fault":
        finding = try_fault(FAULTS[task["id"]], task["seed"], start, task["likely"])
        return {"case": finding.case, "says": finding.says}
    if kind == "share":
        wrong, total = share_of_wrong_cells(FAULTS[task["id"]], start=start, deadly=task["deadly"])
        return {"wrong": wrong, "total": total}
    if kind == "right":
        count, alarms = try_correct(task["name"], LAWS[task["law"]], task["seed"], task["portion"], start)
        return {"count": count, "alarms": [f"{alarm.case}: {alarm.says}" for alarm in alarms]}
    if kind == "hunt":
        from tensorken_conformance.selftest.hunting import candidates

        task = {**task, "cases": candidates(task["id"], start), "seed": 0}
    subject = Subject(CORRECT["reference"](), "reference", task["seed"])
    cases = [Case.parse(case) for case in task["cases"]]
    return {"case": try_mutant(mutants.mutants()[task["id"]], subject, cases, start).case}


def serve(tasks: IO[str], results: IO[str]) -> None:
    """Do tasks, one a line; write each case that starts, and the result of each task."""
    import tensorken_conformance.faults
    import tensorken_conformance.laws  # noqa: F401, entering them is what it does

    def tell(message: dict[str, Any]) -> None:
        results.write(json.dumps(message) + "\n")
        results.flush()

    for line in tasks:
        tell({"done": do(json.loads(line), lambda case: tell({"start": case}))})


def main() -> None:
    """Serve the process that started this one, without installed compilers; output of backends goes to stderr."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with without_installed():
        serve(sys.stdin, results)


if __name__ == "__main__":
    main()
