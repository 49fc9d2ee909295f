"""Start or resume a training run."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorken_cli import write_message
from tensorken_core.errors import ArgumentError
from tensorken_nn import checkpoints, run_directory
from tensorken_nn.interruption import Interruption
from tensorken_nn.report import Report
from tensorken_nn.training import Progress, Record, Task, fit, periods_without_improvement


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """The metadata of a checkpoint of a training run."""

    job: str
    settings: Mapping[str, Any]
    facts: Mapping[str, Any]  # of the task
    step: int
    sums: Mapping[str, float]
    patience: int | None

    def to_texts(self) -> dict[str, str]:
        """The metadata as strings, for `checkpoints.save`."""
        return {name: json.dumps(getattr(self, name)) for name in self.__slots__}

    def validated(self) -> RunMetadata:
        """Return the metadata if each entry has the right type.

        Raises:
            ValueError: if one is not.
        """
        mappings = self.settings, self.facts, self.sums
        numbers = [self.step, *([] if self.patience is None else [self.patience])]
        fits = type(self.job) is str and all([isinstance(mapping, dict) for mapping in mappings])
        fits = fits and all([type(number) is int and number >= 0 for number in numbers])
        if not fits or not all([type(value) in (int, float) for value in self.sums.values()]):
            raise ValueError("an entry has another type")
        return self

    @classmethod
    def read(cls, file: Path) -> RunMetadata:
        """Read the metadata of a checkpoint.

        Raises:
            CheckpointError: if the file is not a checkpoint.
            ArgumentError: if the checkpoint was not made by a training run.
        """
        texts = checkpoints.metadata(file)
        try:
            return cls(**{name: json.loads(texts[name]) for name in cls.__slots__}).validated()
        except (KeyError, ValueError, RecursionError):
            raise ArgumentError(
                f"{file} is not from `tensorken train`: its metadata name no job; pass a checkpoint of a run"
            ) from None


@dataclass(frozen=True, slots=True)
class TrainRun:
    """A training run in a directory.

    Args:
        job, settings: the name of the job, and its settings as JSON values.
        task: the task to train.
        directory: of the run; if it contains a checkpoint, the run resumes from it.
        facts: for run.json: job, backend, device, settings.
        patience: stop after this many periods without improvement; None: never.
        checkpoint_every: also save a checkpoint every `checkpoint_every` steps; None: only after each period.
        quiet: whether to print only the last line.
        verbose: whether to print a line for each period, not only for some 20 of them.
    """

    job: str
    settings: Mapping[str, Any]
    task: Task
    directory: Path
    facts: Mapping[str, Any]
    patience: int | None = None
    checkpoint_every: int | None = None
    quiet: bool = False
    verbose: bool = False

    def train(self) -> int:
        """Train to the end, until a signal, or until the processes that compute are lost; returns the exit status."""
        start = time.perf_counter()
        task, file = self.task, self.directory / run_directory.CHECKPOINT
        progress, records = self._load_progress()
        report = Report(
            task,
            self.directory,
            self.facts,
            records,
            step=progress.step,
            quiet=self.quiet,
            verbose=self.verbose,
        )
        with report, Interruption() as interruption:
            if not file.exists():
                self._save(file, progress)  # so that the run can be resumed from the start
            steps = fit(
                task,
                progress,
                every=self.checkpoint_every,
                after_step=report.after_step,
                stop=interruption.requested,
            )
            while not self._out_of_patience(report.records):
                try:
                    if (item := next(steps, None)) is None:
                        break
                except ConnectionError as error:  # the last progress is saved
                    write_message(f"{error}; --resume {self.directory} continues {report.progress}")
                    return 1
                progress, record = item
                if record is not None:
                    preview = task.preview and functools.partial(task.preview, progress.state)
                    report.after_period(record, preview)
                    best = self.directory / run_directory.BEST
                    if (self.patience is not None or best.exists()) and periods_without_improvement(
                        report.records, task.monitor
                    ) == 0:
                        self._save(best, progress)
                self._save(file, progress)
                if interruption.requested():
                    write_message(
                        f"interrupted {report.progress}; --resume {self.directory} continues from there"
                    )
                    return interruption.status
        state, record = self._result(progress, report.records)
        report.finish(record, task.summarize(state, self.directory), time.perf_counter() - start)
        return 0

    def _load_progress(self) -> tuple[Progress, list[Record]]:
        """The progress and records of an earlier process, or of a new run."""
        file = self.directory / run_directory.CHECKPOINT
        if not file.exists():
            return Progress(0, self.task.state, {}), []
        saved = RunMetadata.read(file)
        if saved.facts != dict(self.task.facts):
            raise ArgumentError(
                f"train: {self.directory} was trained on other data; use the same data, or start a new run"
            )
        if saved.step > self.task.steps:
            raise ArgumentError(
                f"train: {self.directory} is at step {saved.step} already, beyond {self.task.steps}; request more steps"
            )
        progress = Progress(saved.step, checkpoints.load(file, self.task.state), saved.sums)
        records = []
        for row in run_directory.read_records(self.directory / run_directory.METRICS):
            step = row.pop("step")
            row.pop(self.task.unit, None)
            if step <= progress.step:  # later periods run again
                metrics = {name: math.nan if value is None else value for name, value in row.items()}
                records.append(Record(step, metrics))
        return progress, records

    def _out_of_patience(self, records: Sequence[Record]) -> bool:
        """Whether the monitored metric has not improved for `patience` periods."""
        return (
            self.patience is not None
            and periods_without_improvement(records, self.task.monitor) >= self.patience
        )

    def _result(self, progress: Progress, records: Sequence[Record]) -> tuple[Any, Record]:
        """The resulting state with its record: the last one or, with patience, the best one."""
        if not records:
            raise ArgumentError(
                f"train: {self.directory} contains a finished run but no {run_directory.METRICS}; start a new run"
            )
        best = self.directory / run_directory.BEST
        if self.patience is None or not best.exists():
            return progress.state, records[-1]
        step = RunMetadata.read(best).step
        return checkpoints.load(best, self.task.state), next(r for r in records if r.step == step)

    def _save(self, file: Path, progress: Progress) -> None:
        sums = {name: float(value) for name, value in progress.sums.items()}
        saved = RunMetadata(self.job, self.settings, self.task.facts, progress.step, sums, self.patience)
        checkpoints.save(file, progress.state, saved.to_texts())
