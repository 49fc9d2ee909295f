"""lifetime.growth: the memory of dropped tensors is released."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tensorken_conformance.case import Case, Failure, Measured
from tensorken_conformance.law import law
from tensorken_conformance.laws.lifetime import scenarios
from tensorken_conformance.subject import Subject

CYCLES = 1000

ROWS = {"small": 16, "large": 4096}
"""The rows of operands: 4096 are 64 KiB in float32, so that a process that keeps them grows visibly."""

TYPICAL = tuple(
    "create elementwise movement reduction gather scatter contraction order derivative batch".split()
)

ON_LARGE = ("create", "elementwise", "movement", "reduction", "contraction", "derivative", "batch")

WARM = 20
"""The number of cycles before the first measurement, in which caches fill."""

PATIENCE = 0.5
"""Seconds of a measurement after which its cycles end early."""

LEAST = {"small": 250, "large": 100}
"""The fewest cycles, however slow they are."""

TRIALS, CLEAR, PLAIN = 8, 3, 16
"""How many measurements in a row must show growth, how many if it is clear, and which multiple of the limit is clear.

A leak grows each time; caches and free lists do not, though numpy once needed 1 500 cycles.  Memory that varies (an
arena of Python that is sometimes empty) may look like growth each time, so all measurements together must show it, too.
"""


NESTED = 4
"""The number of garbage collections: each one stops tracking one level of nested tuples of numbers, which would
otherwise count as objects that are left."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of a process.

    Attributes:
        resident: bytes of the process that are in memory.
        traced: bytes that Python and numpy have allocated, if they are traced.
        objects: the number of objects that the garbage collector tracks, without frozen ones.
    """

    resident: int
    traced: int
    objects: int

    @staticmethod
    def now() -> Footprint:
        """The present footprint, after garbage collection; the list of all objects takes memory, so it is last."""
        for _ in range(NESTED):
            gc.collect()
        return Footprint(resident(), tracemalloc.get_traced_memory()[0], len(gc.get_objects()))


def resident() -> int:
    """The bytes of this process that are in memory: from /proc or the system; else their maximum so far.

    The maximum is in bytes on macOS and in units of 1024 bytes elsewhere (getrusage(2) of either).

    Raises:
        OSError: if the system does not report it.
    """
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        pass
    if sys.platform == "win32":
        return _working_set()
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def _working_set() -> int:
    """The working set of this process on Windows (GetProcessMemoryInfo and PROCESS_MEMORY_COUNTERS of psapi.h).

    Raises:
        OSError: if the call fails.
    """
    sizes = ("peak_working_set", "working_set", "a", "b", "c", "d", "pagefile", "peak_pagefile")

    class Counters(ctypes.Structure):
        _fields_ = (
            ("size", ctypes.c_uint32),
            ("faults", ctypes.c_uint32),
            *((name, ctypes.c_size_t) for name in sizes),
        )

    counters = Counters(size=ctypes.sizeof(Counters))
    process = ctypes.c_void_p(-1)  # this one
    library = ctypes.windll.psapi  # type: ignore[attr-defined]
    if not library.GetProcessMemoryInfo(process, ctypes.byref(counters), counters.size):
        raise OSError("GetProcessMemoryInfo does not report the memory of this process")
    return int(counters.working_set)


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario on small operands, the simplest one in a dtype of each kind; some on large ones, too."""
    first = [dtype.name for dtype in scenarios.dtypes(subject)[:1]]
    names = tuple(scenarios.SCENARIOS) if subject.depth == "deep" else TYPICAL
    for case in scenarios.cases("lifetime.growth", subject, tuple(ROWS), names):
        chosen = case.dtype in first or case.op == "elementwise"
        if chosen and (case.detail == "small" or case.op in ON_LARGE or subject.depth == "deep"):
            yield case


@contextmanager
def alone() -> Iterator[None]:
    """A context in which the garbage collector ignores all older objects (`gc.freeze`).

    So a footprint is as fast in a process of many objects, and counts new objects alone.  Objects that were frozen
    before stay frozen.
    """
    before = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not before:
            gc.unfreeze()


