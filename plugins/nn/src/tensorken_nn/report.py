"""The report of a run: lines and a progress bar for the person who waits, records in the run's folder for later.

All lines are ASCII, whatever the console could show.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

from tensorken_nn import curves, folder
from tensorken_nn.training import Epoch, Task


class Report:
    """What is told of one training; entered while it runs, so that the progress bar goes in any case."""

    def __init__(self, task: Task, place: Path, facts: Mapping[str, Any], *, quiet: bool = False) -> None:
        self.task = task
        self.place = place
        self.epochs: list[Epoch] = []
        self._facts = facts
        self._quiet = quiet
        watched = not quiet and sys.stderr is not None and sys.stderr.isatty()
        columns, lines = shutil.get_terminal_size()  # a guess if need be: without it, tqdm hides the bar
        self._bar = tqdm(
            total=task.steps,
            unit=" steps",
            ncols=min(columns - 1, 100),
            nrows=lines,
            leave=False,
            ascii=True,
            disable=not watched,
        )

    def __enter__(self) -> Self:
        folder.write(self.place / folder.SUMMARY, self._facts)
        for line in self.task.description:
            self._say(line)
        self._say(", ".join([f"{name}: {self._facts[name]}" for name in ("backend", "device", "seed")]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def after_step(self) -> None:
        """Move the bar."""
        self._bar.update()

    def after_epoch(self, epoch: Epoch) -> None:
        """Tell and record the figures of an epoch."""
        figures = asdict(epoch)
        folder.append(self.place / folder.METRICS, {"epoch": figures.pop("number"), **figures})
        self.epochs.append(epoch)
        width = len(str(self.task.epochs))
        self._say(
            f"epoch {epoch.number:{width}}/{self.task.epochs}"
            f"   train: loss {epoch.loss:.4f}, accuracy {100 * epoch.accuracy:5.1f} %"
            f"   test: loss {epoch.test_loss:.4f}, accuracy {100 * epoch.test_accuracy:5.1f} %"
        )

    def finish(self, confusion: Sequence[Sequence[int]], seconds: float) -> None:
        """Tell and record the result: the confusion table, the curves, and last the accuracy."""
        accuracy = self.epochs[-1].test_accuracy
        told = f"test accuracy: {100 * accuracy:.1f} %"
        result = {"test_accuracy": accuracy, "confusion": confusion, "seconds": round(seconds, 3)}
        folder.write(self.place / folder.SUMMARY, {**self._facts, **result})
        self._bar.close()
        heading = "confusion table of the test: the class (row) and what it was taken for (column)"
        for line in ("", heading, *table(confusion), ""):
            self._say(line)
        try:
            title = f"{self._facts['job']} on {self._facts['backend']}, seed {self._facts['seed']}, {told}"
            curves.draw(self.epochs, self.place / folder.CURVES, title)
        except ImportError as error:
            self._say(f'no {folder.CURVES}: {error}; pip install "tensorken-nn[plot]"')
        self._say(f"{seconds:.1f} s; results are in {self.place}")
        _print(told)

    @property
    def progress(self) -> str:
        """How far it came."""
        done, wanted = len(self.epochs), self.task.epochs
        if done == wanted:
            return f"after the last epoch; results are in {self.place}"
        kept = f"; the figures of those before it are in {self.place}" if done else ""
        return f"in epoch {done + 1} of {wanted}{kept}"

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._bar.clear()
            _print(text)


def table(counts: Sequence[Sequence[int]]) -> list[str]:
    """A table of counts as lines, with a dot for 0.

    >>> for line in table([[12, 0], [1, 9]]):
    ...     print(line)
           0   1
       0  12   .
       1   1   9
    """
    width = max(3, *[len(str(count)) for row in counts for count in row])
    lines = ["    " + "".join([f" {i:{width}}" for i in range(len(counts))])]
    return lines + [
        f"{i:4}" + "".join([f" {count or '.':>{width}}" for count in row]) for i, row in enumerate(counts)
    ]


def _print(text: str) -> None:
    print(text.encode("ascii", "backslashreplace").decode("ascii"), flush=True)
