"""Cases and their results, the smallest parts of a run and of a report."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

Status = Literal["passed", "failed", "expected failure", "unsupported", "crashed"]
"""A case that needs a failed case is `failed` as well; its message begins with `blocked by`."""

STATUSES: tuple[Status, ...] = ("passed", "failed", "expected failure", "unsupported", "crashed")


@dataclass(frozen=True, slots=True)
class Case:
    """One check of one law.

    Attributes:
        law: the id of the law, such as `values.elementwise`.
        op: the name of the op, or of a scenario.
        dtype: the name of the dtype of the data, or empty.
        shape: the shape class of the operands (shapes.py), or empty.
        values: the value class of the operands (pools.py), or empty.
        detail: further distinctions, such as a param.

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
        """The case in one word; `parse` is the inverse."""
        return "/".join(getattr(self, f.name) or "-" for f in fields(self)).rstrip("-/")

    @staticmethod
    def parse(text: str) -> Case:
        """The case of an id.

        Raises:
            ValueError: if the text is not an id.

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
    """Python that examines a case again, with the numbers of a run of this depth.

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
        says: the expected and the actual result, in one line.
        ulp: the largest error, in representable numbers, if it makes sense.
        worst: the operands of the largest error, as text.
        script: at most five lines of Python that show the failure; by default the runner writes them.
    """

    def __init__(
        self, says: str, *, ulp: float | None = None, worst: str = "", script: list[str] | None = None
    ) -> None:
        super().__init__(says)
        self.says, self.ulp, self.worst, self.script = says, ulp, worst, script or []


class Unsupported(Exception):
    """The backend declares this as unsupported, and refuses it with the right error."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a law that holds: the largest error and its operands, or other figures."""

    ulp: float | None = None
    worst: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a case.

    Attributes:
        case: the case.
        status: its status.
        level: the level of the kit that the case belongs to.
        says: why it failed, or is unsupported.
        script: at most five lines of Python that show a failure.
        ulp: the largest error, in representable numbers.
        worst: the operands of the largest error.
        figures: other measurements, such as times, by names with a unit.
        calls: the number of ops that the backend ran.
        seconds: the time of the case.
        cause: the class of the exception that the case failed with, and the line that raised it; or the op by which an
            op fails whose body calls it.
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
    cause: str = ""

    def as_data(self) -> dict[str, Any]:
        """The fields for a JSON report, without empty ones."""
        data = {f.name: getattr(self, f.name) for f in fields(self)} | {"case": self.case.id}
        return {name: value for name, value in data.items() if value not in ("", (), None, {})}

    @staticmethod
    def from_data(data: dict[str, Any]) -> Result:
        """The inverse of `as_data`."""
        return Result(**{**data, "case": Case.parse(data["case"]), "script": tuple(data.get("script", ()))})
