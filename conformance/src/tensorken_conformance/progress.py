"""Progress: what a run has done so far, on stderr: a bar in a terminal, otherwise a line now and then."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from tensorken_conformance.output import is_terminal, say

if TYPE_CHECKING:
    from tensorken_conformance.case import Result
    from tensorken_conformance.running.options import Run

EVERY = 10.0
"""The seconds between two lines, if stderr is no terminal."""

FIRST = 5.0
"""The seconds until the first line."""


class Progress:
    """Shows the progress of a run on stderr while it is entered.

    Args:
        in_process: whether the cases run in this process: then there is no bar, as a debugger needs the terminal for
            itself, and lines are printed between cases, as laws listen to the output of a case.
        every: the seconds between two lines without a bar.
    """

    def __init__(self, in_process: bool = False, every: float = EVERY) -> None:
        self._every = every
        self._began = time.monotonic()
        self._count = self._bad = 0
        self._passed: set[int] = set()  # the levels of cases that passed
        self._spoilt = math.inf  # the lowest level that a case prevents
        self._law = ""
        self._run: Run | None = None
        self._has_ended = threading.Event()
        self._bar = _Bar() if not in_process and is_terminal(sys.stderr) else None
        self._lines = None
        if self._bar is None and not in_process:
            self._lines = threading.Thread(target=self._print_lines, daemon=True)
        self._next = self._began + min(FIRST, every)

    def __enter__(self) -> Progress:
        if self._lines is not None:
            self._lines.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._has_ended.set()
        if self._lines is not None:
            self._lines.join()
        if self._bar is not None:
            self._bar.stop()

    def begin(self, run: Run) -> None:
        """Take the record of the run, which knows the number of cases, and the results of a run that it resumes."""
        self._run = run
        for result in run.results:
            self._add(result)

    def tell(self, result: Result) -> None:
        """Count a result, and show it."""
        self._add(result)
        if self._bar is not None:
            self._bar.show(self._count, self._total, self._verdict, self._law)
        elif self._lines is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._print_line()

    def _add(self, result: Result) -> None:
        from tensorken_conformance.levels import spoils  # which imports numpy

        self._count += 1
        self._bad += result.status in ("failed", "crashed")
        if result.status == "passed":
            self._passed.add(result.level)
        elif (spoilt := spoils(result)) is not None:
            self._spoilt = min(self._spoilt, spoilt)
        self._law = result.case.law

    @property
    def _total(self) -> int | None:
        """The number of all cases; None while it is unknown."""
        return self._run.planned if self._run is not None else None

    @property
    def line(self) -> str:
        """The progress in a line."""
        of_all = "" if self._total is None else f" of {self._total:,}"
        cases = f"{self._count:,}{of_all} cases"
        seconds = time.monotonic() - self._began
        return ", ".join(filter(None, (cases, self._verdict, f"{seconds:.0f} s", self._law)))

    @property
    def _verdict(self) -> str:
        """The number of failed cases, and the level that all results so far would reach."""
        from tensorken_conformance.levels import highest  # which imports numpy

        level = highest(self._passed, self._spoilt)
        return f"{self._bad:,} failed{f', so far L{level}' if level >= 0 else ''}"

    def _print_lines(self) -> None:
        pause = min(FIRST, self._every)
        while not self._has_ended.wait(pause):
            self._print_line()
            pause = self._every

    def _print_line(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # a closed pipe
            say(self.line, sys.stderr)


class _Bar:
    """A bar of rich, which is imported only for it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns: list[Any] = [
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("cases, {task.fields[failed]},", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        ]
        console = Console(file=sys.stderr)
        self._progress = Progress(*columns, console=console, transient=True, refresh_per_second=4)
        self._task = self._progress.add_task("", total=None, failed="0 failed")
        self._progress.start()
        self.stop = self._progress.stop

    def show(self, count: int, total: int | None, failed: str, law: str) -> None:
        """Change the numbers; the bar is drawn a few times per second."""
        self._progress.update(self._task, completed=count, total=total, failed=failed, description=law)
