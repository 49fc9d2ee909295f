"""programs.compiled: a program that is traced and compiled as a whole means what its steps mean."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.programs import _needs
from tensorken_conformance.programs.compiling import judge_compiled
from tensorken_conformance.programs.judging import Tally, Wrong
from tensorken_conformance.programs.program import Array, Program
from tensorken_conformance.programs.reducing import reduced
from tensorken_conformance.programs.writing import write
from tensorken_conformance.subject import Depth, Subject

WRITTEN: dict[Depth, tuple[int, int]] = {"smoke": (1, 3), "default": (12, 25), "deep": (60, 30)}
"""Cases, and how many programs each has."""


def compiled_cases(subject: Subject) -> Iterator[Case]:
    """Programs of the seed."""
    for number in range(WRITTEN[subject.depth][0] if subject.dtypes() else 0):
        yield Case("programs.compiled", "drawn", detail=str(number))


@law("programs.compiled", compiled_cases, level=4, needs=_needs, stage=3)
def compiled(subject: Subject, case: Case) -> Measured:
    """A program under jit gives what its steps may give, the same when called again, and results that stay.

    Whatever the passes and the backend's compiler make of it: what no other step uses is compared with the same
    intervals as in programs.meaning.
    """
    tally = Tally()
    count = WRITTEN[subject.depth][1]
    for number in range(count):
        rng = random.Random(f"{subject.seed} compiled {int(case.detail) * count + number}")
        program = write(rng.randrange, subject.capabilities)
        try:
            judge_compiled(subject, program, tally)
        except Wrong as wrong:
            raise _failure(subject, program, wrong) from None
    return Measured(worst=f"{tally.elements} elements of results")


def _failure(subject: Subject, program: Program, wrong: Wrong) -> Failure:
    """The failure of a program, made as small as it gets."""

    def fails(candidate: Program) -> tuple[int, str, list[Array | None]] | None:
        try:
            judge_compiled(subject, candidate, Tally())
        except Wrong as again:
            return again.node, again.says, [None] * len(candidate.nodes)
        return None

    small, node, says = reduced(program, wrong.node, wrong.says, fails)
    return Failure(says, script=small.script(subject.name, node, says.partition(": ")[2] or says))
