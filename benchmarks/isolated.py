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
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import environment
from compilers import MACHINE_CODE, NONE, compilers, missing
from harness import FAILS, NOT_SUPPORTED, Row, pin

STEPS = ("mlp_step", "gpt_step")
FIRST_CALLS = 3  # tinygrad compiles in the second call, too
LATER_CALLS = 9
FIGURES = ("peak", "first")
PROCESSES = 3  # a figure is the median over as many processes, or fewer if they are slow
LONG_SECONDS = 20.0


def memory(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The peak memory of a process that only runs training steps."""
    return _rows("peak", "B", peers, select, NONE)


def preparation(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The extra time of the first calls of a training step: tracing, rewriting, compiling."""
    return _rows("first", "s", peers, select, NONE)


def machine_code_memory(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The peak memory of such a process with the compiler for CPUs."""
    return _rows("peak", "B", peers, select, MACHINE_CODE)


def machine_code_preparation(peers: Sequence[str], select: str) -> Iterator[Row]:
    """The extra time of the first calls with the compiler for CPUs: without its cache, and from its cache."""
    yield from _rows("first", "s", peers, select, MACHINE_CODE)
    with tempfile.TemporaryDirectory() as cache:
        for task in STEPS:
            _run(task, "tensorken", MACHINE_CODE, cache)
        yield from _rows("first", "s", (), select, MACHINE_CODE, cache, "_cached")


def _rows(
    figure: str,
    unit: str,
    peers: Sequence[str],
    select: str,
    compiler: str,
    cache: str = "0",
    suffix: str = "",
) -> Iterator[Row]:
    with compilers(compiler):
        if message := missing():
            print(message)
            return
    for task in STEPS:
        if select in task:
            ours = _measured(task, "tensorken", compiler, cache)[figure]
            if ours == NOT_SUPPORTED:
                print(f"{task}: this system does not report the peak memory of a process")
                continue
            if isinstance(ours, str):
                raise RuntimeError(f"{task}: Tensorken fails")
            theirs = {peer: _measured(task, peer)[figure] for peer in peers}
            ratios = {p: x if isinstance(x, str) else ours / x for p, x in theirs.items()}
            yield Row(task + suffix, ours, unit, ratios)


@functools.cache
def _measured(task: str, library: str, compiler: str = NONE, cache: str = "0") -> Mapping[str, float | str]:
    """The figures of `measure` in new processes, as medians; or a word why there are none."""
    found: list[dict[str, Any]] = []
    start = time.monotonic()
    while len(found) < PROCESSES and time.monotonic() - start < LONG_SECONDS:
        done = _run(task, library, compiler, cache)
        if done.returncode:
            print(f"{task}: {library} fails: {(done.stderr.strip() or '?').splitlines()[-1][:150]}")
            return dict.fromkeys(FIGURES, FAILS)
        *messages, figures = done.stdout.splitlines()
        found.append(json.loads(figures))
        if not found[-1]:
            print(*messages, sep="\n")  # that the library is not installed
            return dict.fromkeys(FIGURES, "")
    return {
        name: NOT_SUPPORTED if found[0][name] is None else statistics.median(x[name] for x in found)
        for name in FIGURES
    }


def _run(task: str, library: str, compiler: str, cache: str) -> subprocess.CompletedProcess[str]:
    """Run `measure` in a new process, with this compiler and this folder of machine code, or "0" for none."""
    process = [sys.executable, "-W", "ignore", __file__, task, library]
    with compilers(compiler):
        settings = {**os.environ, "TENSORKEN_LLVM_CACHE": cache}
        return subprocess.run(
            process, capture_output=True, text=True, encoding="utf-8", check=False, env=settings
        )


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
