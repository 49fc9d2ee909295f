"""programs.meaning and programs.stateful: whole programs, drawn by hypothesis, mean what the language says."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws import read_back
from tensorken_conformance.programs.drawing import Found, search
from tensorken_conformance.programs.judging import Tally, Wrong, judge
from tensorken_conformance.programs.program import Array, Program
from tensorken_conformance.programs.reducing import reduced
from tensorken_conformance.programs.stateful import run_lifetimes
from tensorken_conformance.programs.writing import write
from tensorken_conformance.subject import Depth, Subject

PROVEN = 0.5
"""Which part of what programs give must lie in intervals that tell something: a case that proves less is no proof."""

DRAWN: dict[Depth, tuple[int, int]] = {"smoke": (1, 3), "default": (20, 10), "deep": (100, 40)}
"""Cases, and how many programs each draws."""

PINNED: dict[Depth, tuple[int, int]] = {"smoke": (0, 0), "default": (5, 12), "deep": (25, 14)}
"""Cases, and how many programs each has that are the same for all seeds."""

LIVES: dict[Depth, tuple[int, int]] = {"smoke": (1, 4), "default": (6, 20), "deep": (40, 50)}
"""Cases, and how many lives of tensors each draws."""


def _float_or_any(subject: Subject) -> str:
    names = [dtype.name for dtype in subject.dtypes()]
    return "float32" if "float32" in names else names[0] if names else ""


def _needs(case: Case) -> tuple[str, ...]:
    return (read_back.need("float32"),)


def meaning_cases(subject: Subject) -> Iterator[Case]:
    """Programs of fixed seeds, and programs of the seed at hand."""
    if not subject.dtypes():
        return
    for kind, table in (("pinned", PINNED), ("drawn", DRAWN)):
        for number in range(table[subject.depth][0]):
            yield Case("programs.meaning", kind, detail=str(number))


@law("programs.meaning", meaning_cases, level=4, needs=_needs, stage=3)
def meaning(subject: Subject, case: Case) -> Measured:
    """Every step of a program gives what it may give after all that went before, errors having grown as they may.

    Programs are drawn from all ops, from views, broadcasts, indexing and several dtypes.  An interval for each element
    follows from the declared errors of all ops before (enclosure/); where it tells nearly nothing, the step is run
    again from the values that came, and where that tells nothing either, the reference is asked (programs/judging.py).
    """
    tally = Tally()

    def check(program: Program) -> None:
        try:
            judge(subject, program, tally)
        except Wrong as wrong:
            raise Found((program, wrong)) from None

    if case.op == "pinned":
        count = PINNED[subject.depth][1]
        found = None
        for number in range(count):
            rng = random.Random(f"pinned {int(case.detail) * count + number}")
            try:
                check(write(rng.randrange, subject.capabilities))
            except Found as end:
                found = end.what
                break
    else:
        examples = DRAWN[subject.depth][1]
        found = search(
            f"{subject.seed} {case.id}", examples, lambda draw: check(write(draw, subject.capabilities))
        )
    if found is not None:
        raise failure(subject, *found)
    if tally.elements and tally.unproven > (1 - PROVEN) * tally.elements:
        raise Failure(f"expected programs that prove something, got {tally}")
    return Measured(worst=str(tally))


def failure(subject: Subject, program: Program, wrong: Wrong) -> Failure:
    """The failure of a program, made as small as it gets."""

    def fails(candidate: Program) -> tuple[int, str, list[Array | None]] | None:
        values: list[Array | None] = []
        try:
            judge(subject, candidate, values=values)
        except Wrong as again:
            return again.node, again.says, values
        return None

    small, node, says = reduced(program, wrong.node, wrong.says, fails)
    return Failure(says, script=small.script(subject.name, node, says.partition(": ")[2] or says))


def stateful_cases(subject: Subject) -> Iterator[Case]:
    """Lives of tensors."""
    dtypes = [dtype.name for dtype in subject.dtypes() if dtype.kind != "bool"]
    for number in range(LIVES[subject.depth][0] if dtypes else 0):
        yield Case("programs.stateful", "lives", detail=str(number))


@law("programs.stateful", stateful_cases, level=4, needs=_needs, stage=3)
def stateful(subject: Subject, case: Case) -> None:
    """A tensor keeps its value while others are made, viewed, computed with, dropped and collected."""
    run_lifetimes(subject, f"{subject.seed} {case.id}", LIVES[subject.depth][1])
