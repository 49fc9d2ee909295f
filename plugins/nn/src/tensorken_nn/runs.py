"""Runs: a training in its folder, from the beginning or from where an earlier process came."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorken_core.errors import ArgumentError
from tensorken_nn import checkpoints, folder
from tensorken_nn.interruption import Interruption
from tensorken_nn.report import Report, tell_error
from tensorken_nn.training import Progress, Record, Task, fit, stalled


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a checkpoint tells beside the state."""

    job: str
    settings: Mapping[str, Any]
    facts: Mapping[str, Any]  # the task's
    step: int
    sums: Mapping[str, float]
    patience: int | None

    def texts(self) -> dict[str, str]:
        """As the metadata of a checkpoint."""
        return {name: json.dumps(getattr(self, name)) for name in self.__slots__}

    def checked(self) -> Recorded:
        """This, if each entry is of its kind.

        Raises:
            ValueError: if one is not.
        """
        mappings = self.settings, self.facts, self.sums
        numbers = [self.step, *([] if self.patience is None else [self.patience])]
        fits = type(self.job) is str and all([isinstance(mapping, dict) for mapping in mappings])
        fits = fits and all([type(number) is int and number >= 0 for number in numbers])
        if not fits or not all([type(value) in (int, float) for value in self.sums.values()]):
            raise ValueError("an entry is of another kind")
        return self

    @classmethod
    def of(cls, file: Path) -> Recorded:
        """What the checkpoint in a file tells.

        Raises:
            CheckpointError: if the file is none.
            ArgumentError: if it was not made by a training.
        """
        texts = checkpoints.metadata(file)
        try:
            return cls(**{name: json.loads(texts[name]) for name in cls.__slots__}).checked()
        except (KeyError, ValueError, RecursionError):
            raise ArgumentError(
                f"{file} is not from `tensorken train`: it does not tell of which job; give the checkpoint of one"
            ) from None


@dataclass(frozen=True, slots=True)
class Run:
    """A training in a folder.

    Args:
        job, settings: its name, and what was chosen, as JSON has it.
        task: what is trained.
        place: the folder; its checkpoint, if there is one, is where the training goes on.
        facts: what is told of the run: job, backend, device, settings.
        patience: after how many periods without a better figure it stops; None: never.
        every: the number of steps between checkpoints beside those after each period; None: no others.
    """

    job: str
    settings: Mapping[str, Any]
    task: Task
    place: Path
    facts: Mapping[str, Any]
    patience: int | None = None
    every: int | None = None
    quiet: bool = False

    def train(self) -> int:
        """Train to the end, or until a signal comes; returns the exit status, 0 or that of the signal."""
        start = time.perf_counter()
        task, file = self.task, self.place / folder.CHECKPOINT
        progress, records = self._before()
        report = Report(task, self.place, self.facts, records, step=progress.step, quiet=self.quiet)
        with report, Interruption() as interruption:
            if not file.exists():
                self._save(file, progress)  # so that the folder can be gone on with from the first moment
            steps = fit(
                task, progress, every=self.every, after_step=report.after_step, stop=interruption.asked
            )
            while not self._ended(report.records) and (reached := next(steps, None)):
                progress, record = reached
                if record is not None:
                    report.after_period(record, task.glimpse and task.glimpse(progress.state))
                    best = self.place / folder.BEST
                    if (self.patience is not None or best.exists()) and stalled(
                        report.records, task.watched
                    ) == 0:
                        self._save(best, progress)
                self._save(file, progress)
                if interruption.asked():
                    tell_error(f"interrupted {report.progress}; --resume {self.place} goes on from there")
                    return interruption.status
        state, record = self._result(progress, report.records)
        report.finish(record, task.show(state, self.place), time.perf_counter() - start)
        return 0

    def _before(self) -> tuple[Progress, list[Record]]:
        """How far an earlier process came, and its records; else the beginning."""
        file = self.place / folder.CHECKPOINT
        if not file.exists():
            return Progress(0, self.task.state, {}), []
        recorded = Recorded.of(file)
        if recorded.facts != dict(self.task.facts):
            raise ArgumentError(
                f"train: {self.place} has learned from other data; give it those, or begin anew"
            )
        if recorded.step > self.task.steps:
            raise ArgumentError(
                f"train: {self.place} is at step {recorded.step} already, beyond {self.task.steps}; ask for more"
            )
        progress = Progress(recorded.step, checkpoints.load(file, self.task.state), recorded.sums)
        records = []
        for row in folder.read(self.place / folder.METRICS):
            step = row.pop("step")
            row.pop(self.task.unit, None)
            if step <= progress.step:  # what came after the checkpoint will come again
                figures = {name: math.nan if value is None else value for name, value in row.items()}
                records.append(Record(step, figures))
        return progress, records

    def _ended(self, records: Sequence[Record]) -> bool:
        """Whether the watched figure has not become better for too long."""
        return self.patience is not None and stalled(records, self.task.watched) >= self.patience

    def _result(self, progress: Progress, records: Sequence[Record]) -> tuple[Any, Record]:
        """The state that the training is for, with its figures: the last one, or with patience the best one."""
        if not records:
            raise ArgumentError(
                f"train: {self.place} has a training that ended, without its {folder.METRICS}; begin anew"
            )
        best = self.place / folder.BEST
        if self.patience is None or not best.exists():
            return progress.state, records[-1]
        step = Recorded.of(best).step
        return checkpoints.load(best, self.task.state), next(r for r in records if r.step == step)

    def _save(self, file: Path, progress: Progress) -> None:
        sums = {name: float(value) for name, value in progress.sums.items()}
        recorded = Recorded(self.job, self.settings, self.task.facts, progress.step, sums, self.patience)
        checkpoints.save(file, progress.state, recorded.texts())
