"""Train a model on any backend.

This is the subcommand `tensorken train`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import tensorken as tk
from tensorken_cli import INTERRUPTED, OK, Parser, write_message
from tensorken_core.errors import ArgumentError, BackendError, ConcretizationError
from tensorken_nn import run_directory
from tensorken_nn.clusters import Cluster, cluster as connect
from tensorken_nn.jobs import JOBS, Job
from tensorken_nn.options import add_options, count, parse_settings, to_json
from tensorken_nn.parts import Combine, PartFunction, Parts, add, add_rounds, averaged, divided, in_process
from tensorken_nn.train_run import RunMetadata, TrainRun
from tensorken_nn.training import Task


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tensorken train` with these arguments (None: those of the process); returns its exit status.

    >>> main(["digitz"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    parser = Parser(
        "tensorken train", usage="%(prog)s JOB [options]", description="Train a model on any backend."
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.job is None:
        parser.print_help()
        return OK
    try:
        with tk.use_backend(options.backend, options.device), ExitStack() as stack:
            return _run(options.job, JOBS[options.job], options, stack).train()
    except KeyboardInterrupt:
        write_message("interrupted; the last checkpoint, if any, is in the run's folder")
        return INTERRUPTED


def _run(name: str, job: Job, options: argparse.Namespace, stack: ExitStack) -> TrainRun:
    """The run described by the options; its folder is created last, after all checks.

    The stack closes the connection to a cluster.
    """
    backend, device = check_backend()
    resumed = _resumed(name, options)
    settings = parse_settings(options, job.settings, resumed.settings if resumed else None)
    where = getattr(options, "cluster", None)
    if where and options.device is not None:
        raise ArgumentError("train: workers choose their devices themselves; leave out --device")
    cluster = stack.enter_context(connect(where)) if where else None
    if cluster and settings.parts is None:
        if resumed:
            raise ArgumentError(
                "train: the run was started without --parts, so it cannot continue on a cluster; leave out --cluster"
            )
        settings = dataclasses.replace(settings, parts=cluster.worker_count)
    task = job.prepare(settings)
    if getattr(settings, "parts", None) is not None:
        task = _on_parts(task, Parts(name, settings, settings.parts), cluster, backend)
    elif getattr(settings, "local_steps", None) is not None:
        raise ArgumentError("train: --local-steps needs parts to train alone; add --parts or --cluster")
    if cluster:
        task = dataclasses.replace(task, description=(*task.description, cluster.description))
    directory = options.resume or run_directory.create(name, options.out, force=options.force)
    record = to_json(settings)
    facts = {"job": name, "backend": backend, "device": device, **record}
    patience = options.patience or (resumed.patience if resumed else None)
    return TrainRun(
        name,
        record,
        task,
        directory,
        facts,
        patience,
        options.checkpoint_every,
        options.quiet,
        options.verbose,
    )


def _on_parts(task: Task, parts: Parts, cluster: Cluster | None, backend: str) -> Task:
    """The task with batches that are divided, here or on a cluster."""

    def combined(f: PartFunction, combine: Combine) -> Callable[..., Any]:
        return cluster.combined(parts, f, combine, backend) if cluster else in_process(parts, f, combine)

    local_steps = parts.settings.local_steps
    if local_steps is None:
        return divided(task, combined(parts.sums, add))
    return averaged(task, combined(parts.states, add_rounds), local_steps)


def _resumed(name: str, options: argparse.Namespace) -> RunMetadata | None:
    """The metadata of the run to resume; None for a new run."""
    if options.resume is None:
        return None
    if options.out is not None or options.force:
        raise ArgumentError("train: --resume continues in its own folder; leave out --out and --force")
    file = options.resume / run_directory.CHECKPOINT
    if not file.exists():
        raise ArgumentError(
            f"train: there is no {run_directory.CHECKPOINT} in {options.resume}; give the folder of an earlier run"
        )
    resumed = RunMetadata.read(file)
    if resumed.job != name:
        raise ArgumentError(
            f"train: {options.resume} is a run of {resumed.job!r}, not of {name!r}; name that job"
        )
    return resumed


def check_backend() -> tuple[str, str]:
    """The names of the backend in use and its device.

    Raises:
        BackendError: if the backend computes no values, such as `string`.
    """
    probe = tk.zeros(())
    try:
        probe.item()
    except ConcretizationError:
        raise BackendError(
            f"train: backend {probe.backend!r} computes no values, which training needs; choose another --backend"
        ) from None
    return probe.backend, probe.device


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    """Add --backend and --device."""
    parser.add_argument(
        "--backend",
        metavar="NAME",
        help="where to compute ('tensorken backends' lists them; default: TENSORKEN_BACKEND, or numpy)",
    )
    parser.add_argument("--device", metavar="DEVICE", help="one of the backend's devices")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each job."""
    parser.epilog = "'tensorken train JOB --help' lists a job's options."
    jobs = parser.add_subparsers(prog="tensorken train", dest="job", metavar="JOB", title="jobs")
    for name, job in JOBS.items():
        summary = job.summary.replace("%", "%%")  # argparse formats it
        usage = "%(prog)s [options]"
        _add_job(jobs.add_parser(name, usage=usage, help=summary, description=f"{summary}."), name, job)


def _add_job(parser: argparse.ArgumentParser, name: str, job: Job) -> None:
    add_options(parser, job.settings)
    add_backend_options(parser)
    add = parser.add_argument
    if "parts" in {field.name for field in dataclasses.fields(job.settings)}:
        help_ = (
            "compute the parts on a dask cluster: the scheduler's address, or local:COUNT for COUNT processes"
        )
        add("--cluster", metavar="ADDRESS", help=help_)
    add("--out", type=Path, metavar="FOLDER", help=f"folder for the results (default: a new runs/{name}-N)")
    add("--force", action="store_true", help="replace the results of an earlier run in FOLDER")
    add("--resume", type=Path, metavar="FOLDER", help="resume the run in FOLDER, with its settings")
    add(
        "--patience",
        type=count,
        metavar="COUNT",
        help="stop after COUNT periods without improvement, and keep the best state",
    )
    add(
        "--checkpoint-every",
        type=count,
        metavar="COUNT",
        help="also save a checkpoint every COUNT steps, not only after each period",
    )
    lines = parser.add_mutually_exclusive_group()
    lines.add_argument("--quiet", action="store_true", help="print only the last line")
    lines.add_argument(
        "--verbose",
        action="store_true",
        help="print a line for each period (default: for some 20), and why there are no plots",
    )
