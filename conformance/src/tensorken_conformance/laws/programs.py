"""programs.meaning, .compiled, .lowered and .stateful: random programs of many ops have correct results."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from tensorken_conformance.case import Case, Failure, Measured, script_of
from tensorken_conformance.compilers import Programs, figures
from tensorken_conformance.law import law
from tensorken_conformance.programs.compiling import judge_compiled, prepare
from tensorken_conformance.programs.judging import Tally, Values, Wrong, judge
from tensorken_conformance.programs.kernels import judge_kernels, limits
from tensorken_conformance.programs.offers import counted, required
from tensorken_conformance.programs.program import Program
from tensorken_conformance.programs.reducing import reduced
from tensorken_conformance.programs.stateful import run_lifetimes
from tensorken_conformance.programs.writing import (
    Write,
    write,
    write_each,
    write_moved,
    write_short,
    write_special,
)
from tensorken_conformance.subject import Depth, Subject

PROVEN = 0.5
"""The fraction of elements of results that must have narrow intervals; a case with fewer fails."""

Counts = dict[Depth, tuple[int, int]]
"""The number of cases, and of programs in each."""

DRAWN: Counts = {"smoke": (1, 3), "default": (20, 10), "deep": (100, 40)}
PINNED: Counts = {"smoke": (0, 0), "default": (5, 12), "deep": (25, 14)}
"""Programs that are the same for all seeds."""
COMPILED: Counts = {"smoke": (1, 3), "default": (12, 25), "deep": (60, 30)}
SHORT: Counts = {"smoke": (1, 6), "default": (4, 40), "deep": (30, 60)}
"""Programs of one to four steps, which compilers of few ops support."""
EACH: Counts = {"smoke": (5, 25), "default": (12, 60), "deep": (60, 60)}
"""Each op of the table in turn, alone in its program."""
SPECIAL: Counts = {"smoke": (1, 6), "default": (4, 60), "deep": (30, 60)}
"""Elementwise ops of infinities, NaN and the largest numbers."""
LOWERED: Counts = {"smoke": (1, 3), "default": (8, 20), "deep": (60, 25)}
MOVED: Counts = {"smoke": (1, 15), "default": (25, 20), "deep": (150, 25)}
"""Programs that mostly move and reduce elements."""
LIVES: Counts = {"smoke": (1, 2), "default": (6, 20), "deep": (40, 50)}

Judge = Callable[[Subject, Program, Tally, Values], None]

KINDS: dict[str, dict[str, tuple[Counts, Write]]] = {
    "programs.meaning": {"pinned": (PINNED, write), "drawn": (DRAWN, write)},
    "programs.compiled": {
        "drawn": (COMPILED, write),
        "short": (SHORT, write_short),
        "each": (EACH, write_each),
        "special": (SPECIAL, write_special),
    },
    "programs.lowered": {"drawn": (LOWERED, write), "moved": (MOVED, write_moved)},
}
"""The kinds of programs of each law."""


def _numbered(law: str, kind: str, counts: Counts, subject: Subject) -> Iterator[Case]:
    for number in range(counts[subject.depth][0] if subject.dtypes() else 0):
        yield Case(law, kind, detail=str(number))


def _cases(law: str, subject: Subject) -> Iterator[Case]:
    for kind, (counts, _) in KINDS[law].items():
        yield from _numbered(law, kind, counts, subject)


def _programs(subject: Subject, case: Case, seed: str) -> Iterator[Program]:
    """The programs of a case."""
    counts, written = KINDS[case.law][case.op]
    count = counts[subject.depth][1]
    for i in range(count):
        number = int(case.detail) * count + i
        yield written(random.Random(f"{seed} {number}").randrange, subject.capabilities, number)


def _judged(subject: Subject, programs: Iterable[Program], judge: Judge) -> Tally:
    """Judge the programs of a case.

    Raises:
        Failure: with a reduced program, if a program is wrong.
    """
    tally = Tally()
    for program in programs:
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


@law("programs.meaning", partial(_cases, "programs.meaning"), level=4, stage=3)
def meaning(subject: Subject, case: Case) -> Measured:
    """The result of every step of a program is within the errors that the steps before it may have accumulated.

    Programs are drawn from all ops, from views, broadcasts, indexing and several dtypes.  An interval for each element
    follows from the declared errors of all earlier ops (enclosure/); where it is too wide, the step is checked from its
    actual operands, and where that is too wide as well, against the reference (programs/judging.py).
    """
    seed = case.op if case.op == "pinned" else f"{subject.seed} {case.op}"
    tally = _judged(subject, _programs(subject, case, seed), judge)
    if tally.elements and tally.unproven > (1 - PROVEN) * tally.elements:
        raise Failure(f"expected programs that prove something, got {tally}")
    return Measured(worst=str(tally))


def compiled_cases(subject: Subject) -> Iterator[Case]:
    """Programs, and for each installed compiler whether it compiles any of them."""
    yield from _cases("programs.compiled", subject)
    for name in required(subject.name) if subject.dtypes() else ():
        yield Case("programs.compiled", "compiler", detail=name)


def _compiled_programs(subject: Subject, case: Case) -> Iterator[Program]:
    return _programs(subject, case, f"{subject.seed} {'compiled' if case.op == 'drawn' else case.op}")


@law("programs.compiled", compiled_cases, level=4, stage=3)
def compiled(subject: Subject, case: Case) -> Measured:
    """A program under jit is within the errors of its steps, the same when called again, and its results do not change.

    Passes and compilers may change the steps: only results that no other step uses are compared, with the intervals of
    programs.meaning.  The case of a compiler plugin fails if it compiles none of the programs.
    """
    with counted() as found:
        if case.op == "compiler":
            _check_compiler(subject, case.detail, found)
            return Measured()
        tally = _judged(subject, _compiled_programs(subject, case), judge_compiled)
    return Measured(worst=f"{tally.elements} elements of results", figures=figures(found))


def _check_compiler(subject: Subject, name: str, counts: dict[str, Programs]) -> None:
    """Raise a Failure unless a compiler compiles one of the programs of the law; most compile one of the first."""
    programs = counts.setdefault(name, Programs())
    for kind in ("short", "special", "drawn"):
        for case in _numbered("programs.compiled", kind, KINDS["programs.compiled"][kind][0], subject):
            for program in _compiled_programs(subject, case):
                prepare(subject, program)
                if programs.compiled:
                    return
    expected = f"compiler {name}: expected at least one compiled program"
    if not programs.offered:
        raise Failure(f"{expected}; other compilers compiled all programs before it was called")
    raise Failure(
        f"{expected}, got none of the {programs.offered} that it was offered for {subject.backend!r}; "
        f"if it is for another backend, name that in BACKENDS of its module"
    )


@law("programs.lowered", partial(_cases, "programs.lowered"), level=4, stage=3)
def lowered(subject: Subject, case: Case) -> Measured:
    """A program whose kernels compute one element at a time, by ops of the backend, is within the errors of its steps.

    The kernels are those of the reference target, with limits that differ from case to case.  Results are compared with
    the intervals of programs.meaning, and not bit for bit with those of the ops on whole arrays: an op may round an
    element of a long array and a single one differently, and both are right.
    """
    programs = _programs(subject, case, f"{subject.seed} lowered {case.op}")
    chosen = limits(subject.random(case))
    try:
        tally = _judged(subject, programs, partial(judge_kernels, limits=chosen))
    except Failure as failure:  # the ops alone may be right, so the last line runs the kernels
        failure.script[-1:] = ["; ".join(script_of(case, subject.name, subject.seed, subject.depth))]
        raise
    if not tally.elements:
        raise Failure(
            "expected at least one program that is small enough for kernels of single elements, got none"
        )
    return Measured(worst=f"{tally.elements} elements of results, {chosen}")


def stateful_cases(subject: Subject) -> Iterator[Case]:
    """Random sequences of creating, using and dropping tensors."""
    if any(dtype.kind != "bool" for dtype in subject.dtypes()):
        yield from _numbered("programs.stateful", "lives", LIVES, subject)


@law("programs.stateful", stateful_cases, level=4, stage=3)
def stateful(subject: Subject, case: Case) -> None:
    """A tensor keeps its value while others are made, viewed, computed with, dropped and collected."""
    run_lifetimes(subject, f"{subject.seed} {case.id}", LIVES[subject.depth][1])
