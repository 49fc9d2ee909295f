"""Workers are killed while they compute and while they load: trainings end with the bits of one process."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import tensorken as tk
from tensorken_core import tree
from tensorken_dask import InProcess, Shards, connect, value_and_grad

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed by SIGKILL"),
]

SIZES = (16, 24, 10)
SHARDS = 4
WORKERS = 3


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A cluster of processes; each that dies is started again."""
    with connect(f"local:{WORKERS}") as client:
        yield client


def loader(seed: int, folder: Path | None) -> Callable[[int], Any]:
    """A function that loads a shard; with a folder it notes the process there, and the first time takes a while."""

    def load(number: int) -> Any:
        if folder is not None:
            slowly = not any(folder.iterdir())
            (folder / f"{os.getpid()} {number} {time.time_ns()}").touch()
            time.sleep(2.0 * slowly)
        rng = np.random.default_rng([seed, number])
        return rng.normal(size=(64, SIZES[0])).astype("f"), rng.integers(0, SIZES[-1], 64).astype("i4")

    return load


def loss(parameters: Any, shard: Any) -> Any:
    x, labels = shard
    for w, b in parameters:
        x = tk.tanh(x @ w + b)
    return -tk.take_along_axis(tk.log_softmax(x, -1), labels.reshape(-1, 1), 1).sum()


def train(
    shards: Any, seed: int, steps: int, before: Callable[[int], object] = lambda step: None
) -> list[bytes]:
    """The bits of all losses and of the parameters after some steps of gradient descent."""
    keys = tk.random.split(tk.random.key(seed), 2)
    parameters: Any = [
        (tk.random.normal(key, size) * 0.5, tk.zeros(size[1]))
        for key, size in zip(keys, itertools.pairwise(SIZES), strict=True)
    ]
    step, losses = value_and_grad(loss, shards), []
    for number in range(steps):
        before(number)
        value, gradient = step(parameters)
        parameters = tree.map(lambda p, g: p - 0.01 * g, parameters, gradient)
        losses.append(value)
    return [np.asarray(x).tobytes() for x in (*losses, *tree.leaves(parameters))]


def wait_for_all(client: Client) -> None:
    """Wait until all workers run.  Dask starts those again that die later, not those that die as they start."""
    client.wait_for_workers(WORKERS, timeout=60)
    while not all(nanny.process.status.name == "running" for nanny in workers_of(client)):
        time.sleep(0.01)


def workers_of(client: Client) -> list[Any]:
    """The parents of the processes."""
    return list(client.cluster.workers.values())


def kill(client: Client, count: int, rng: random.Random) -> list[int]:
    """Kill workers chosen at random, at once; returns their processes."""
    processes = [nanny.pid for nanny in workers_of(client) if nanny.process.status.name == "running"]
    chosen = rng.sample(sorted(processes), min(count, len(processes)))
    for process in chosen:
        os.kill(process, signal.SIGKILL)
    return chosen


def kill_first_that_loads(folder: Path) -> list[int]:
    """Wait until a worker loads a shard, and kill it."""
    while not (notes := list(folder.iterdir())):
        time.sleep(0.01)
    process = int(notes[0].name.split()[0])
    os.kill(process, signal.SIGKILL)
    return [process]


def disturbed(
    client: Client, folder: Path, seed: int, steps: int, kills: dict[int, int]
) -> tuple[list[bytes], int]:
    """A training during which workers are killed: one while it loads, and `kills[step]` in some steps.

    Returns its bits, and the number of killed processes.
    """
    rng, killed = random.Random(seed), []
    wait_for_all(client)
    threads = [threading.Thread(target=lambda: killed.extend(kill_first_that_loads(folder)))]

    def within_step(step: int) -> None:
        if step in kills:
            wait_for_all(client)
            wait = rng.uniform(0.0, 0.05)

            def later() -> None:
                time.sleep(wait)
                killed.extend(kill(client, kills[step], rng))

            threads.append(threading.Thread(target=later))
            threads[-1].start()

    threads[0].start()
    bits = train(Shards(client, loader(seed, folder), SHARDS), seed, steps, within_step)
    for thread in threads:
        thread.join()
    return bits, len(killed)


def test_killed_workers_change_no_bit(client: Client, tmp_path: Path) -> None:
    """One while it loads, then two of three at once, then all: no worker that loaded a shard is left."""
    expected = train(InProcess(loader(0, None), SHARDS), 0, 12)
    assert len(set(expected)) == 12 + 4
    found, killed = disturbed(client, tmp_path, 0, 12, {4: 2, 8: WORKERS})
    assert killed == 1 + 2 + WORKERS
    assert found == expected
    loads = [int(path.name.split()[1]) for path in tmp_path.iterdir()]
    assert set(loads) == set(range(SHARDS)) and len(loads) > SHARDS  # some again


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 6))
def test_twenty_killed_workers_change_no_bit(client: Client, tmp_path: Path, seed: int) -> None:
    expected = train(InProcess(loader(seed, None), SHARDS), seed, 40)
    found, killed = disturbed(client, tmp_path, seed, 40, {8: 2, 20: 1, 30: WORKERS if seed == 5 else 1})
    assert killed >= 5
    assert found == expected
