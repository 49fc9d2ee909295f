"""Export events in the Trace Event Format, for Perfetto and chrome://tracing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorken.programs.costs import ShapeDtype
from tensorken_profile.events import Event


def trace_events(
    events: Iterable[Event], threads: Mapping[int, str], memory: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """The trace as a JSON object.

    Args:
        events: exported as complete events (`"ph": "X"`), in microseconds.
        threads: the names of the threads by number.
        memory: pairs of nanoseconds and live bytes from then on, exported as counter events (`"ph": "C"`).
    """
    process = os.getpid()
    entries: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "tensorken"}}
    ]
    for thread, name in threads.items():
        named = {"ph": "M", "name": "thread_name", "pid": process, "tid": thread}
        entries.append({**named, "args": {"name": name}})
    for event in sorted(events, key=lambda event: (event.start, -event.duration)):
        entries.append(
            {
                "ph": "X",
                "name": event.title,
                "cat": event.category,
                "ts": event.start / 1000,
                "dur": event.duration / 1000,
                "pid": process,
                "tid": event.thread,
                "args": _arguments(event),
            }
        )
    for when, size in memory:
        counted = {"ph": "C", "name": "live results", "pid": process, "tid": 0}
        entries.append({**counted, "ts": when / 1000, "args": {"bytes": size}})
    entries.sort(key=lambda entry: entry.get("ts", -1.0))  # metadata, which have no time, come first
    return {"traceEvents": entries, "displayTimeUnit": "ms"}


def _arguments(event: Event) -> dict[str, Any]:
    """The details of an event that the viewer shows."""
    details = {
        "op": event.op.name if event.op is not None else event.name,
        "operands": [_type_name(x) for x in event.operands],
        "results": [_type_name(x) for x in event.results],
        "self_us": event.self_time / 1000,
        "flop": event.flop,
        "bytes": event.bytes,
        "line": str(event.line) if event.line is not None else None,
        "derivative_of": event.derivative_of,
    }
    return {key: value for key, value in details.items() if value is not None}


def _type_name(x: ShapeDtype) -> str:
    shape, dtype = x
    return f"{dtype.name}{list(shape)}"
