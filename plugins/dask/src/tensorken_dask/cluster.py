"""Connections to clusters: their workers are there, and have the versions of this process."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

from tensorken_core.errors import ArgumentError
from tensorken_dask.computations import DISTRIBUTIONS, check_versions
from tensorken_dask.errors import ClusterError

PATIENCE = 30.0
"""The number of seconds to wait for a scheduler, or for a worker while there is none."""

OF_LOCAL_CLUSTERS = {
    "distributed.scheduler.allowed-failures": 10,  # workers that die while they have one task, until it is given up
    "distributed.deploy.lost-worker-timeout": "1h",  # by default dask gives up a worker that takes 15 s to come back
}
"""Settings of dask."""

LOCAL = {
    "local": True,
    "threads": False,
}  # the first word of a local cluster -> whether workers are processes


@contextmanager
def connect(where: str, *, patience: float = PATIENCE) -> Iterator[Client]:
    """Connect to a cluster, or start one on this machine and stop it at the end.

    Args:
        where: the address of a scheduler, such as "tcp://10.0.0.1:8786"; "local:4" for four new processes; or
            "threads:4" for four workers in threads of this process, for tests.
        patience: the number of seconds to wait for the scheduler.

    Raises:
        ArgumentError: if `where` is neither.
        ClusterError: if there is no scheduler.

    >>> with connect("threads:2") as client:
    ...     client.submit(abs, -1).result()
    1
    >>> with connect("local:none") as client:
    ...     pass
    Traceback (most recent call last):
    tensorken_core.errors.ArgumentError: connect: got 'local:none', need an address, as tcp://HOST:8786, or local:COUNT
    """
    kind, _, rest = where.partition(":")
    if kind in LOCAL:
        if not rest.isdecimal() or int(rest) < 1:
            raise ArgumentError(
                f"connect: got {where!r}, need an address, as tcp://HOST:8786, or local:COUNT"
            )
        with (
            dask.config.set(OF_LOCAL_CLUSTERS),
            LocalCluster(
                n_workers=int(rest),
                threads_per_worker=1,
                processes=LOCAL[kind],
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(where, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError):
        raise ClusterError(
            f"connect: there is no scheduler at {where}; start one with: dask scheduler"
        ) from None
    except ValueError as error:
        raise ArgumentError(
            f"connect: got {where!r}, need an address, as tcp://HOST:8786, or local:COUNT"
        ) from error
    with client:
        yield client


def has_dashboard() -> bool:
    """Whether schedulers of this process can show the dashboard: it needs bokeh."""
    return importlib.util.find_spec("bokeh") is not None


def dashboard_link(client: Client) -> str:
    """The address of the dashboard of a cluster; empty if there is none.

    The schedulers of local clusters have one only if bokeh is installed.
    """
    return "" if client.cluster is not None and not has_dashboard() else str(client.dashboard_link or "")


def address_of(client: Client) -> str:
    """The address of the scheduler."""
    return str(client.scheduler.address) if client.scheduler else "(closed)"


def worker_count(client: Client) -> int:
    """The number of workers now."""
    return len(client.nthreads())


def no_workers(client: Client, patience: float) -> ClusterError:
    """The error that there are no workers."""
    address = address_of(client)
    return ClusterError(
        f"Shards: the scheduler {address} has had no workers for {patience:g} s; start some with: dask worker {address}"
    )


def wait_for_workers(client: Client, patience: float = PATIENCE) -> int:
    """Wait for a worker; returns the number of workers.

    Raises:
        ClusterError: if there are none.

    >>> with connect("threads:2") as client:
    ...     wait_for_workers(client)
    2
    """
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        raise no_workers(client, patience) from None
    return worker_count(client)


def check_workers(client: Client, versions: Mapping[str, str | None], patience: float) -> None:
    """Wait for a worker, and compare the versions of the scheduler and of all workers with these.

    Raises:
        ClusterError: if there are no workers, or one process has another version.
    """
    wait_for_workers(client, patience)
    found = client.get_versions(packages=list(versions))
    needed = {name: version for name, version in versions.items() if name in DISTRIBUTIONS}
    check_versions("the scheduler", needed, found["scheduler"]["packages"])
    for worker, of_worker in sorted(found["workers"].items()):
        check_versions(f"the worker {worker}", versions, of_worker["packages"])
