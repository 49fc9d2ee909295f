"""Parts of batches on the workers of a dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tensorken_core.errors import ArgumentError
from tensorken_nn.parts import Combine, PartFunction, Parts


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connection to a dask cluster.

    Args:
        client: a `distributed.Client`.
        worker_count: the number of workers at the start.
        dashboard_link: the address of dask's dashboard; empty if there is none.
    """

    client: Any
    worker_count: int
    dashboard_link: str

    @property
    def description(self) -> str:
        """A line about the cluster: the number of workers, and where to look at them."""
        workers = f"{self.worker_count} worker{'' if self.worker_count == 1 else 's'}"
        return f"cluster: {workers}" + (f", dashboard: {self.dashboard_link}" if self.dashboard_link else "")

    def combined(self, parts: Parts, f: PartFunction, combine: Combine, backend: str) -> Callable[..., Any]:
        """A function from arguments to the results of `f(part, *arguments)` for all parts, combined in order."""
        dask: Any = import_module("tensorken_dask")
        total: Callable[..., Any] = dask.map_reduce(
            f, dask.Shards(self.client, parts.load, parts.count), combine, backend=backend
        )
        return total


@contextmanager
def _without_logs() -> Iterator[None]:
    """Dask logs no errors: this command describes them itself, in one line."""
    levels = [(handler, handler.level) for handler in logging.getLogger("distributed").handlers]
    for handler, _ in levels:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in levels:
            handler.setLevel(level)


@contextmanager
def cluster(where: str) -> Iterator[Cluster]:
    """Connect to a cluster, or start one on this machine.

    Args:
        where: the address of a scheduler, or local:COUNT.

    Raises:
        ArgumentError: if dask is not installed, or the address is malformed.
        ConnectionError: if there is no scheduler, or no worker.
    """
    try:
        dask: Any = import_module("tensorken_dask")
    except ModuleNotFoundError:
        raise ArgumentError(
            "train: --cluster needs dask, which is missing: pip install tensorken[dask]"
        ) from None
    with _without_logs(), dask.connect(where) as client:
        yield Cluster(client, dask.wait_for_workers(client), dask.dashboard_link(client))
