"""Recording: which case finds which mutant, searched once; a selftest tries that case first, and need not search.

Run as a program, this module writes `finders.json` and `detection.json` beside itself: after the reference backend, the
laws, the faults or the mutants have changed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tensorken_conformance.case import Case
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.running.pool import Task, do_all
from tensorken_conformance.selftest import mutants, proof
from tensorken_conformance.selftest.right import RIGHT
from tensorken_conformance.subject import Subject

LARGE = (
    "255",
    "256",
    "63",
    "64",
    "65",
    "1025",
    "65-flip",
    "65-crop",
    "257-flip",
    "257-crop",
    "wide",
    "tall-crop",
)
"""The shapes of cases that find nothing which others do not."""

ELEMENTWISE = ("scalar", "empty", "small", "257", "pool")
"""The shapes that are enough for laws on single elements; 257 elements take all numbers of a class."""

EACH = 10
"""So many cases of each op, dtype and class of values are watched."""

EXACT = ("values.cast", "values.sums", "values.contractions", "values.elementwise")
"""The laws that hold the reference backend to the last bit."""

LIMIT = 60.0
"""Seconds that a worker may be silent."""

AT_MOST = 15_000
"""On how many cases a mutant is tried before it counts as not found."""


def subject_and_cases() -> tuple[Subject, list[Case]]:
    """The reference backend, and the cases of the laws on values but those that take long."""
    subject = Subject(RIGHT["reference"](), "reference")
    found = []
    for law in laws_for(subject, ["values"]):
        for case in law.cases(subject) if law.id != "values.workgroups" else ():
            single = law.id in ("values.elementwise", "values.cast")
            if case.shape in ELEMENTWISE if single else case.shape not in LARGE:
                found.append(case)
    return subject, found


def sample(cases: list[Case]) -> list[Case]:
    """Some cases of each law, op, dtype and class of values."""
    groups: dict[Any, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.law, case.op, case.dtype, case.values].append(case)
    rng = random.Random(0)
    return [case for group in groups.values() for case in rng.sample(group, min(len(group), EACH))]


_REACHED: dict[str, list[str]] = {}


def reached(start: Callable[[str], None]) -> dict[str, list[str]]:
    """For each function of the reference backend, and each value of its modules, the cases that come by it.

    Quick ones of different ops, dtypes and values come first.  `start` is told each case; this takes minutes, once.
    """
    if _REACHED:
        return _REACHED
    subject, cases = subject_and_cases()
    names = {code: (module, name) for module in mutants.MODULES for name, code in _functions(module)}
    found: dict[str, list[tuple[float, Case]]] = defaultdict(list)
    for case in sample(cases):
        start(case.id)
        examine(subject, LAWS[case.law], case)  # the oracles remember what they know
        seen: set[CodeType] = set()
        begun = time.perf_counter()
        with _profiled(seen.add):
            examine(subject, LAWS[case.law], case)
        seconds = time.perf_counter() - begun
        keys = {f"{names[code][0]}.{names[code][1]}" for code in seen if code in names}
        words = {f"{names[code][0]}.{word}" for code in seen if code in names for word in code.co_names}
        for key in keys | words:
            found[key].append((seconds, case))
    _REACHED.update({key: _varied(rows) for key, rows in found.items()})
    return _REACHED


def _varied(rows: list[tuple[float, Case]]) -> list[str]:
    """The quickest of each op, dtype and class of values; then the next of each, and so on."""
    groups: dict[Any, list[Case]] = defaultdict(list)
    for _, case in sorted(rows, key=lambda row: row[0]):
        groups[case.law, case.op, case.dtype, case.values].append(case)
    turns: list[tuple[int, float, Case]] = []
    rng = random.Random(0)
    for group in groups.values():
        turns += [(turn, rng.random(), case) for turn, case in enumerate(group)]
    return [case.id for _, _, case in sorted(turns, key=lambda turn: turn[:2])]


def _functions(module: str) -> Iterator[tuple[str, CodeType]]:
    """The code of all functions of a module, also of those within others, by the names of the outermost."""
    for name in dict.fromkeys(m.function for m in mutants.mutants().values() if m.module == module):
        code = mutants.code_of(module, name)
        waiting = [code] if code else []
        while waiting:
            code = waiting.pop()
            yield name, code
            waiting += [part for part in code.co_consts if isinstance(part, CodeType)]


class _profiled:
    """Tells the code of every function that is called in the block."""

    def __init__(self, tell: Callable[[CodeType], None]) -> None:
        self._tell = tell

    def __enter__(self) -> None:
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._tell(frame.f_code)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def candidates(id: str, start: Callable[[str], None]) -> list[str]:
    """The cases on which a mutant may be found: those that come by it, the likely ones first, then any."""
    likely = reached(start).get(id.partition(":")[0], [])
    others = [case.id for case in subject_and_cases()[1] if case.law in EXACT]
    random.Random(0).shuffle(others)
    return [*likely, *others][:AT_MOST]


def main() -> None:
    """Search, run a selftest, and write down what came of both."""
    known = proof.finders()
    found: dict[str, str] = {}

    def note(id: str, case: str) -> None:
        found[id] = case
        print(f"{len(found)} of {len(wanted)}: {id}: {case or 'not found'}", flush=True)

    def task(id: str) -> Task:
        data = {"kind": "hunt", "id": id}
        return Task(data, lambda result: note(id, result["case"]), lambda case, _: note(id, case), LIMIT)

    known_or_listed = {**known, **mutants.equivalents()}
    wanted = [id for id in mutants.mutants() if "--all" in sys.argv or id not in known_or_listed]
    do_all(map(task, wanted), "selftest.trials", 2)
    kept = {id: found.get(id) or known.get(id, "") for id in mutants.mutants()}
    _write("finders.json", {**{id: known[id] for id in FAULTS if id in known}, **kept})
    for id, case in kept.items():
        if not case and id not in mutants.equivalents():
            print(f"not found: {id} (line {mutants.mutants()[id].line})")
    if "--mutants" not in sys.argv:
        outcome = proof.run(tell=print)
        _write("finders.json", {**outcome.found, **kept})
        _write("detection.json", outcome.as_data())


def _write(name: str, data: dict[str, Any]) -> None:
    text = json.dumps({key: value for key, value in data.items() if value != ""}, indent=1)
    Path(__file__).with_name(name).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
