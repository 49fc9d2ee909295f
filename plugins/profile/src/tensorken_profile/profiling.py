"""Profile: what was recorded within a block, and what can be asked of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Any

from tensorken_core.errors import ArgumentError
from tensorken_profile import watching
from tensorken_profile.chrome import trace_events
from tensorken_profile.costs import MOVEMENT
from tensorken_profile.events import Event, Facts
from tensorken_profile.memory import Memory
from tensorken_profile.tables import Table, added_up, quantity


class Profile:
    """What backends did within a block; `print` shows a table of it.

    Attributes:
        threads: the names of the threads that it was noted in, by their numbers.
    """

    def __init__(self) -> None:
        self._facts: list[Facts] = []
        self._events: list[Event] = []
        self.threads: dict[int, str] = {}
        self._memory = Memory()
        self._began: int | None = None
        self._ended: int | None = None

    def __enter__(self) -> Profile:
        if self._began is not None:
            raise ArgumentError("profile: it has had its block; call tk.profile() again for another")
        self._began = perf_counter_ns()
        watching.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        watching.end(self)
        self._ended = perf_counter_ns()
        self._memory.close()

    def record(self, facts: Facts, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Note the facts of an event, and the memory of its results."""
        thread, (kinds, views) = facts[5], facts[9:14:4]
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        self._facts.append(facts)
        if results:
            self._memory.add(operands, results, kinds, views and facts[0] in MOVEMENT)

    # ---- what can be asked ---------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """All that was noted, in the order in which it ended; of every thread."""
        began = self._began or 0
        self._events += [Event(*facts).since(began) for facts in self._facts[len(self._events) :]]
        return self._events

    @property
    def time(self) -> float:
        """How long the block took, in seconds; until now, within it."""
        return ((self._ended or perf_counter_ns()) - (self._began or perf_counter_ns())) / 1e9

    @property
    def memory(self) -> list[tuple[float, int]]:
        """When results of the block's ops were made or died, in seconds since it began, and their bytes then."""
        return [(when / 1e9, size) for when, size in self._timeline()]

    @property
    def peak_bytes(self) -> int:
        """The most bytes that results of ops of the block had at one time."""
        return max([size for _, size in self._timeline()], default=0)

    def by_op(self) -> Table:
        """A row for each op and program, the one that took longest first."""
        return added_up("op", self.events, lambda event: event.title)

    def by_line(self) -> Table:
        """A row for each of the user's lines, the one for which most was done first."""
        return added_up("line", self.events, lambda event: str(event.line or "no line"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the events as JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing open."""
        data = trace_events(self.events, self.threads, self._timeline())
        Path(path).write_text(json.dumps(data), encoding="utf-8")

    def __str__(self) -> str:
        noted = sum([event.own for event in self.events]) / 1e9
        told = f"{quantity(noted, 's')} noted, of {quantity(self.time, 's')}"
        if len(self.threads) > 1:
            told += f", in {len(self.threads)} threads"
        told += f"; at most {quantity(self.peak_bytes, 'B')} of results were alive"
        if self._memory.untold:
            told += f", and {quantity(self._memory.untold, 'B')} more of which nothing tells until when"
        return f"{self.by_op()}\n{told}"

    def __repr__(self) -> str:
        return f"<profile of {len(self.events)} events in {quantity(self.time, 's')}>"

    def _timeline(self) -> list[tuple[int, int]]:
        return [(when - (self._began or 0), size) for when, size in self._memory.timeline()]


def profile() -> Profile:
    """Note what backends do within a block: `with tk.profile() as p:`.

    Each op is noted where a backend runs it, so once, whatever transforms there are, and when it runs: a product that
    is held back when it is used, and the sine of a thousand equal numbers as that of one.  All threads are noted.

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
