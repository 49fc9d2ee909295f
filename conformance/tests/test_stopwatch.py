"""The stopwatch: the time that a process computes, the time that it waits, and the limits on both."""

from __future__ import annotations

import os
import time

import pytest

from tensorken_conformance.running import stopwatch
from tensorken_conformance.running.stopwatch import Stopwatch, cpu_seconds


class Clocks:
    """A fake wall clock and a fake CPU clock of a process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.cpu = 100.0, 5.0
        monkeypatch.setattr(stopwatch.time, "monotonic", lambda: self.wall)

    def watch(self) -> Stopwatch:
        return Stopwatch(1, lambda pid: self.cpu)

    def advance(self, watch: Stopwatch, seconds: float, computing: float) -> None:
        """Advance both clocks, and update the stopwatch every half second; `computing` is CPU time per wall time."""
        for _ in range(round(seconds / 0.5)):
            self.wall += 0.5
            self.cpu += 0.5 * computing
            watch.look()


def test_the_limit_applies_to_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    watch = clocks.watch()
    clocks.advance(watch, 9.5, computing=1.0)
    assert watch.verdict(10.0) == ""
    clocks.advance(watch, 0.5, computing=1.0)
    assert watch.verdict(10.0) == "no result within 10 s of computing"


def test_twice_the_limit_applies_to_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    watch = clocks.watch()
    clocks.advance(watch, 19.5, computing=0.0)
    assert watch.verdict(10.0) == ""
    clocks.advance(watch, 0.5, computing=0.0)
    assert watch.verdict(10.0) == "no result within 20 s of waiting"


def test_time_without_a_processor_on_a_busy_machine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    watch = clocks.watch()
    clocks.advance(watch, 190.0, computing=0.05)
    assert watch.verdict(10.0) == ""
    clocks.advance(watch, 20.0, computing=0.05)
    assert watch.verdict(10.0) == "no result within 10 s of computing"


def test_the_computing_time_of_several_threads_is_at_most_the_wall_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = Clocks(monkeypatch)
    watch = clocks.watch()
    clocks.advance(watch, 5.0, computing=64.0)
    assert watch.computed == 5.0


def test_a_long_pause_between_updates_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    watch = clocks.watch()
    clocks.wall += 1000.0
    clocks.cpu += 900.0
    watch.look()
    assert watch.computed <= 1.0
    clocks.wall += 1000.0
    watch.look()
    assert watch.waited <= 1.0


def test_without_a_cpu_clock_wall_time_counts_as_computing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = Clocks(monkeypatch)
    watch = Stopwatch(1, lambda pid: None)
    clocks.advance(watch, 3.0, computing=0.0)
    assert (watch.computed, watch.waited) == (3.0, 0.0)


def test_restart_resets_both_times_but_not_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    watch = clocks.watch()
    clocks.advance(watch, 3.0, computing=1.0)
    watch.restart()
    clocks.advance(watch, 2.0, computing=0.0)
    assert (watch.computed, watch.waited, watch.total) == (0.0, 2.0, 5.0)


def test_cpu_seconds_of_this_process_increase() -> None:
    before = cpu_seconds(os.getpid())
    assert before is not None
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    after = cpu_seconds(os.getpid())
    assert after is not None
    assert after >= before
    assert cpu_seconds(2**22 + 1) is None
