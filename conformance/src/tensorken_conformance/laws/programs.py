"""programs.meaning, programs.compiled and programs.stateful: whole programs, drawn at random, mean what they should."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.programs.compiling import judge_compiled
from tensorken_conformance.programs.judging import Tally, Values, Wrong, judge
from tensorken_conformance.programs.program import Program
from tensorken_conformance.programs.reducing import reduced
from tensorken_conformance.programs.stateful import run_lifetimes
from tensorken_conformance.programs.writing import write
from tensorken_conformance.subject import Depth, Subject

PROVEN = 0.5
"""Which part of what programs give must lie in intervals that tell something: a case that proves less is no proof."""

Counts = dict[Depth, tuple[int, int]]
"""Cases, and how many programs or lives each has."""

DRAWN: Counts = {"smoke": (1, 3), "default": (20, 10), "deep": (100, 40)}
PINNED: Counts = {"smoke": (0, 0), "default": (5, 12), "deep": (25, 14)}
"""Programs that are the same for all seeds."""
COMPILED: Counts = {"smoke": (1, 3), "default": (12, 25), "deep": (60, 30)}
LIVES: Counts = {"smoke": (1, 4), "default": (6, 20), "deep": (40, 50)}

Judge = Callable[[Subject, Program, Tally, Values], None]


def _cases(law: str, kinds: dict[str, Counts], subject: Subject) -> Iterator[Case]:
    for kind, counts in kinds.items() if subject.dtypes() else ():
        for number in range(counts[subject.depth][0]):
            yield Case(law, kind, detail=str(number))


def _judged(subject: Subject, case: Case, seed: str, counts: Counts, judge: Judge) -> Tally:
    """Write the programs of a case and judge them.

    Raises:
        Failure: of a program that is wrong, made as small as it gets.
    """
    tally, count = Tally(), counts[subject.depth][1]
    for number in range(count):
        rng = random.Random(f"{seed} {int(case.detail) * count + number}")
        program = write(rng.randrange, subject.capabilities)
        try:
            judge(subject, program, tally, [])
        except Wrong as wrong:
            raise _failure(subject, program, wrong, judge) from None
    return tally


def _failure(subject: Subject, program: Program, wrong: Wrong, judge: Judge) -> Failure:
    def fails(candidate: Program) -> tuple[int, str, Values] | None:
        values: Values = []
        try:
            judge(subject, candidate, Tally(), values)
        except Wrong as again:
            return again.node, again.says, values
        return None

    small, node, says = reduced(program, wrong.node, wrong.says, fails)
    return Failure(says, script=small.script(subject.name, node, says.partition(": ")[2] or says))


MEANINGS = {"pinned": PINNED, "drawn": DRAWN}


@law("programs.meaning", partial(_cases, "programs.meaning", MEANINGS), level=4, stage=3)
def meaning(subject: Subject, case: Case) -> Measured:
    """Every step of a program gives what it may give after all that went before, errors having grown as they may.

    Programs are drawn from all ops, from views, broadcasts, indexing and several dtypes.  An interval for each element
    follows from the declared errors of all ops before (enclosure/); where it tells nearly nothing, the step is run
    again from the values that came, and where that tells nothing either, the reference is asked (programs/judging.py).
    """
    seed = case.op if case.op == "pinned" else f"{subject.seed} {case.op}"
    tally = _judged(subject, case, seed, MEANINGS[case.op], judge)
    if tally.elements and tally.unproven > (1 - PROVEN) * tally.elements:
        raise Failure(f"expected programs that prove something, got {tally}")
    return Measured(worst=str(tally))


@law("programs.compiled", partial(_cases, "programs.compiled", {"drawn": COMPILED}), level=4, stage=3)
def compiled(subject: Subject, case: Case) -> Measured:
    """A program under jit gives what its steps may give, the same when called again, and results that stay.

    Whatever the passes and the backend's compiler make of it: what no other step uses is compared with the same
    intervals as in programs.meaning.
    """
    tally = _judged(subject, case, f"{subject.seed} compiled", COMPILED, judge_compiled)
    return Measured(worst=f"{tally.elements} elements of results")


def stateful_cases(subject: Subject) -> Iterator[Case]:
    """Lives of tensors."""
    if any(dtype.kind != "bool" for dtype in subject.dtypes()):
        yield from _cases("programs.stateful", {"lives": LIVES}, subject)


@law("programs.stateful", stateful_cases, level=4, stage=3)
def stateful(subject: Subject, case: Case) -> None:
    """A tensor keeps its value while others are made, viewed, computed with, dropped and collected."""
    run_lifetimes(subject, f"{subject.seed} {case.id}", LIVES[subject.depth][1])
