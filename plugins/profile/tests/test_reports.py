"""Printed tables and exported traces."""

from __future__ import annotations

import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from tensorken_profile import Row, Table
from tensorken_profile.tables import format_quantity


def saved(path: Path) -> list[dict[str, Any]]:
    """The saved events of a small profile of two threads."""
    x = tk.arange(900, dtype="float32").reshape((30, 30)) / 900.0
    f = tk.jit(lambda x: tk.tanh(x @ x))

    def work() -> None:
        tk.grad(lambda x: f(x).sum())(x).tolist()  # the work

    with tk.profile() as p:
        work()
        thread = threading.Thread(target=work, name="other")
        thread.start()
        thread.join()
        tk.softmax(tk.tensor([1.0, 2.0]))
    p.save(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["displayTimeUnit"] == "ms"
    assert sum([event["ph"] == "X" for event in data["traceEvents"]]) == len(p.events)
    events: list[dict[str, Any]] = data["traceEvents"]
    return events


def test_a_trace_follows_the_format(tmp_path: Path) -> None:
    """https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU"""
    events = saved(tmp_path / "trace.json")
    assert {event["ph"] for event in events} == {"X", "M", "C"}
    for event in events:
        assert isinstance(event["name"], str) and event["name"]
        assert event["pid"] == os.getpid()
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] != "M":
            assert math.isfinite(event["ts"]) and event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["cat"] in ("op", "program", "trace", "prepare", "data")
            assert event["args"]["self_us"] <= event["dur"] + 1e-9
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert set(names.values()) == {threading.current_thread().name, "other"}
    assert {event["tid"] for event in events if event["ph"] == "X"} == set(names)


def test_events_of_a_thread_nest(tmp_path: Path) -> None:
    """Otherwise Perfetto drops them."""
    events = [event for event in saved(tmp_path / "trace.json") if event["ph"] == "X"]
    for thread in {event["tid"] for event in events}:
        open_until: list[float] = []
        last = 0.0
        for event in [event for event in events if event["tid"] == thread]:
            assert event["ts"] >= last
            last = event["ts"]
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-6
            open_until.append(end)


def test_an_event_has_operands_results_and_line(tmp_path: Path) -> None:
    events = saved(tmp_path / "trace.json")
    (softmax,) = [event for event in events if event["name"] == "softmax"]
    assert softmax["args"]["operands"] == softmax["args"]["results"] == ["float32[2]"]
    assert softmax["args"]["line"].startswith(f"{__file__}:")
    programs = {event["name"] for event in events if event.get("cat") in ("program", "prepare")}
    assert programs == {"<lambda>", "vjp of <lambda>", "prepare <lambda>", "prepare vjp of <lambda>"}
    assert max([event["args"]["bytes"] for event in events if event["ph"] == "C"]) >= 3600


def test_a_table_is_a_sequence_of_rows_sorted_by_time() -> None:
    rows = [Row("add", 3, 0.001, 12, 3, 0.25), Row("sin", 1, 0.003, 10**7, 2 * 10**9, 0.75)]
    table = Table("op", rows)
    assert [row.name for row in table] == ["sin", "add"]
    assert (len(table), table[0], list(table[1:])) == (2, rows[1], [rows[0]])
    assert str(table).splitlines() == [
        "op   calls     time    bytes    FLOP   share",
        "sin      1  3.00 ms  10.0 MB  2.00 G  75.0 %",
        "add      3  1.00 ms     12 B       3  25.0 %",
    ]


def test_all_output_is_ascii() -> None:
    def sine(x: Any) -> Any:
        return tk.sin(x)

    sine.__name__ = "Größe\n2"
    with tk.profile() as p:
        tk.jit(sine)(tk.ones(3))
    assert f"{p}{p.by_line()}{p!r}".isascii()
    assert r"Gr\xf6\xdfe 2 " in str(p)
    assert len(str(p).splitlines()) == len(p.by_op()) + 2


@given(st.floats(1e-9, 1e6))
def test_times_have_three_digits(seconds: float) -> None:
    number, unit = format_quantity(seconds, "s").split()
    scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=0.006)
    assert unit == "s" or float(number) < 1000


@given(st.integers(0, 10**12))
def test_counts_have_three_digits(count: int) -> None:
    number, *prefix = format_quantity(count, "").split()
    scale = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}["".join(prefix)]
    assert float(number) * scale == pytest.approx(count, rel=0.006)
