"""The subcommand `tensorken train`: the table of jobs, and how one is run."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tensorken as tk
from tensorken.errors import BackendError, ConcretizationError
from tensorken.selection import did_you_mean
from tensorken_nn import digits
from tensorken_nn.folder import claim
from tensorken_nn.metrics import confusion
from tensorken_nn.options import add_options, settings_from
from tensorken_nn.report import Report
from tensorken_nn.training import Task, fit, predict

INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended, as shells have it."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to train."""

    summary: str
    settings: type  # a dataclass whose fields are options; one is named `seed`
    prepare: Callable[[Any], Task]  # from the settings


JOBS = {"digits": Job("read handwritten digits, 8 x 8 pixels", digits.Settings, digits.prepare)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tensorken train` with these arguments (None: those of the process); returns its exit status.

    >>> main(["digitz"])
    2
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments[0].startswith("-"):
        parser = _parser()
        parser.parse_args(arguments)
        parser.print_help()
        return 0
    name, *rest = arguments
    if name not in JOBS:
        _complain(f"there is no job {name!r}{did_you_mean(name, JOBS)} (tensorken train lists them)")
        return 2
    job = JOBS[name]
    options = _job_parser(name, job).parse_args(rest)
    report: Report | None = None
    try:
        with tk.use_backend(options.backend, options.device):
            backend, device = _backend_with_values()
            settings = settings_from(options, job.settings)
            task = job.prepare(settings)
            place = claim(name, options.out, force=options.force)
            facts = {"job": name, "backend": backend, "device": device, **asdict(settings)}
            with Report(task, place, facts, quiet=options.quiet) as report:
                train(task, report)
        return 0
    except KeyboardInterrupt:
        _complain(f"interrupted {report.progress if report else 'before the first epoch'}")
        return INTERRUPTED


def train(task: Task, report: Report) -> Any:
    """Train to the end; returns the model."""
    start = time.perf_counter()
    model = task.model
    for epoch, learned in fit(task, report.after_step):
        report.after_epoch(epoch)
        model = learned
    labels = task.test[1].tolist()
    report.finish(confusion(labels, predict(task, model), task.classes), time.perf_counter() - start)
    return model


def _backend_with_values() -> tuple[str, str]:
    """The names of the backend in use and of its device; an error if it only describes what it would compute."""
    probe = tk.zeros(())
    try:
        probe.item()
    except ConcretizationError:
        raise BackendError(
            f"train: backend {probe.backend!r} computes no values, which training needs; choose another --backend"
        ) from None
    return probe.backend, probe.device


def _parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="tensorken train",
        usage="%(prog)s JOB [options]",
        description="Train a neural network on any backend.",
        epilog="\n".join(["jobs:", *[f"  {name:<12}{job.summary}" for name, job in JOBS.items()]])
        + "\n\n'tensorken train JOB --help' tells a job's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _job_parser(name: str, job: Job) -> argparse.ArgumentParser:
    prog = f"tensorken train {name}"
    parser = argparse.ArgumentParser(prog=prog, description=job.summary, allow_abbrev=False)
    add_options(parser, job.settings)
    add = parser.add_argument
    add("--backend", metavar="NAME", help="where to compute ('tensorken backends' lists them)")
    add("--device", metavar="DEVICE", help="one of the backend's devices")
    add("--out", type=Path, metavar="FOLDER", help=f"for the results (default: a new runs/{name}-N)")
    add("--force", action="store_true", help="replace the results of an earlier run in FOLDER")
    add("--quiet", action="store_true", help="print the test accuracy alone")
    return parser


def _complain(text: str) -> None:
    print(f"tensorken: {text}".encode("ascii", "backslashreplace").decode("ascii"), file=sys.stderr)
