"""Stopwatch: how long a worker process has computed, and how long it has waited, since its last message.

A limit of wall time would fail a process that a busy machine does not run.  So the limit is on the CPU time of the
process.  A process that waits, for a lock that is never released, say, uses no CPU time: idle time counts as well, up
to a longer limit.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

POLL = 0.5
"""The seconds between two looks at a process."""

IDLE = 0.01
"""A process that computes for less than this share of the time is waiting."""

MOSTLY_IDLE = 0.1
"""The same for the sum over many cases."""

LONGER = 2.0
"""The limit of waiting, in limits of computing."""


class Stopwatch:
    """Measures one process.

    Args:
        pid: the id of the process.
        cpu: returns the CPU seconds of a process, of all its threads; None if they are unknown.

    Attributes:
        computed: the seconds in which the process has computed, at most the wall time.
        waited: the seconds in which it has not.
        total: the seconds of all cases, with those of waiting; `restart` does not reset it.
    """

    def __init__(self, pid: int, cpu: Callable[[int], float | None] | None = None) -> None:
        self._pid, self._cpu = pid, cpu or cpu_seconds
        self.computed = self.waited = self.total = 0.0
        self._before = self._now()

    def _now(self) -> tuple[float, float | None]:
        return time.monotonic(), self._cpu(self._pid)

    def look(self) -> None:
        """Count the time since the last look, at most two polls.

        If more time has passed, this process did not run, and perhaps the other one did not either.
        """
        (then, cpu_then), self._before = self._before, self._now()
        now, cpu_now = self._before
        passed = min(now - then, 2 * POLL)
        share = 1.0
        if cpu_then is not None and cpu_now is not None:
            share = min((cpu_now - cpu_then) / max(now - then, 1e-9), 1.0)
        self.computed += share * passed
        self.waited += passed if share < IDLE else 0.0
        self.total += passed if share < MOSTLY_IDLE else share * passed

    @property
    def due(self) -> bool:
        """Whether it is time for the next look."""
        return time.monotonic() - self._before[0] >= POLL

    def restart(self) -> None:
        """Start again, after a message of the process."""
        self.computed = self.waited = 0.0

    def verdict(self, limit: float) -> str:
        """Why the process counts as hanging; empty if it does not.

        It may compute for `limit` seconds without a message, and wait for LONGER times as long.
        """
        if self.computed >= limit:
            return f"no result within {limit:g} s of computing"
        if self.waited >= LONGER * limit:
            return f"no result within {LONGER * limit:g} s of waiting"
        return ""


def cpu_seconds(pid: int) -> float | None:
    """The CPU seconds of a process, of all its threads; None if they are unknown."""
    platform: str = sys.platform  # not narrowed by a type checker, which sees one platform
    if platform == "win32":
        return _of_windows(pid)
    if platform == "linux":
        try:
            return time.clock_gettime(~pid << 3 | 2)  # the clock of another process: clock_getcpuclockid(3)
        except OSError:
            return None
    return _by_ps(pid)


def _by_ps(pid: int) -> float | None:
    """The time that POSIX's ps shows: [[days-]hours:]minutes:seconds."""
    try:
        shown = subprocess.run(
            ["ps", "-o", "time=", "-p", str(pid)],
            capture_output=True,
            encoding="ascii",
            timeout=5,
            check=True,
        ).stdout.strip()
        return parsed(shown)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def parsed(shown: str) -> float:
    """Seconds from what ps shows.

    >>> parsed("00:00:07"), parsed("0:01.25"), parsed("1-02:00:00")
    (7.0, 1.25, 93600.0)
    """
    days, _, rest = shown.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = 60.0 * seconds + float(part)
    return seconds + 86_400.0 * int(days or 0)


def _of_windows(pid: int) -> float | None:
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return None
    try:
        times = [ctypes.c_uint64() for _ in range(4)]  # creation, exit, kernel, user; in units of 100 ns
        if not kernel.GetProcessTimes(ctypes.c_void_p(handle), *map(ctypes.byref, times)):
            return None
        return (times[2].value + times[3].value) * 1e-7
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))
