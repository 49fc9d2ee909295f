"""The jobs by name: our own, and those of other distributions, from entry points of the group `tensorken.jobs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from tensorken_core.errors import ArgumentError
from tensorken_core.host.discovery import describe
from tensorken_core.text import printable
from tensorken_nn.jobs.job import Job
from tensorken_nn.options import option, seed
from tensorken_nn.training import Task

GROUP = "tensorken.jobs"


class Jobs(Mapping[str, Job]):
    """Jobs by name; a job of another distribution is imported when it is looked up.

    If the name of a job is also that of one of our jobs, or of a job of a third distribution, then it is named
    `name@distribution`.  A job that cannot be imported has the reason as its summary, and raises it when it is used.

    Args:
        own: our jobs.
    """

    def __init__(self, own: Mapping[str, Job]) -> None:
        self.own = own

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """The entry points of other distributions, by the names of their jobs."""
        found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _distribution(point)))
        names = [*self.own, *[point.name for point in found]]
        return {
            printable(
                point.name if names.count(point.name) == 1 else f"{point.name}@{_distribution(point)}", 80
            ): point
            for point in found
        }

    def __getitem__(self, name: str) -> Job:
        if name in self.own:
            return self.own[name]
        point = self._points[name]
        try:
            job = point.load()
        except Exception as error:  # noqa: BLE001, it is another distribution's code
            return _broken(point, describe(error))
        if not isinstance(job, Job):
            return _broken(point, f"{point.value} is a {type(job).__name__}, not a tensorken_nn.jobs.Job")
        return job

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._points

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *self._points])

    def __len__(self) -> int:
        return len(self.own) + len(self._points)


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of a job that cannot be used."""

    seed: int = option(0, seed, "of all random numbers")


def _broken(point: EntryPoint, cause: str) -> Job:
    """A job that is listed with the reason why it cannot be used, and raises it when it is used."""
    distribution = printable(_distribution(point), 80)
    reason = f"cannot be used: {cause}; update or uninstall {distribution}"

    def prepare(settings: _Settings) -> Task:
        raise ArgumentError(f"train: the job {printable(point.name, 80)} of {distribution} {reason}")

    return Job(reason, _Settings, prepare)
