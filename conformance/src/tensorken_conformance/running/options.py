"""Options: what a run is to examine, and the record of what it has found; nothing heavy is imported for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorken_conformance.case import Result

if TYPE_CHECKING:
    from tensorken_conformance.subject import Depth

LAW_LIMIT = 20
"""How many times as long as for one case a law may take in all, unless the run is a deep one."""

Tell = Callable[[Result], None]


class RunError(Exception):
    """A request cannot be met: a backend, law, case, option or file does not exist or cannot be used."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to examine, and how.

    Args:
        backend: the name of the backend.
        seed: of all numbers that are drawn.
        depth: how many cases there are.
        select: the ids or groups of the laws, or beginnings of ids of cases; none: all.
        workers: how many processes; None: as many as there are processors, at most 8, and one at the depth `smoke`.
        limit: seconds that a worker may compute for one case; it may wait for twice as long.
        options: for what makes the backend, as in `loading.load`.
        in_process: whether to do without worker processes, for a debugger.
    """

    backend: str
    seed: int = 0
    depth: Depth = "default"
    select: tuple[str, ...] = ()
    workers: int | None = None
    limit: float = 120.0
    options: Mapping[str, Any] = field(default_factory=dict)
    in_process: bool = False

    @property
    def law_limit(self) -> float:
        """Seconds that the workers may compute and wait for one law."""
        return float("inf") if self.depth == "deep" else LAW_LIMIT * self.limit


@dataclass(slots=True)
class Run:
    """What a run has found so far.

    Attributes:
        options: what was to be examined.
        laws: those that were examined, in order: `id`, `says` and `stage` of each.
        results: what became of the cases, in the order of the laws and of their cases.
        capabilities: what the backend declares.
        about: where it comes from.
        expectations: the failures that the backend's wheel lists.
        problems: what is wrong with that list.
        seconds: how long it took.
        partial: why cases are missing, such as `interrupted`; empty if none are.
        begun: called with the run when it is known what is to be examined.
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
    begun: Callable[[Run], None] = field(default=lambda found: None, repr=False)

    def take(self, first_message: Mapping[str, Any]) -> None:
        """Note what `worker.introduction` says."""
        self.laws, self.problems = first_message["laws"], first_message["problems"]
        self.capabilities, self.about = as_tuples(first_message["capabilities"]), first_message["about"]
        self.expectations = first_message["expectations"]
        self.begun(self)


def as_tuples(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a backend declares, with tuples where JSON has lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in declared.items()}
