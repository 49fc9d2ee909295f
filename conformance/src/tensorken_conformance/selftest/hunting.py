"""Hunting: the cases that may find a mutant, the likely ones first."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tensorken_conformance.backends.correct import CORRECT
from tensorken_conformance.case import Case
from tensorken_conformance.law import LAWS
from tensorken_conformance.running.examine import examine, laws_for
from tensorken_conformance.selftest import mutants
from tensorken_conformance.subject import Subject

LARGE = tuple("255 256 63 64 65 1025 65-flip 65-crop 257-flip 257-crop wide tall-crop".split())
"""Shapes whose cases find no mutants that other cases do not find."""

ELEMENTWISE = ("scalar", "empty", "small", "257", "pool")
"""Enough shapes for laws on single elements; 257 elements take all numbers of a class."""

EXACT = ("values.cast", "values.sums", "values.contractions", "values.elementwise")
"""The laws that compare the reference backend to the last bit."""

SLOW = ("values.workgroups", "values.tiles", "values.factorizations")
"""Laws with slow cases, which find no mutants that other laws do not find."""

AT_MOST = 15_000
"""The number of cases after which a mutant counts as not found."""

Kind = tuple[str, str | None]
"""Law and op of a case."""


def subject_and_cases() -> tuple[Subject, list[Case]]:
    """The reference backend, and the cases of the quick laws on values, in random order."""
    subject = Subject(CORRECT["reference"](), "reference")
    found = []
    for law in laws_for(subject, ["values"]):
        for case in law.cases(subject) if law.id not in SLOW else ():
            single = law.id in ("values.elementwise", "values.cast")
            if case.shape in ELEMENTWISE if single else case.shape not in LARGE:
                found.append(case)
    random.Random(0).shuffle(found)
    return subject, found


_CASES: list[Case] = []
_REACHED: dict[str, set[Kind]] = {}


def watch(start: Callable[[str], None]) -> None:
    """Find the laws and ops that call each function of the reference backend, or use a value of its modules.

    This runs one case of each law, op and dtype; it takes some seconds, once.
    """
    subject, cases = subject_and_cases()
    names = {code: f"{module}.{name}" for module in mutants.MODULES for name, code in _functions(module)}
    for case in {(case.law, case.op, case.dtype): case for case in reversed(cases)}.values():
        start(case.id)
        seen: set[CodeType] = set()
        with _profiled(seen.add):
            examine(subject, LAWS[case.law], case)
        for code in seen & set(names):
            module = names[code].partition(".")[0]
            for place in (names[code], *[f"{module}.{word}" for word in code.co_names]):
                _REACHED.setdefault(place, set()).add((case.law, case.op))
    _CASES.extend(cases)


def candidates(id: str, start: Callable[[str], None]) -> list[str]:
    """The cases that may find a mutant: first those of laws and ops that use its function, then all others.

    They take turns by law, op, dtype and class of values.
    """
    if not _CASES:
        watch(start)
    reached = _REACHED.get(mutants.mutants()[id].place, set())
    turns: dict[Any, int] = defaultdict(int)
    found: list[tuple[bool, int, str]] = []
    for case in _CASES:
        likely = (case.law, case.op) in reached
        if likely or case.law in EXACT:
            group = case.law, case.op, case.dtype, case.values
            turns[group] += 1
            found.append((not likely, turns[group], case.id))
    return [case for _, _, case in sorted(found, key=lambda row: row[:2])][:AT_MOST]


def _functions(module: str) -> Iterator[tuple[str, CodeType]]:
    """The code of all functions of a module, also of inner ones, with the name of the outermost function."""
    for name in dict.fromkeys(m.function for m in mutants.mutants().values() if m.module == module):
        code = mutants.code_of(module, name)
        waiting = [code] if code else []
        while waiting:
            code = waiting.pop()
            yield name, code
            waiting += [part for part in code.co_consts if isinstance(part, CodeType)]


@contextmanager
def _profiled(tell: Callable[[CodeType], None]) -> Iterator[None]:
    """Report the code of every function that the block calls."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            tell(frame.f_code)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