def cycles(work: Callable[[int], None], count: int, least: int) -> int:
    """Run cycles; returns how many ran before patience ended."""
    start = time.perf_counter()
    for number in range(count):
        work(number)
        if number + 1 >= least and time.perf_counter() - start > PATIENCE:
            return number + 1
    return count


@law("lifetime.growth", cases, level=4)
def growth(subject: Subject, case: Case) -> Measured:
    """Creating, computing and dropping tensors a thousand times does not grow the process.

    Every second result is read.  A cycle may leave, on average, at most 4 bytes allocated by Python and numpy, a
    fiftieth of an object that the garbage collector tracks, and a sixteenth of a large operand of the memory of the
    process.  It is growth if eight measurements in a row show it, or three that find 16 times as much, and all of them
    together.  Slow cycles end early.  The figures are those of the last measurement.
    """
    operands = scenarios.values(subject, case, rows=ROWS[case.detail])
    right = scenarios.expected(case, operands)
    scenarios.agree(subject, case, scenarios.run(subject, case, operands), right, "in the first cycle")

    def work(number: int) -> None:
        result = scenarios.run(subject, case, operands)
        if number % 2:
            result.flat()

    small = case.detail == "small"
    tracing = not small or tracemalloc.is_tracing()  # large operands are visible in the process itself
    if not tracing:
        tracemalloc.start()
    try:
        with alone():  # before the warm cycles, so that replaced objects are no growth
            cycles(work, WARM, WARM)
            Footprint.now()
            found = whole = measured(work, case.detail, operands[0].nbytes)
            trials, plain = 1, int(found.excess >= PLAIN)
            while min(found.excess, whole.excess) >= 1 and trials < TRIALS and plain < CLEAR:
                found = measured(work, case.detail, operands[0].nbytes)
                whole = replace(found, count=whole.count + found.count, before=whole.before)
                trials, plain = trials + 1, plain + 1 if found.excess >= PLAIN else 0
    finally:
        if not tracing:
            tracemalloc.stop()
    if min(found.excess, whole.excess) >= 1:
        raise Failure(f"{case.op} of {case.dtype}: {found}; so did each of {trials} measurements")
    return Measured(figures=found.figures)


@dataclass(frozen=True, slots=True)
class Growth:
    """The memory that cycles leave.

    Attributes:
        count: the number of cycles.
        before: the footprint before them.
        after: the footprint after them.
        size: of the operands, a key of ROWS.
        unit: bytes of a large operand.
    """

    count: int
    before: Footprint
    after: Footprint
    size: str
    unit: int

    @property
    def left(self) -> dict[str, int]:
        """The memory that is left, by kind."""
        left = {"objects tracked": self.after.objects - self.before.objects}
        if self.size == "small":
            return left | {"bytes allocated": self.after.traced - self.before.traced}
        return left | {"bytes resident": self.after.resident - self.before.resident}

    @property
    def allowed(self) -> dict[str, float]:
        """The limits of the memory that is left, by kind."""
        of_each = {"objects tracked": 1 / 50, "bytes allocated": 4.0, "bytes resident": self.unit / 16}
        return {name: of_each[name] * self.count for name in self.left}

    @property
    def worst(self) -> str:
        """The kind of which the largest multiple of its limit is left."""
        return max(self.left, key=lambda name: self.left[name] / self.allowed[name])

    @property
    def excess(self) -> float:
        """The largest multiple of a limit that is left."""
        return self.left[self.worst] / self.allowed[self.worst]

    @property
    def figures(self) -> dict[str, float]:
        """The figures for the report."""
        return {"cycles": float(self.count), **{name: float(left) for name, left in self.left.items()}}

    def __str__(self) -> str:
        left, allowed = self.left[self.worst], self.allowed[self.worst]
        return f"{self.count} cycles leave {left} {self.worst}, expected below {allowed:.0f}"


def measured(work: Callable[[int], None], size: str, unit: int) -> Growth:
    """The growth of some cycles on operands of `unit` bytes."""
    before = Footprint.now()
    count = cycles(work, CYCLES, LEAST[size])
    return Growth(count, before, Footprint.now(), size, unit)
