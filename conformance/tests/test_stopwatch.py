"""The stopwatch: what counts as computing, what as waiting, and what as neither."""

from __future__ import annotations

import os
import time

import pytest

from tensorken_conformance.running import stopwatch
from tensorken_conformance.running.stopwatch import Stopwatch, cpu_seconds


class Times:
    """A clock on the wall and one of a process, which a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.cpu = 100.0, 5.0
        monkeypatch.setattr(stopwatch.time, "monotonic", lambda: self.wall)

    def watch(self) -> Stopwatch:
        return Stopwatch(1, lambda pid: self.cpu)

    def go_on(self, watch: Stopwatch, seconds: float, computing: float) -> None:
        """Let time go by, of which a process computes a part, and look in every half of a second."""
        for _ in range(round(seconds / 0.5)):
            self.wall += 0.5
            self.cpu += 0.5 * computing
            watch.look()


def test_a_process_that_computes_hangs_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    watch = times.watch()
    times.go_on(watch, 9.5, computing=1.0)
    assert watch.verdict(10.0) == ""
    times.go_on(watch, 0.5, computing=1.0)
    assert watch.verdict(10.0) == "no result within 10 s of computing"


def test_a_process_that_waits_hangs_after_twice_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    watch = times.watch()
    times.go_on(watch, 19.5, computing=0.0)
    assert watch.verdict(10.0) == ""
    times.go_on(watch, 0.5, computing=0.0)
    assert watch.verdict(10.0) == "no result within 20 s of waiting"


def test_a_busy_machine_gives_a_process_as_long_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    watch = times.watch()
    times.go_on(watch, 190.0, computing=0.05)
    assert watch.verdict(10.0) == ""
    times.go_on(watch, 20.0, computing=0.05)
    assert watch.verdict(10.0) == "no result within 10 s of computing"


def test_many_threads_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    watch = times.watch()
    times.go_on(watch, 5.0, computing=64.0)
    assert watch.computed == 5.0


def test_who_has_not_looked_for_long_does_not_count_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    watch = times.watch()
    times.wall += 1000.0
    times.cpu += 900.0
    watch.look()
    assert watch.computed <= 1.0
    times.wall += 1000.0
    watch.look()
    assert watch.waited <= 1.0


def test_where_no_time_of_processes_can_be_told_that_on_the_wall_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = Times(monkeypatch)
    watch = Stopwatch(1, lambda pid: None)
    times.go_on(watch, 3.0, computing=0.0)
    assert (watch.computed, watch.waited) == (3.0, 0.0)


def test_what_is_told_begins_anew_and_the_total_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    watch = times.watch()
    times.go_on(watch, 3.0, computing=1.0)
    watch.restart()
    times.go_on(watch, 2.0, computing=0.0)
    assert (watch.computed, watch.waited, watch.total) == (0.0, 2.0, 5.0)


def test_the_time_of_this_process_is_known() -> None:
    before = cpu_seconds(os.getpid())
    assert before is not None
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    after = cpu_seconds(os.getpid())
    assert after is not None
    assert after >= before
    assert cpu_seconds(2**22 + 1) is None
