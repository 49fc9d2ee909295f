"""The report of a training run: console output with a progress bar, and records in the run's directory.

All output is ASCII, so that every console can show it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

from tensorken_cli import write
from tensorken_nn import curves, metrics, run_directory
from tensorken_nn.plots import missing_library, try_draw
from tensorken_nn.training import Record, Summary, Task

LINES = 20
"""About how many periods are printed."""


class Report:
    """The report of one training run; a context manager, so that the progress bar is always removed."""

    def __init__(
        self,
        task: Task,
        directory: Path,
        facts: Mapping[str, Any],
        records: Iterable[Record] = (),
        *,
        step: int = 0,
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self.task = task
        self.directory = directory
        self.records = list(records)
        self.step = step  # the number of steps done
        self._facts = facts
        self._quiet = quiet
        self._verbose = verbose
        self._is_first = True  # no period was printed yet
        self._skipped: Record | None = None  # the last period, if it was not printed
        is_terminal = not quiet and sys.stderr is not None and sys.stderr.isatty()
        columns, lines = shutil.get_terminal_size()  # may be a guess; without a size, tqdm hides the bar
        self._bar = tqdm(
            total=task.steps,
            initial=step,
            unit=" steps",
            ncols=min(columns - 1, 100),
            nrows=lines,
            leave=False,
            ascii=True,
            disable=not is_terminal,
        )

    def __enter__(self) -> Self:
        run_directory.write_json(self.directory / run_directory.SUMMARY, self._facts)
        run_directory.write_records(
            self.directory / run_directory.METRICS, [self._row(record) for record in self.records]
        )
        for line in self.task.description:
            self.print(line)
        self.print(", ".join([f"{name}: {self._facts[name]}" for name in ("backend", "device", "seed")]))
        if self.step:
            self.print(f"resuming after step {self.step} of {self.task.steps}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def after_step(self) -> None:
        """Advance the progress bar."""
        self.step += 1
        self._bar.update()

    def after_period(self, record: Record, preview: Callable[[], str] | None = None) -> None:
        """Record the metrics of a period, and print them if it is one of about `LINES`, the first or the last."""
        run_directory.append_record(self.directory / run_directory.METRICS, self._row(record))
        self.records.append(record)
        number, total = (-(-steps // self.task.period) for steps in (record.step, self.task.steps))
        interval = 1 if self._verbose else max(1, round(total / LINES))
        if not self._is_first and number % interval and number != total:
            self._skipped = record
            return
        self._print_period(record)
        self._is_first = False
        if preview is not None:
            self.print("\n" + "\n".join([f"  | {line}" for line in preview().splitlines()]) + "\n")

    def _print_period(self, record: Record) -> None:
        done, total = self.task.progress(record.step)
        self.print(f"{self.task.unit} {done:{len(str(total))}}/{total}   {metrics.format(record.metrics)}")
        self._skipped = None

    def finish(self, record: Record, summary: Summary, seconds: float) -> None:
        """Print and record the results: the summary, the curves and, on the last line, the monitored metric."""
        task = self.task
        results = {**summary.results, "seconds": round(seconds, 3)}
        value = record.metrics[task.monitor]
        last = metrics.format_final(task.monitor, value)
        run_directory.write_json(
            self.directory / run_directory.SUMMARY, {**self._facts, **record.metrics, **results}
        )
        self._bar.close()
        if self._skipped is not None:  # training ended early
            self._print_period(self._skipped)
        for line in summary.lines:
            self.print(line)
        title = f"{self._facts['job']} on {self._facts['backend']}, seed {self._facts['seed']}, {last}"
        try_draw(
            lambda file: curves.draw(self.records, task.period, task.unit, file, title),
            self.directory / run_directory.CURVES,
        )
        if self._verbose and (problem := missing_library()):
            self.print(f'no plots: {problem}; pip install "tensorken-nn[plot]"')
        self.print(f"{seconds:.1f} s; results are in {self.directory}")
        write(last)

    @property
    def progress(self) -> str:
        """The position in the run, for messages."""
        done, total = self.task.progress(self.step)
        if self.step == self.task.steps:
            return f"after the last {self.task.unit}"
        return f"in {self.task.unit} {done if self.step % self.task.period else done + 1} of {total}"

    def print(self, text: str) -> None:
        """Print a line unless the run is quiet."""
        if not self._quiet:
            self._bar.clear()
            write(text)

    def _row(self, record: Record) -> dict[str, Any]:
        number = {} if self.task.unit == "step" else {self.task.unit: self.task.progress(record.step)[0]}
        return {**number, "step": record.step, **record.metrics}
