"""Options: the settings of a run, and the record of its results; this module imports nothing heavy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorken_conformance.case import Result

if TYPE_CHECKING:
    from tensorken_conformance.subject import Depth

LAW_LIMIT = 20
"""The time limit of a law, in limits of a case; a deep run has none."""

ENDED = "interrupted"
"""Why cases of a run are missing that Ctrl-C or SIGTERM has ended."""

SMOKE_BUDGET = 60.0
"""The seconds after which a smoke run begins no case, by default."""

Tell = Callable[[Result], None]


class RunError(Exception):
    """A request cannot be met: a backend, law, case, option or file does not exist or cannot be used."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a run.

    Args:
        backend: the name of the backend.
        seed: the seed of all random numbers.
        depth: `smoke`, `default` or `deep`, for more and more cases.
        select: the ids or groups of the laws, or beginnings of ids of cases; empty: all.
        workers: the number of processes; None: that of processors, at most 8, and one for a smoke run.
        limit: the seconds that a worker may compute for one case; it may wait for twice as long.
        options: arguments of the backend's factory, as in `loading.load`.
        in_process: whether to run without worker processes, for a debugger.
        budget: the seconds after which no case begins; 0: no limit; None: 60 for a smoke run, else no limit.
    """

    backend: str
    seed: int = 0
    depth: Depth = "default"
    select: tuple[str, ...] = ()
    workers: int | None = None
    limit: float = 120.0
    options: Mapping[str, Any] = field(default_factory=dict)
    in_process: bool = False
    budget: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds after which no case begins."""
        if self.budget is None:
            return SMOKE_BUDGET if self.depth == "smoke" else float("inf")
        return self.budget or float("inf")

    @property
    def turns(self) -> int:
        """The number of turns of a run: with a budget the cases that found seeded faults come first."""
        return 1 if self.seconds == float("inf") else 2

    @property
    def law_limit(self) -> float:
        """The seconds that the workers may compute and wait for one law."""
        return float("inf") if self.depth == "deep" else LAW_LIMIT * self.limit


@dataclass(slots=True)
class Run:
    """The record of a run.

    Attributes:
        options: the settings of the run.
        laws: `id`, `says` and `stage` of each law, in their order.
        results: the results, in the order of the laws and of their cases; before the run, those of the run that it
            resumes.
        capabilities: what the backend declares.
        about: the origin of the backend.
        expectations: the expected failures that the backend's wheel lists.
        problems: the errors of that list.
        seconds: the time of the run.
        partial: why cases are missing, such as `interrupted`; empty if none are.
        planned: the number of cases; None until they are counted.
        begun: called with the run before its first case.
    """

    options: Options
    laws: list[dict[str, Any]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    expectations: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    partial: str = ""
    planned: int | None = None
    begun: Callable[[Run], None] = field(default=lambda outcome: None, repr=False)
    began: float = field(default_factory=time.monotonic, repr=False)

    @property
    def is_over_budget(self) -> bool:
        """Whether no case may begin any more."""
        return time.monotonic() - self.began > self.options.seconds

    @property
    def ids(self) -> list[str]:
        """The ids of the cases that have results."""
        return [result.case.id for result in self.results]

    def put_in_order(self, places: Mapping[str, int]) -> None:
        """Sort the results by law, and by the places of their cases in the law; the others keep their order."""
        laws = {law["id"]: place for place, law in enumerate(self.laws)}
        self.results.sort(
            key=lambda r: (laws.get(r.case.law, -1), places.get(r.case.id, len(places)), r.case.id)
        )

    def end_at_budget(self) -> None:
        """Record that cases are missing because the budget is spent, if any are."""
        if self.planned is None or len(self.results) < self.planned:
            self.partial = f"the budget of {self.options.seconds:g} s is spent"

    @property
    def failed(self) -> list[str]:
        """The ids of the cases that failed or crashed."""
        return [result.case.id for result in self.results if result.status in ("failed", "crashed")]

    def take(self, first_message: Mapping[str, Any]) -> None:
        """Take over the data of `worker.introduction`."""
        self.laws, self.problems = first_message["laws"], first_message["problems"]
        self.capabilities, self.about = as_tuples(first_message["capabilities"]), first_message["about"]
        self.expectations = first_message["expectations"]
        self.begun(self)


def as_tuples(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Declared capabilities, with tuples in place of JSON's lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in declared.items()}
