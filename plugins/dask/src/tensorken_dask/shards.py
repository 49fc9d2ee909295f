"""Shards on the workers of a dask cluster."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
from distributed import Client, Future, KilledWorker

from tensorken_dask.cluster import (
    PATIENCE,
    address_of,
    check_workers,
    dashboard_link,
    no_workers,
    wait_for_workers,
    worker_count,
)
from tensorken_dask.computations import Computation, LoadedShard, Packed, load_shard
from tensorken_dask.errors import ClusterError
from tensorken_dask.in_process import check_count

LOADS = 4
"""The number of times that a worker tries to load a shard, if it gets OSErrors."""

OF_ARGUMENTS = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
"""Settings of dask while it sends arguments: it warns of more than 10 MB, which parameters often are."""

POLL = 1.0  # seconds between looks at the workers, while waiting for a result


class Shards:
    """Data in shards that workers of a dask cluster load for themselves, and again if a worker dies.

    Args:
        client: a `distributed.Client`.
        load: from the number of a shard to its data, a tree of tensors or arrays; runs on a worker.  It must be pure.
        count: the number of shards; more than there are workers is fine.
        patience: the number of seconds to wait for a worker while there is none.

    Raises:
        ArgumentError: if `count` is not positive.
        ClusterError: if there are no workers.

    >>> from tensorken_dask import connect, map_reduce
    >>> import tensorken as tk
    >>> with connect("threads:2") as client:
    ...     shards = Shards(client, lambda i: tk.full(2, float(i)), 3)
    ...     map_reduce(lambda x: x.sum(), shards)().item()
    6.0
    """

    def __init__(
        self, client: Client, load: Callable[[int], Any], count: int, *, patience: float = PATIENCE
    ) -> None:
        check_count("Shards", count)
        self.client = client
        self.load = load
        self.count = count
        self.patience = patience
        self._loaded: dict[str, list[Future]] = {}
        wait_for_workers(client, patience)

    @property
    def loaded(self) -> int:
        """The number of loaded shards, each counted once for each backend."""
        return sum(f.status == "finished" for futures in self._loaded.values() for f in futures)

    @property
    def dashboard_link(self) -> str:
        """The address of dask's dashboard, which shows tasks and memory of all workers; empty if there is none."""
        return dashboard_link(self.client)

    def __repr__(self) -> str:
        workers = f"{worker_count(self.client)} workers at {address_of(self.client)}"
        return f"<Shards: {self.count} shards, {self.loaded} loaded, {workers}>"

    def prepare(self, computation: Computation) -> Callable[[Packed], Packed]:
        """A function from arguments to the combined results of all shards."""
        client, token, calls = self.client, uuid4().hex, itertools.count()
        check_workers(client, computation.versions, self.patience)
        shards = self._on(computation.backend)
        # Results of tasks, not scattered data: dask can compute them again.
        function = client.submit(pickle.loads, cloudpickle.dumps(computation), key=("function", token))

        def run(arguments: Packed) -> Packed:
            call = f"{token}-{next(calls)}"
            with dask.config.set(OF_ARGUMENTS):
                given = client.submit(_identity, arguments, key=("arguments", call))
            parts = [
                client.submit(_apply, function, shard, given, key=("shard", call, i))
                for i, shard in enumerate(shards)
            ]
            result: Packed = self._wait(client.submit(_reduce, function, parts, key=("reduce", call)))
            return result

        return run

    def _on(self, backend: str) -> list[Future]:
        """The loaded shards, one future each."""
        if backend not in self._loaded:
            token, load = uuid4().hex, cloudpickle.dumps(self.load)
            # Dask spreads them evenly, and later tasks go where the shards are.  A task that prefers a worker, by
            # `allow_other_workers`, would never run again if all workers were lost at once.
            self._loaded[backend] = [
                self.client.submit(_load, load, i, backend, key=("load", token, i)) for i in range(self.count)
            ]
        return self._loaded[backend]

    def _wait(self, future: Future) -> Any:
        """The result of a task; an error if the scheduler is lost, or there have been no workers for some time."""
        last_seen = time.monotonic()
        while not future.done():
            try:
                future.exception(timeout=POLL)  # not `wait`, which needs a default client
            except TimeoutError:
                if self._has_workers():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > self.patience:
                    if self.client.status != "running":
                        raise _scheduler_lost(address_of(self.client)) from None
                    raise no_workers(self.client, self.patience) from None
        return _result(future, address_of(self.client))

    def _has_workers(self) -> bool:
        try:
            return self.client.status == "running" and worker_count(self.client) > 0
        except OSError:  # the connection broke just now
            return False


def _scheduler_lost(address: str) -> ClusterError:
    return ClusterError(f"Shards: the scheduler {address} is lost; start a scheduler and workers")


def _result(future: Future, address: str) -> Any:
    if future.status == "finished":
        return future.result()
    if future.status == "error":
        error = future.exception()
        if isinstance(error, KilledWorker):
            raise ClusterError(
                f"Shards: a task has ended {error.allowed_failures + 1} workers of {address}, perhaps for lack of "
                f"memory; use more shards, or workers with more memory"
            ) from None
        raise error
    try:
        future.result()
    except CancelledError as error:
        if "connection-lost" not in str(error):
            raise ClusterError(f"Shards: the scheduler {address} has cancelled a task: {error}") from None
    raise _scheduler_lost(address)


# The functions of tasks.  The scheduler reads their arguments, too, so functions and classes of users are in bytes.
# Dask runs tasks of lost workers again.  With `retries` it would also do so after each error, so no task has them.


def _load(load: bytes, number: int, backend: str) -> LoadedShard:
    function = pickle.loads(load)
    for _ in range(LOADS - 1):
        with contextlib.suppress(OSError):  # of files on other machines, for example
            return load_shard(function, number, backend)
    return load_shard(function, number, backend)


def _identity(arguments: Packed) -> Packed:
    return arguments


def _apply(computation: Computation, shard: LoadedShard, arguments: Packed) -> Packed:
    return computation.apply(shard, arguments)


def _reduce(computation: Computation, results: list[Packed]) -> Packed:
    return computation.reduce(results)
