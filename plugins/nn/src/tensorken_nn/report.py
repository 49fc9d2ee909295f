"""The report of a run: lines and a progress bar for the person who waits, records in the run's folder for later.

All lines are ASCII, whatever the console could show.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

from tensorken_nn import curves, figures, folder
from tensorken_nn.pictures import attempt
from tensorken_nn.training import Record, Shown, Task


class Report:
    """What is told of one training; entered while it runs, so that the progress bar goes in any case."""

    def __init__(
        self,
        task: Task,
        place: Path,
        facts: Mapping[str, Any],
        records: Iterable[Record] = (),
        *,
        step: int = 0,
        quiet: bool = False,
    ) -> None:
        self.task = task
        self.place = place
        self.records = list(records)
        self.step = step  # how many were done
        self._facts = facts
        self._quiet = quiet
        watched = not quiet and sys.stderr is not None and sys.stderr.isatty()
        columns, lines = shutil.get_terminal_size()  # a guess if need be: without it, tqdm hides the bar
        self._bar = tqdm(
            total=task.steps,
            initial=step,
            unit=" steps",
            ncols=min(columns - 1, 100),
            nrows=lines,
            leave=False,
            ascii=True,
            disable=not watched,
        )

    def __enter__(self) -> Self:
        folder.write(self.place / folder.SUMMARY, self._facts)
        folder.replace(self.place / folder.METRICS, [self._row(record) for record in self.records])
        for line in self.task.description:
            self.say(line)
        self.say(", ".join([f"{name}: {self._facts[name]}" for name in ("backend", "device", "seed")]))
        if self.step:
            self.say(f"goes on after step {self.step} of {self.task.steps}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def after_step(self) -> None:
        """Move the bar."""
        self.step += 1
        self._bar.update()

    def after_period(self, record: Record, glimpse: str | None = None) -> None:
        """Tell and record the figures of a period."""
        folder.append(self.place / folder.METRICS, self._row(record))
        self.records.append(record)
        done, wanted = self.task.shown(record.step)
        self.say(f"{self.task.unit} {done:{len(str(wanted))}}/{wanted}   {figures.told(record.figures)}")
        if glimpse is not None:
            self.say("\n" + "\n".join([f"  | {line}" for line in glimpse.splitlines()]) + "\n")

    def finish(self, record: Record, shown: Shown, seconds: float) -> None:
        """Tell and record the result: what there is to show, the curves, and last the figure that was watched."""
        task = self.task
        results = {**shown.results, "seconds": round(seconds, 3)}
        value = record.figures[task.watched]
        last = figures.last(task.watched, value)
        folder.write(self.place / folder.SUMMARY, {**self._facts, **record.figures, **results})
        self._bar.close()
        for line in shown.lines:
            self.say(line)
        title = f"{self._facts['job']} on {self._facts['backend']}, seed {self._facts['seed']}, {last}"
        problem = attempt(
            lambda file: curves.draw(self.records, task.period, task.unit, file, title),
            self.place / folder.CURVES,
        )
        for line in problem:
            self.say(line)
        self.say(f"{seconds:.1f} s; results are in {self.place}")
        tell(last)

    @property
    def progress(self) -> str:
        """How far it came."""
        done, wanted = self.task.shown(self.step)
        if self.step == self.task.steps:
            return f"after the last {self.task.unit}"
        return f"in {self.task.unit} {done if self.step % self.task.period else done + 1} of {wanted}"

    def say(self, text: str) -> None:
        """Tell something to a person who is not in a hurry."""
        if not self._quiet:
            self._bar.clear()
            tell(text)

    def _row(self, record: Record) -> dict[str, Any]:
        count = {} if self.task.unit == "step" else {self.task.unit: self.task.shown(record.step)[0]}
        return {**count, "step": record.step, **record.figures}


def tell(text: str) -> None:
    """Print a line in ASCII, at once."""
    print(text.encode("ascii", "backslashreplace").decode("ascii"), flush=True)


def tell_error(text: str) -> None:
    """Print a line of an error in ASCII."""
    print(f"tensorken: {text}".encode("ascii", "backslashreplace").decode("ascii"), file=sys.stderr)
