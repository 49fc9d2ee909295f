"""The cost of a step on a dask cluster in which the shards take no time: CPU time of driver, scheduler and workers.

The scheduler is a process, and all workers are in another one, one thread each.

`python cluster.py ADDRESS COUNT` runs that many workers of a scheduler.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import environment
from harness import Row, unpinned

import tensorken as tk

SHARDS = 4
TASKS = 60  # of a round, or a few more
ROUNDS = 5
SIZES = (64, 32, 10)
FEW, MANY = 4, (16, 64)
OTHER_TASKS = 2  # of a step: one takes the arguments, one adds
SECONDS = 60.0  # to start


@dataclass(frozen=True, slots=True)
class Seconds:
    """The CPU time of a step, by process; the least of all rounds."""

    driver: float
    scheduler: float
    workers: float


def step_costs(_: Sequence[str], select: str) -> Iterator[Row]:
    """A step of 4 shards, and the scheduler's part of a task with more and more workers and as many shards."""
    if importlib.util.find_spec("tensorken_dask") is None:
        print("cluster: tensorken-dask is not installed")
        return
    if select in "step_of_4_shards":
        with unpinned():
            costs = _measured(SHARDS)
        total = costs.driver + costs.scheduler + costs.workers
        yield Row("step_of_4_shards", costs.driver + costs.scheduler, "s", {})
        yield Row("step_of_4_shards_a_task", total / (SHARDS + OTHER_TASKS), "s", {})
    if select in "scheduler_a_task":
        with unpinned():
            few, *many = [_measured(count).scheduler / (count + OTHER_TASKS) for count in (FEW, *MANY)]
        yield Row(f"scheduler_a_task_of_{FEW}_workers", few, "s", {})
        for count, seconds in zip(MANY, many, strict=True):
            yield Row(f"scheduler_a_task_of_{count}_workers", seconds, "s", {"few": seconds / few})


def _measured(count: int) -> Seconds:
    """A step of as many shards as workers."""
    from tensorken_dask import Shards, value_and_grad

    shapes = [shape for n, m in itertools.pairwise(SIZES) for shape in ((n, m), (m,))]
    parameters = [tk.ones(shape) for shape in shapes]
    with _cluster(count) as client:
        step = value_and_grad(_loss, Shards(client, float, count))
        steps, rounds = -(-TASKS // count), []
        for _ in range(1 + ROUNDS):
            before = _times(client)
            for _ in range(steps):
                step(parameters)
            rounds.append([(b - a) / steps for a, b in zip(before, _times(client), strict=True)])
    return Seconds(*map(min, zip(*rounds, strict=True)))


def _loss(parameters: Any, shard: Any) -> Any:
    first, *rest = parameters
    return first[0, 0] * shard + sum(x.sum() * 0.0 for x in rest)


def _times(client: Any) -> list[float]:
    """The CPU time so far of the driver, the scheduler and the workers."""
    worker = next(iter(client.run(time.process_time).values()))  # all workers are in one process
    return [time.process_time(), client.run_on_scheduler(time.process_time), worker]


@contextmanager
def _cluster(count: int) -> Iterator[Any]:
    """A client of a scheduler with as many workers."""
    from distributed import Client

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        options = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-dashboard"]
        with _process("-m", "dask", "scheduler", *options):
            start = time.monotonic()
            while not file.exists() and time.monotonic() - start < SECONDS:
                time.sleep(0.05)
            with (
                Client(scheduler_file=str(file)) as client,
                _process(__file__, client.scheduler.address, str(count)),
            ):
                client.wait_for_workers(count, timeout=SECONDS)
                yield client


@contextmanager
def _process(*arguments: str) -> Iterator[None]:
    """A process of Python, killed at the end."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


async def _work(address: str, count: int) -> None:
    from distributed import Worker

    workers = [Worker(address, nthreads=1, dashboard=False) for _ in range(count)]
    await asyncio.gather(*workers)
    await asyncio.gather(*[worker.finished() for worker in workers])


if __name__ == "__main__":
    environment.configure()
    asyncio.run(_work(sys.argv[1], int(sys.argv[2])))
