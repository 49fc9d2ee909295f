"""Law: what a backend must do; the table of all of them, and the decorator that enters one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tensorken_conformance.case import Case, Measured
from tensorken_conformance.subject import Subject

LEVELS = ("loads", "core ops", "numerics", "differentiation", "robust", "measured")
"""The levels L0 to L5: a backend has one if it has those below and no case of it fails."""

Check = Callable[[Subject, Case], Measured | None]
"""Checks one case: raises Failure or Unsupported, or returns what it measured."""

Cases = Callable[[Subject], Iterable[Case]]
"""All cases of a law for a subject, always the same for a seed and a depth."""


@dataclass(frozen=True, slots=True)
class Law:
    """What a backend must do.

    Attributes:
        id: such as `values.elementwise`; the part before the dot is its group.
        says: the law in one sentence.
        cases: all its cases.
        check: checks one.
        level: to which level of LEVELS a case belongs.
        needs: the ids of cases without which this one makes no sense.
        symbolic: whether it is for backends that have no values; the other laws are for those that have.
        stage: laws of a lower stage run before those of a higher one.
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


def _no_needs(case: Case) -> tuple[str, ...]:
    return ()


def law(
    id: str,
    cases: Cases,
    *,
    level: int | Callable[[Case], int],
    needs: Callable[[Case], tuple[str, ...]] = _no_needs,
    symbolic: bool = False,
    stage: int = 2,
) -> Callable[[Check], Check]:
    """Enter a law into the table; the function checks one case, its docstring is what the law says."""

    def enter(check: Check) -> Check:
        if not check.__doc__:
            raise ValueError(f"law {id!r} says nothing: write its docstring")
        says = " ".join(check.__doc__.split("\n\n", 1)[0].split())
        place = level if callable(level) else lambda case: level
        # The same code is the same law: its file is imported twice.
        if id in LAWS and LAWS[id].check.__code__ != check.__code__:
            raise ValueError(f"there are two laws {id!r}")
        LAWS[id] = Law(id, says, cases, check, place, needs, symbolic, stage)
        return check

    return enter
