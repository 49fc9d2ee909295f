"""The jobs by name: our own, and those of other distributions, from entry points of the group `tensorken.jobs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from tensorken_core.errors import ArgumentError
from tensorken_core.host.discovery import describe
from tensorken_nn.jobs.job import Job

GROUP = "tensorken.jobs"


class Jobs(Mapping[str, Job]):
    """Jobs by name; a job of another distribution is imported when it is looked up.

    A name that is also one of ours or another distribution's is that of ours, or none: `name@distribution` is the
    name of the other job.

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
            point.name if names.count(point.name) == 1 else f"{point.name}@{_distribution(point)}": point
            for point in found
        }

    def __getitem__(self, name: str) -> Job:
        if name in self.own:
            return self.own[name]
        point = self._points[name]
        try:
            job = point.load()
        except Exception as error:
            raise _error(point, describe(error)) from error
        if not isinstance(job, Job):
            raise _error(point, f"{point.value} is a {type(job).__name__}, not a tensorken_nn.jobs.Job")
        return job

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._points

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *self._points])

    def __len__(self) -> int:
        return len(self.own) + len(self._points)

    def loaded(self) -> tuple[dict[str, Job], dict[str, str]]:
        """The jobs that load, and for each of the others the reason why it does not."""
        jobs, reasons = {}, {}
        for name in self:
            try:
                jobs[name] = self[name]
            except ArgumentError as error:
                reasons[name] = str(error)
        return jobs, reasons


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"


def _error(point: EntryPoint, cause: str) -> ArgumentError:
    name = _distribution(point)
    return ArgumentError(
        f"train: the job {point.name} of {name} cannot be used: {cause}; update or uninstall {name}"
    )
