"""Cases and what became of them: the smallest pieces of a run, which reports are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

Status = Literal["passed", "failed", "expected failure", "unsupported", "crashed"]
"""A case that waits for another, which failed, is `failed` as well: its message begins with `blocked by`."""

STATUSES: tuple[Status, ...] = ("passed", "failed", "expected failure", "unsupported", "crashed")


@dataclass(frozen=True, slots=True)
class Case:
    """One check of one law.

    Attributes:
        law: the law's id, such as `values.elementwise`.
        op: the op it is about; for laws about no single op, the name of the scenario.
        dtype: of the data, by name; empty where it does not matter.
        shape: the shape class of the operands (rooms.py), or empty.
        values: the value class of the operands (pools.py), or empty.
        detail: what else tells it apart, such as a param.

    >>> Case("values.elementwise", "exp", "float32", "prime", "normals").id
    'values.elementwise/exp/float32/prime/normals'
    """

    law: str
    op: str
    dtype: str = ""
    shape: str = ""
    values: str = ""
    detail: str = ""

    @property
    def id(self) -> str:
        """The case in one word, from which it can be run again."""
        return "/".join(getattr(self, f.name) or "-" for f in fields(self)).rstrip("-/")

    @staticmethod
    def parse(text: str) -> Case:
        """The case of an id.

        Raises:
            ValueError: if the text is no id.

        >>> Case.parse("values.read-back/new/int32").dtype
        'int32'
        """
        parts = text.strip().split("/", 5)
        if len(parts) < 2:
            raise ValueError(
                f"case {text!r} is no id; one looks like values.elementwise/exp/float32/prime/normals"
            )
        return Case(*["" if part == "-" else part for part in parts])


def script_of(case: Case, backend: str, seed: int, depth: str = "default") -> tuple[str, ...]:
    """Python that examines a case again, as it was in a run of this depth, on which its numbers depend.

    >>> print(script_of(Case("values.sums", "sum", "float32"), "mine", 3, "deep")[-1])
    check('values.sums/sum/float32', backend='mine', seed=3, depth='deep')
    """
    of_the_run = "" if depth == "default" else f", depth={depth!r}"
    return (
        "from tensorken_conformance import check",
        f"check({case.id!r}, backend={backend!r}, seed={seed}{of_the_run})",
    )


class Failure(AssertionError):
    """A law does not hold.

    Args:
        says: in one line what was expected and what came.
        ulp: how far off it was, in representable numbers, where that makes sense.
        worst: the operands where it was farthest off, as text.
        script: at most five lines of Python that show it; by default the runner writes them.
    """

    def __init__(
        self, says: str, *, ulp: float | None = None, worst: str = "", script: list[str] | None = None
    ) -> None:
        super().__init__(says)
        self.says, self.ulp, self.worst, self.script = says, ulp, worst, script or []


class Unsupported(Exception):
    """The backend declares that it does not do this, and refuses it as it should."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a law that holds has measured: the largest error, and where it was reached; or other figures."""

    ulp: float | None = None
    worst: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case.

    Attributes:
        case: which.
        status: what became of it.
        level: the level of the kit that this case belongs to.
        says: why it failed, or is unsupported.
        script: at most five lines of Python that show a failure.
        ulp: the largest error, in representable numbers.
        worst: the operands where it was reached.
        figures: what else was measured, such as times, by names that tell the unit.
        calls: how many ops the backend ran for it.
        seconds: how long it took.
    """

    case: Case
    status: Status
    level: int
    says: str = ""
    script: tuple[str, ...] = ()
    ulp: float | None = None
    worst: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    calls: int = 0
    seconds: float = 0.0

    def as_data(self) -> dict[str, Any]:
        """As it stands in a JSON report: empty fields are left out."""
        data = {f.name: getattr(self, f.name) for f in fields(self)} | {"case": self.case.id}
        return {name: value for name, value in data.items() if value not in ("", (), None, {})}

    @staticmethod
    def from_data(data: dict[str, Any]) -> Result:
        """The result that `as_data` gave."""
        return Result(**{**data, "case": Case.parse(data["case"]), "script": tuple(data.get("script", ()))})
