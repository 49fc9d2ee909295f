"""Measure a task in its own process: the peak memory of the process, and the preparation time of the first calls.

`python isolated.py TASK LIBRARY` prints both as JSON.
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
from harness import FAILS, NOT_SUPPORTED, Row, pin

STEPS = ("mlp_step", "gpt_step")
FIRST_CALLS = 3  # tinygrad compiles in the second call, too
LATER_CALLS = 9
FIGURES = ("peak", "first")
PROCESSES = 3  # a figure is the median over as many processes, or fewer if they are slow
LONG_SECONDS = 20.0


def memory(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The peak memory of a process that only runs training steps."""
    return _rows("peak", "B", peers, select)


def preparation(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The extra time of the first calls of a training step: tracing, rewriting, compiling."""
    return _rows("first", "s", peers, select)


def _rows(what: str, unit: str, peers: Sequence[str], select: str) -> Iterator[Row]:
    for task in STEPS:
        if select in task:
            ours = _measured(task, "tensorken")[what]
            if ours == NOT_SUPPORTED:
                print(f"{task}: this system does not report the peak memory of a process")
                continue
            if isinstance(ours, str):
                raise RuntimeError(f"{task}: Tensorken fails")
            theirs = {peer: _measured(task, peer)[what] for peer in peers}
            yield Row(task, ours, unit, {p: x if isinstance(x, str) else ours / x for p, x in theirs.items()})


@functools.cache
def _measured(task: str, library: str) -> Mapping[str, float | str]:
    """The figures of `measure` in new processes, as medians; or a word why there are none."""
    found: list[dict[str, Any]] = []
    start = time.monotonic()
    while len(found) < PROCESSES and time.monotonic() - start < LONG_SECONDS:
        process = [sys.executable, "-W", "ignore", __file__, task, library]
        done = subprocess.run(process, capture_output=True, text=True, encoding="utf-8", check=False)
        if done.returncode:
            print(f"{task}: {library} fails: {(done.stderr.strip() or '?').splitlines()[-1][:150]}")
            return dict.fromkeys(FIGURES, FAILS)
        *messages, figures = done.stdout.splitlines()
        found.append(json.loads(figures))
        if not found[-1]:
            print(*messages, sep="\n")  # that the library is not installed
            return dict.fromkeys(FIGURES, "")
    return {
        what: NOT_SUPPORTED if found[0][what] is None else statistics.median(x[what] for x in found)
        for what in FIGURES
    }


def measure(task: str, library: str) -> dict[str, float | None]:
    """Run calls of a task in this process; returns its peak memory in bytes, and the extra time of the first calls."""
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
    """The CPU time of this process and its children, such as compilers."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def peak() -> float | None:
    """The peak memory of this process in bytes; None if the system does not report it."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, getrusage includes the parent's peak
        for line in status.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024.0
    if sys.platform == "darwin":
        import resource

        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return None


if __name__ == "__main__":
    environment.configure()
    figures: Any = measure(*sys.argv[1:3])
    print(json.dumps(figures))
