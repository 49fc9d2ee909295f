"""lifetime.growth: what is dropped is given back."""

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
"""How many rows the operands have: 4096 are 64 KiB in float32, so that a process that keeps them grows visibly."""

TYPICAL = (
    "create",
    "elementwise",
    "movement",
    "reduction",
    "gather",
    "scatter",
    "contraction",
    "order",
    "derivative",
    "batch",
)

ON_LARGE = ("create", "elementwise", "movement", "reduction", "contraction", "derivative", "batch")

WARM = 20
"""Cycles before anything is measured: caches fill, and lists take their lengths."""

PATIENCE = 0.5
"""Seconds of a measurement after which its cycles end early."""

LEAST = {"small": 250, "large": 100}
"""How many cycles there are however slow they are."""

TRIALS, CLEAR, PLAIN = 8, 3, 16
"""How often it is measured before growth counts, and how often if it is plain: so many times what is allowed.

What leaks grows each time; what caches and free lists take does not, though it took numpy 1 500 cycles once.  What
comes and goes (an arena of Python's that is empty at the one moment and not at the other) may look like growth each
time, so all measurements together must show it, too.
"""


NESTED = 4
"""How often garbage is collected: the first time ends the tracking of tuples of numbers, the next that of tuples of
those, which else would look like objects that are left."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a process holds.

    Attributes:
        resident: bytes of the process that are in memory.
        traced: bytes that Python and numpy have allocated, if they are traced.
        objects: how many objects the garbage collector tracks, beside those that it leaves alone.
    """

    resident: int
    traced: int
    objects: int

    @staticmethod
    def now() -> Footprint:
        """As it is, after all garbage is collected; the list of all objects takes memory itself, so it comes last."""
        for _ in range(NESTED):
            gc.collect()
        return Footprint(resident(), tracemalloc.get_traced_memory()[0], len(gc.get_objects()))


def resident() -> int:
    """The bytes of this process that are in memory: from /proc, or as the system tells; else the most so far.

    The most so far is in bytes on macOS and in units of 1024 bytes elsewhere (getrusage(2) of either).

    Raises:
        OSError: if the system does not tell.
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
        OSError: if it is not told: the call returns 0.
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
        raise OSError("GetProcessMemoryInfo does not tell how much memory this process has")
    return int(counters.working_set)


def cases(subject: Subject) -> Iterator[Case]:
    """Each scenario on small operands, the simplest of them in each kind of dtype; some on large ones, too."""
    first = [dtype.name for dtype in scenarios.dtypes(subject)[:1]]
    names = tuple(scenarios.SCENARIOS) if subject.depth == "deep" else TYPICAL
    for case in scenarios.cases("lifetime.growth", subject, tuple(ROWS), names):
        chosen = case.dtype in first or case.op == "elementwise"
        if chosen and (case.detail == "small" or case.op in ON_LARGE or subject.depth == "deep"):
            yield case


@contextmanager
def alone() -> Iterator[None]:
    """While it lasts, the garbage collector leaves all that there is at its begin alone: it looks at what comes then.

    So a footprint takes no longer in a process of many objects, and is that of what was made meanwhile.  Where somebody
    has it leave objects alone already, it goes on with that.
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
    """Run cycles; returns how many there were before patience ended."""
    start = time.perf_counter()
    for number in range(count):
        work(number)
        if number + 1 >= least and time.perf_counter() - start > PATIENCE:
            return number + 1
    return count


@law("lifetime.growth", cases, level=4)
def growth(subject: Subject, case: Case) -> Measured:
    """A thousand times creating, computing and dropping leaves the process as it was.

    Every second result is read.  A cycle may leave behind, on average, no more than 4 bytes of what Python and numpy
    allocate, a fiftieth of an object that the garbage collector tracks, and a sixteenth of a large operand of the
    process's memory.  Growth counts if eight measurements in a row show it, or three that find 16 times as much, and
    all of them together.  Slow cycles end early.  The figures tell what was measured last.
    """
    operands = scenarios.values(subject, case, rows=ROWS[case.detail])
    right = scenarios.expected(case, operands)
    scenarios.agree(subject, case, scenarios.run(subject, case, operands), right, "in the first cycle")

    def work(number: int) -> None:
        result = scenarios.run(subject, case, operands)
        if number % 2:
            result.flat()

    small = case.detail == "small"
    tracing = not small or tracemalloc.is_tracing()  # large operands show in the process itself
    if not tracing:
        tracemalloc.start()
    try:
        with alone():  # before the warm cycles: what comes in the place of older objects is no growth
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
    """What cycles leave behind.

    Attributes:
        count: how many cycles there were.
        before: what the process held then.
        after: what it holds now.
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
        """How much of what is left."""
        left = {"objects tracked": self.after.objects - self.before.objects}
        if self.size == "small":
            return left | {"bytes allocated": self.after.traced - self.before.traced}
        return left | {"bytes resident": self.after.resident - self.before.resident}

    @property
    def allowed(self) -> dict[str, float]:
        """How much of it is allowed."""
        of_each = {"objects tracked": 1 / 50, "bytes allocated": 4.0, "bytes resident": self.unit / 16}
        return {name: of_each[name] * self.count for name in self.left}

    @property
    def worst(self) -> str:
        """Of what the most is left, as a multiple of what is allowed."""
        return max(self.left, key=lambda name: self.left[name] / self.allowed[name])

    @property
    def excess(self) -> float:
        """That multiple."""
        return self.left[self.worst] / self.allowed[self.worst]

    @property
    def figures(self) -> dict[str, float]:
        """What a report tells."""
        return {"cycles": float(self.count), **{name: float(left) for name, left in self.left.items()}}

    def __str__(self) -> str:
        left, allowed = self.left[self.worst], self.allowed[self.worst]
        return f"{self.count} cycles leave {left} {self.worst}, expected below {allowed:.0f}"


def measured(work: Callable[[int], None], size: str, unit: int) -> Growth:
    """What some cycles on operands of `unit` bytes leave behind."""
    before = Footprint.now()
    count = cycles(work, CYCLES, LEAST[size])
    return Growth(count, before, Footprint.now(), size, unit)
