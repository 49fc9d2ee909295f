"""The profile of a block: recording and queries."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Any

from tensorken.programs.compiled import Kernels, kernels_of
from tensorken.programs.costs import MOVEMENT_OPS
from tensorken.programs.execution import PROGRAM
from tensorken.programs.names import unique_names
from tensorken_core.errors import ArgumentError
from tensorken_profile import instrumentation
from tensorken_profile.chrome import trace_events
from tensorken_profile.events import Event, EventFields
from tensorken_profile.memory import Memory
from tensorken_profile.tables import Table, aggregate, format_quantity


class Profile:
    """The recorded operations of all backends in a block; `print` shows a table.

    Attributes:
        threads: the names of the recorded threads by their numbers.
    """

    def __init__(self) -> None:
        self._fields: list[EventFields] = []
        self._events: list[Event] = []
        self.threads: dict[int, str] = {}
        self._memory = Memory()
        self._start: int | None = None
        self._end: int | None = None

    def __enter__(self) -> Profile:
        if self._start is not None:
            raise ArgumentError("profile: this profile was already used; call tk.profile() for another")
        self._start = perf_counter_ns()
        instrumentation.start(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        instrumentation.stop(self)
        self._end = perf_counter_ns()
        self._memory.close()

    def record(self, fields: EventFields, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Record an event, and track the memory of its results."""
        thread, (shape_dtypes, views) = fields[5], fields[9:14:4]
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        self._fields.append(fields)
        if results:
            self._memory.add(operands, results, shape_dtypes, views and fields[0] in MOVEMENT_OPS)

    # ---- queries ---------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """The events of all threads, in the order in which they ended."""
        start = self._start or 0
        self._events += [Event(*fields).relative_to(start) for fields in self._fields[len(self._events) :]]
        return self._events

    @property
    def time(self) -> float:
        """The duration of the block in seconds; within the block, until now."""
        return ((self._end or perf_counter_ns()) - (self._start or perf_counter_ns())) / 1e9

    @property
    def memory(self) -> list[tuple[float, int]]:
        """The memory of results of the block's ops, as pairs of seconds since the start and live bytes from then on."""
        return [(when / 1e9, size) for when, size in self._timeline()]

    @property
    def peak_bytes(self) -> int:
        """The peak memory of results of the block's ops."""
        return max([size for _, size in self._timeline()], default=0)

    def by_op(self) -> Table:
        """A row for each op and program, sorted by time."""
        return aggregate("op", self.events, lambda event: event.title)

    def by_line(self) -> Table:
        """A row for each of the user's lines, sorted by time."""
        return aggregate("line", self.events, lambda event: str(event.line or "no line"))

    def kernels(self) -> dict[str, Kernels]:
        """The kernels of the compiled programs that ran, by the names of the programs, if their compilers show them.

        A compiler may make one function of all kernels of a program, so that there is no time for each.
        """
        programs = dict.fromkeys([event.params[0] for event in self.events if event.op is PROGRAM])
        kernels_by_program = {program: kernels_of(program) for program in programs}
        names = unique_names(
            [program for program, kernels in kernels_by_program.items() if kernels is not None]
        )
        return {
            names[program]: kernels for program, kernels in kernels_by_program.items() if kernels is not None
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the events as JSON for Perfetto (https://ui.perfetto.dev) and chrome://tracing."""
        data = trace_events(self.events, self.threads, self._timeline())
        Path(path).write_text(json.dumps(data), encoding="utf-8")

    def __str__(self) -> str:
        recorded = sum([event.self_time for event in self.events]) / 1e9
        text = f"{format_quantity(recorded, 's')} recorded of {format_quantity(self.time, 's')}"
        if len(self.threads) > 1:
            text += f", in {len(self.threads)} threads"
        text += f"; peak memory of results {format_quantity(self.peak_bytes, 'B')}"
        if self._memory.untracked:
            text += f", and {format_quantity(self._memory.untracked, 'B')} that cannot be tracked"
        return f"{self.by_op()}\n{text}"

    def __repr__(self) -> str:
        return f"<profile of {len(self.events)} events in {format_quantity(self.time, 's')}>"

    def _timeline(self) -> list[tuple[int, int]]:
        return [(when - (self._start or 0), size) for when, size in self._memory.timeline()]


def profile() -> Profile:
    """Profile the backends within a block: `with tk.profile() as p:`.

    Each op is recorded once, when a backend runs it, under any transforms: a deferred product when it is used, the
    sine of a thousand equal numbers as the sine of one number. All threads are recorded.

    >>> import tensorken as tk
    >>> x = tk.arange(1000, dtype="float32")
    >>> with tk.profile() as p:
    ...     y = tk.sin(x) + x
    >>> for row in sorted(p.by_op(), key=lambda row: row.name):
    ...     print(row.name, row.calls, row.bytes, row.flop)
    add 1 12000 1000
    sin 1 8000 1000
    """
    return Profile()
