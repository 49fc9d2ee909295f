"""Expectations: known failures of a backend, which a file in the backend's own wheel lists.

The file is `conformance.txt` in the top-level package of the backend's class.  A line is `id | reason | url | expires`;
`*` in an id matches anything, and a line that begins with `#` is a comment:

    # id                          | reason             | url                          | expires
    values.elementwise/erf/float16/* | 2 ULP off near 3 | https://example.org/issues/7 | 2027-01-31

An expected failure that passes is a failure, and so is one that has expired; an id that matches no case is an error of
the run.  A run of a part of the cases only remarks such an id.  With `~` before an id that is not so: which of these
cases fail depends on the seed.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any

from tensorken_conformance.case import Result

FILE = "conformance.txt"

BLOCKED = "blocked by "


class ExpectationError(ValueError):
    """A line of the file cannot be read."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A known failure.

    Args:
        id: the id of the case, or of several cases, by `*`; after `~`, of cases that fail with some seeds.
        reason: why it fails.
        url: the issue, or the path of a script in the package that shows the failure.
        expires: the last day of the expectation.
        place: the file and the line of the expectation.

    >>> expected = Expectation(
    ...     "values.cast/*", "rounds down", "https://example.org/1", datetime.date(2030, 1, 1), ""
    ... )
    >>> expected.matches("values.cast/cast/int32"), expected.matches("values.movement/flip")
    (True, False)
    """

    id: str
    reason: str
    url: str
    expires: datetime.date
    place: str

    @staticmethod
    def from_data(data: Mapping[str, str]) -> Expectation:
        """The inverse of `as_data`."""
        return Expectation(**{**data, "expires": datetime.date.fromisoformat(data["expires"])})  # type: ignore[arg-type]

    def as_data(self) -> dict[str, str]:
        """The fields as text, for JSON."""
        return {**asdict(self), "expires": str(self.expires)}

    @property
    def is_drawn(self) -> bool:
        """Whether it depends on the seed which of these cases fail."""
        return self.id.startswith("~")

    def matches(self, case: str) -> bool:
        """Whether the case with this id is expected to fail."""
        pattern = ".*".join(map(re.escape, self.id.removeprefix("~").split("*")))
        return re.fullmatch(pattern, case) is not None


def parse(text: str, name: str = FILE) -> list[Expectation]:
    """The expectations that a file lists.

    Raises:
        ExpectationError: if a line is malformed; it names the file and the line.

    >>> [expected] = parse("errors.refused/V+M | wrong class | https://example.org/1 | 2030-01-01")
    >>> expected.reason, str(expected.expires), expected.place
    ('wrong class', '2030-01-01', 'conformance.txt:1')
    """
    found: list[Expectation] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(_parsed(line, f"{name}:{number}"))
            for former in found[:-1]:
                if former.id == found[-1].id:
                    raise ExpectationError(
                        f"{found[-1].place}: {former.id} is expected at {former.place}, too"
                    )
    return found


def _parsed(line: str, place: str) -> Expectation:
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 4 or not all(parts):
        raise ExpectationError(
            f"{place}: expected `id | reason | url | expires`, none of them empty, got {line.strip()!r}"
        )
    id, reason, url, expires = parts
    if "/" not in id and "*" not in id:
        raise ExpectationError(f"{place}: {id!r} is no id of a case; one looks like values.cast/cast/int32")
    if re.match(r"https?://\S+$|\w[\w./-]*\.py$", url) is None:
        raise ExpectationError(
            f"{place}: {url!r} is no URL; name the issue, https://..., or a script of the package, bugs/....py"
        )
    try:
        day = datetime.date.fromisoformat(expires)
    except ValueError:
        raise ExpectationError(f"{place}: {expires!r} is no date; write YYYY-MM-DD") from None
    return Expectation(id, reason, url, day, place)


def expectations_of(backend: Any) -> list[Expectation]:
    """The expectations in the wheel of a backend, in the top-level package of the interpreter's class.

    The class is that of the backend itself, below interpreters such as `Lazy`.

    Raises:
        ExpectationError: if a line is malformed.

    >>> from tensorken_numpy.backend import Numpy
    >>> expectations_of(Numpy())
    []
    """
    while (below := getattr(backend, "raw", None)) is not None:
        backend = below
    package = type(backend).__module__.partition(".")[0]
    if not hasattr(sys.modules.get(package), "__path__"):  # a single module has no data files
        return []
    file = files(package) / FILE
    return parse(file.read_text("utf-8"), f"{package}/{FILE}") if file.is_file() else []


def apply(
    expectations: Sequence[Expectation],
    results: Iterable[Result],
    *,
    today: datetime.date | None = None,
    complete: bool = True,
) -> tuple[list[Result], list[str]]:
    """The results with expected failures, and the problems of the expectations.

    A case that an expected failure blocks is an expected failure, too.

    Args:
        expectations: the expectations of the backend's wheel.
        results: the results of a run.
        today: the day that is compared with `expires`; by default the present one.
        complete: whether all cases ran, so that an id without a case is a problem.
    """
    day = today or datetime.date.today()
    results = list(results)
    matched: dict[str, Expectation] = {}
    used: set[str] = set()
    for result in results:
        for expectation in expectations:
            if expectation.matches(result.case.id):
                matched.setdefault(result.case.id, expectation)
                used.add(expectation.id)
    judged = {
        result.case.id: _judged(result, matched[result.case.id], day) if result.case.id in matched else result
        for result in results
    }
    problems = [
        f"{e.place}: {e.id} matches no case"
        for e in expectations
        if complete and e.id not in used and not e.is_drawn
    ]
    problems += [
        f"{matched[result.case.id].place}: {result.case.id} is declared unsupported, it need not be expected to fail"
        for result in results
        if result.case.id in matched and result.status == "unsupported"
    ]
    return [_with_the_blocking(judged[result.case.id], judged) for result in results], problems


def unexamined(expectations: Iterable[Expectation], cases: Collection[str]) -> list[str]:
    """The expectations that match none of these ids of cases, in a line each.

    >>> unexamined(parse("errors.refused/V+M | wrong class | https://example.org/1 | 2030-01-01"), [])
    ['conformance.txt:1: errors.refused/V+M was not examined']
    """
    return [f"{e.place}: {e.id} was not examined" for e in expectations if not any(map(e.matches, cases))]


def _judged(result: Result, expectation: Expectation, today: datetime.date) -> Result:
    expired = f"its expectation expired on {expectation.expires}" if expectation.expires < today else ""
    if result.status == "passed" and expectation.is_drawn:
        return result
    if result.status == "passed":
        says = f"passes now: take it out of {expectation.place}"
        return replace(result, status="failed", says=f"{says} ({expired})" if expired else says)
    if result.status not in ("failed", "crashed"):
        return result
    if expired:
        return replace(result, says=f"{result.says} ({expired}, {expectation.place})")
    says = f"{expectation.reason} ({expectation.url}, until {expectation.expires}): {result.says}"
    return replace(result, status="expected failure", says=says)


def _with_the_blocking(result: Result, judged: dict[str, Result]) -> Result:
    """A blocked case is an expected failure if the case that finally blocks it is one."""
    blocking = result
    for _ in range(len(judged)):
        if blocking.status != "failed" or not blocking.says.startswith(BLOCKED):
            break
        following = judged.get(blocking.says.removeprefix(BLOCKED))
        if following is None:
            break
        blocking = following
    return replace(result, status="expected failure") if blocking.status == "expected failure" else result
