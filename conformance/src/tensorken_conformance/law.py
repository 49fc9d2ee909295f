"""Law: a requirement on backends; the table of all laws, and the decorator that registers one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tensorken_conformance.case import Case, Measured
from tensorken_conformance.subject import Subject

LEVELS = ("loads", "core ops", "numerics", "differentiation", "robust", "measured")
"""The levels L0 to L5; a backend has one if it has all lower ones and no case of it fails."""

MEANINGS = (
    "the plugin is found, described and loaded as required",
    "the required ops work on ordinary values, in bool, int32 and float32 at least",
    "all ops work on all values: special ones, ties, extremes; within the errors of this level",
    "derivatives of every kind, and `vmap`, are correct",
    "programs, memory, threads and errors are correct, and the declarations are true",
    "times are measured; no time is a failure",
)
"""The meanings of the levels."""

Check = Callable[[Subject, Case], Measured | None]
"""Checks one case: raises Failure or Unsupported, or returns measurements."""

Cases = Callable[[Subject], Iterable[Case]]
"""Lists all cases of a law for a subject, always the same for a seed and a depth."""


@dataclass(frozen=True, slots=True)
class Law:
    """A requirement on backends.

    Attributes:
        id: such as `values.elementwise`; the part before the dot is its group.
        says: the law in one sentence.
        cases: lists all its cases.
        check: checks one case.
        level: the level of a case, an index of LEVELS.
        needs: the ids of the cases whose failure blocks a case.
        symbolic: whether it is for backends without values; other laws are for those with values.
        stage: laws of lower stages run first.
    """

    id: str
    says: str
    cases: Cases
    check: Check
    level: Callable[[Case], int]
    needs: Callable[[Case], tuple[str, ...]]
    symbolic: bool = False
    stage: int = 2

    @property
    def group(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


LAWS: dict[str, Law] = {}
"""All laws, by their ids."""


def reading_back(dtype: str) -> str:
    """The id of the case that all cases on values of a dtype need: what is put into a tensor comes out again."""
    return Case("values.read-back", "new", dtype, "small").id


def law(
    id: str,
    cases: Cases,
    *,
    level: int | Callable[[Case], int],
    needs: Callable[[Case], tuple[str, ...]] = lambda case: (),
    symbolic: bool = False,
    reads: bool = True,
    stage: int = 2,
) -> Callable[[Check], Check]:
    """Register a law; the function checks one case, and the first paragraph of its docstring states the law.

    The arguments are the attributes of Law, where the level may be the same for all cases.  If `reads`, its cases also
    need that values of their dtype (of float32, if they have none) can be read back.
    """

    def enter(check: Check) -> Check:
        if not check.__doc__:
            raise ValueError(f"law {id!r} says nothing: write its docstring")
        says = " ".join(check.__doc__.split("\n\n", 1)[0].split())
        place = level if callable(level) else lambda case: level

        def needed(case: Case) -> tuple[str, ...]:
            reading = (reading_back(case.dtype or "float32"),) if reads and not symbolic else ()
            return tuple(dict.fromkeys([need for need in (*reading, *needs(case)) if need != case.id]))

        # The same code is the same law: its file is imported twice.
        if id in LAWS and LAWS[id].check.__code__ != check.__code__:
            raise ValueError(f"there are two laws {id!r}")
        LAWS[id] = Law(id, says, cases, check, place, needed, symbolic, stage)
        return check

    return enter
