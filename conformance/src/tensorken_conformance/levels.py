"""Levels: the level that a set of results reaches, and the number of cases of each status."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass

from tensorken_conformance.case import STATUSES, Result, Status
from tensorken_conformance.law import LEVELS, MEANINGS
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.op import OPS

MANDATORY_DTYPES = ("bool", "int32", "float32")
"""The dtypes that every level above L0 needs."""

CREATIONS = ("new", "sequence", "full")
"""The methods that make tensors, which are required like ops without a body."""

TOP, SYMBOLIC_TOP = 5, 4
"""The highest levels; a symbolic backend computes nothing, so it has no level for performance."""


@dataclass(frozen=True, slots=True)
class Level:
    """A conformance level of a backend.

    Args:
        number: 0 to 5, an index of `LEVELS`.
        symbolic: whether it is a level of backends without values.

    >>> str(Level(3)), Level(4, symbolic=True).short
    ('L3 differentiation', 'L4s')
    """

    number: int
    symbolic: bool = False

    @property
    def short(self) -> str:
        """Such as `L4`, as badges show it."""
        return f"L{self.number}{'s' if self.symbolic else ''}"

    @property
    def name(self) -> str:
        """Such as `robust`."""
        return LEVELS[self.number]

    @property
    def meaning(self) -> str:
        """The meaning of the level, in a few words."""
        return MEANINGS[self.number]

    def __str__(self) -> str:
        return f"{self.short} {self.name}"


def is_mandatory(op: str, dtype: str) -> bool:
    """Whether level 1 requires an op in a dtype: an op without a default body, in bool, int32 or float32.

    >>> is_mandatory("exp", "float32"), is_mandatory("exp", "float64"), is_mandatory("tanh", "float32")
    (True, False, False)
    """
    required = op in CREATIONS or (op in OPS and OPS[op].body is None)
    return required and dtype in MANDATORY_DTYPES


def level_of(results: Iterable[Result], capabilities: Capabilities) -> Level | None:
    """The highest level that the results of a complete run reach; None if they do not reach L0.

    A level is reached if all lower levels are, if one of its cases passed, and if none of them failed or crashed. An
    expected failure counts as a failure here: it changes the exit status, and not the level. Ops and dtypes that level
    1 requires must not be declared unsupported.  A backend that declares no dtypes has no level.

    >>> from tensorken_conformance.case import Case
    >>> good = Result(Case("host.probe", "load"), "passed", level=0)
    >>> level_of([good], Capabilities(dtypes=("float32",)))
    Level(number=0, symbolic=False)
    >>> level_of([good], Capabilities()) is None
    True
    """
    if not capabilities.dtypes:
        return None
    top = SYMBOLIC_TOP if capabilities.symbolic else TOP
    results = list(results)
    limit = min([top + 1, *(spoilt for result in results if (spoilt := spoils(result)) is not None)])
    number = highest({result.level for result in results if result.status == "passed"}, limit)
    return Level(number, capabilities.symbolic) if number >= 0 else None


def highest(passed: Collection[int], limit: float) -> int:
    """The number of the highest level below the limit that, with all lower ones, has a passed case; -1 if none has.

    >>> highest({0, 1, 3}, 5), highest({0, 1, 3}, 1), highest({1}, 5)
    (1, 0, -1)
    """
    return next(n for n in itertools.count() if n >= limit or n not in passed) - 1


def spoils(result: Result) -> int | None:
    """The lowest level that a backend with this result cannot reach; None if it can reach all."""
    if result.status in ("failed", "expected failure", "crashed"):
        return result.level
    if result.status == "unsupported" and is_mandatory(result.case.op, result.case.dtype):
        return 1
    return None


def obstacles(results: Iterable[Result], level: Level | None) -> list[Result]:
    """The results that prevent a backend of this level from reaching the next one."""
    following = 0 if level is None else level.number + 1
    return [result for result in results if spoils(result) == following]


WORST_FIRST: tuple[Status, ...] = ("crashed", "failed", "expected failure", "passed", "unsupported")
"""The statuses in order of severity."""


@dataclass(frozen=True, slots=True)
class Account:
    """The number of cases of each status, in the order of STATUSES.

    >>> print(Account(passed=3, failed=1))
    4 cases = 3 passed + 1 failed + 0 expected failures + 0 declared unsupported + 0 crashed
    """

    passed: int = 0
    failed: int = 0
    expected: int = 0
    unsupported: int = 0
    crashed: int = 0

    def __add__(self, other: Account) -> Account:
        return Account(*[a + b for a, b in zip(astuple(self), astuple(other), strict=True)])

    @property
    def cases(self) -> int:
        """The number of all cases."""
        return sum(astuple(self))

    @property
    def ran(self) -> int:
        """The number of cases that are not declared unsupported."""
        return self.cases - self.unsupported

    @property
    def bad(self) -> int:
        """The number of cases that failed or crashed."""
        return self.failed + self.crashed

    @property
    def worst(self) -> Status:
        """The worst status of a case; `unsupported` if there are none."""
        numbers = dict(zip(STATUSES, astuple(self), strict=True))
        return next((status for status in WORST_FIRST if numbers[status]), "unsupported")

    def __str__(self) -> str:
        return (
            f"{self.cases} cases = {self.passed} passed + {self.failed} failed + {self.expected} expected failures "
            f"+ {self.unsupported} declared unsupported + {self.crashed} crashed"
        )


def account(results: Iterable[Result]) -> Account:
    """Count results by status.

    Raises:
        ValueError: if two results are of one case, or a status is unknown.
    """
    results = list(results)
    ids = Counter(result.case.id for result in results)
    if twice := [id for id, count in ids.items() if count > 1]:
        raise ValueError(f"there are several results of {', '.join(twice[:3])}")
    counts = Counter(result.status for result in results)
    if unknown := counts.keys() - set(STATUSES):
        raise ValueError(f"there is no status {', '.join(map(repr, sorted(unknown)))}")
    return Account(*[counts[status] for status in STATUSES])


def exit_status(counted: Account, level: Level | None, problems: Iterable[str] = ()) -> int:
    """0 if the backend has a level and every failure was expected, else 1.

    >>> exit_status(Account(passed=3), Level(0)), exit_status(Account(passed=3), None)
    (0, 1)
    """
    return 1 if counted.failed or counted.crashed or level is None or any(problems) else 0
