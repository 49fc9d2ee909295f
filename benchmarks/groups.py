"""Time the collectives of groups of two members: `python benchmarks/groups.py threads`, or `gloo`.

`mpirun -n 2 python benchmarks/groups.py mpi` times MPI.  It prints the median wall time of a `psum` of one number, and
of 1 MB, with the comparison of the members' calls, and without it.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorken as tk
from tensorken.distributed import Group, join, run_threads

REPETITIONS = 200
SIZES = {"a number": 1, "1 MB": 1 << 18}


def milliseconds(call: Callable[[], Any]) -> float:
    """The median time of a call."""
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def measure(group: Group) -> list[str]:
    """A line for each size."""
    psum = tk.spread(lambda x: tk.psum(x, "workers"), group)
    lines = []
    for name, size in SIZES.items():
        array = np.ones(size, "float32")
        x = tk.tensor(array)
        psum(x)
        whole = milliseconds(lambda x=x: psum(x))  # type: ignore[misc]
        alone = milliseconds(lambda array=array: group.all_reduce(array, "sum"))  # type: ignore[misc]
        lines.append(f"psum of {name}: {whole:.2f} ms, the exchange alone {alone:.2f} ms")
    return lines


def main(kind: str) -> None:
    """Start the members that are not there yet, and print what the first one measures."""
    if kind == "threads":
        lines, _ = run_threads(measure, 2)
    else:
        member = None
        if kind == "gloo" and "RANK" not in os.environ:
            with socket.socket() as server:
                server.bind(("127.0.0.1", 0))
                port = str(server.getsockname()[1])
            os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            member = subprocess.Popen([sys.executable, __file__, kind], env={**os.environ, "RANK": "1"})
        group = join(kind)
        lines = measure(group)
        if member is not None:
            member.wait()
        if group.rank:
            return
    print(f"{kind}, 2 members", *lines, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "threads")
