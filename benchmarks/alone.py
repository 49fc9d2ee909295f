"""What a library needs for a task in a process of its own: the most memory, and the time until it is prepared.

`python alone.py TASK LIBRARY` prints both as JSON.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import environment
from harness import FAILS, NOT_OFFERED, Row, pin

STEPS = ("mlp_step", "gpt_step")
FIRST_CALLS = 3  # tinygrad compiles at the second as well
LATER_CALLS = 9
FIGURES = ("peak", "first")
PROCESSES = 3  # a figure is the median of as many, or of fewer where they take long
LONG_SECONDS = 20.0


def memory(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The most memory that a process held which did nothing but training steps."""
    return _rows("peak", "B", peers, select)


def preparation(peers: Sequence[str], select: str) -> Iterator[Row]:
    """What the first calls of a training step take more than later ones: tracing, rewriting, compiling."""
    return _rows("first", "s", peers, select)


def _rows(what: str, unit: str, peers: Sequence[str], select: str) -> Iterator[Row]:
    for task in STEPS:
        if select in task:
            ours = _measured(task, "tensorken")[what]
            if ours == NOT_OFFERED:
                print(f"{task}: this system does not tell how much memory a process held")
                continue
            if isinstance(ours, str):
                raise RuntimeError(f"{task}: ours fails")
            theirs = {peer: _measured(task, peer)[what] for peer in peers}
            yield Row(task, ours, unit, {p: x if isinstance(x, str) else ours / x for p, x in theirs.items()})


@functools.cache
def _measured(task: str, library: str) -> Mapping[str, float | str]:
    """What `measure` finds in a process, the median of some; or a word why not."""
    found: list[dict[str, Any]] = []
    start = time.monotonic()
    while len(found) < PROCESSES and time.monotonic() - start < LONG_SECONDS:
        process = [sys.executable, "-W", "ignore", __file__, task, library]
        done = subprocess.run(process, capture_output=True, text=True, encoding="utf-8", check=False)
        if done.returncode:
            print(f"{task}: {library} fails: {(done.stderr.strip() or '?').splitlines()[-1][:150]}")
            return dict.fromkeys(FIGURES, FAILS)
        *said, figures = done.stdout.splitlines()
        found.append(json.loads(figures))
        if not found[-1]:
            print(*said, sep="\n")  # that it is not installed
            return dict.fromkeys(FIGURES, "")
    return {
        what: NOT_OFFERED if found[0][what] is None else statistics.median(x[what] for x in found)
        for what in FIGURES
    }


def measure(task: str, library: str) -> dict[str, float | None]:
    """Run a task's calls in this process; the most bytes it held, and what the first took more than later ones."""
    from call import Call
    from libraries import installed
    from tasks import TASKS

    pin()
    libraries = installed([library])
    if not libraries:
        return {}
    call = Call(TASKS[task], libraries[library], compiled=True)
    seconds = []
    for _ in range(FIRST_CALLS + LATER_CALLS):
        start = _seconds()
        call()
        seconds.append(_seconds() - start)
    later, first = statistics.median(seconds[FIRST_CALLS:]), seconds[:FIRST_CALLS]
    return {"peak": peak(), "first": sum(first) - later * FIRST_CALLS}


def _seconds() -> float:
    """The CPU time of this process, and of those that it started, such as compilers."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def peak() -> float | None:
    """The most bytes of memory that this process held at once; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage tells on Linux begins with the parent's peak
        for line in status.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024.0
    if sys.platform == "darwin":
        import resource

        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return None


if __name__ == "__main__":
    environment.settle()
    figures: Any = measure(*sys.argv[1:3])
    print(json.dumps(figures))
