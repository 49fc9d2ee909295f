"""The subcommand `tensorken train`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tensorken as tk
from tensorken_core.errors import ArgumentError, BackendError, ConcretizationError
from tensorken_core.host.backend_choice import did_you_mean
from tensorken_nn import folder
from tensorken_nn.jobs import JOBS, Job
from tensorken_nn.options import add_options, as_json, count, settings_from
from tensorken_nn.report import tell_error
from tensorken_nn.runs import Recorded, Run

INTERRUPTED = 130
"""The exit status of a program that Ctrl-C ended, as shells have it."""


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
        tell_error(f"there is no job {name!r}{did_you_mean(name, JOBS)} (tensorken train lists them)")
        return 2
    job = JOBS[name]
    options = _job_parser(name, job).parse_args(rest)
    try:
        with tk.use_backend(options.backend, options.device):
            return _run(name, job, options).train()
    except KeyboardInterrupt:
        tell_error("interrupted; what was saved is in the run's folder, if it had begun")
        return INTERRUPTED


def _run(name: str, job: Job, options: argparse.Namespace) -> Run:
    """The run that the options ask for; its folder is claimed only when all else is right."""
    backend, device = backend_with_values()
    recorded = _recorded(name, options)
    settings = settings_from(options, job.settings, recorded.settings if recorded else None)
    task = job.prepare(settings)
    place = options.resume or folder.claim(name, options.out, force=options.force)
    record = as_json(settings)
    facts = {"job": name, "backend": backend, "device": device, **record}
    patience = options.patience or (recorded.patience if recorded else None)
    return Run(name, record, task, place, facts, patience, options.checkpoint_every, options.quiet)


def _recorded(name: str, options: argparse.Namespace) -> Recorded | None:
    """What is known of the training that is to go on; None if it begins."""
    if options.resume is None:
        return None
    if options.out is not None or options.force:
        raise ArgumentError("train: --resume goes on in its folder; leave out --out and --force")
    file = options.resume / folder.CHECKPOINT
    if not file.exists():
        raise ArgumentError(
            f"train: there is no {folder.CHECKPOINT} in {options.resume}; give the folder of an earlier run"
        )
    recorded = Recorded.of(file)
    if recorded.job != name:
        raise ArgumentError(
            f"train: {options.resume} is a run of {recorded.job!r}, not of {name!r}; name that job"
        )
    return recorded


def backend_with_values() -> tuple[str, str]:
    """The names of the backend in use and of its device; an error if it only describes what it would compute."""
    probe = tk.zeros(())
    try:
        probe.item()
    except ConcretizationError:
        raise BackendError(
            f"train: backend {probe.backend!r} computes no values, which training needs; choose another --backend"
        ) from None
    return probe.backend, probe.device


def add_backend(parser: argparse.ArgumentParser) -> None:
    """The options that say where to compute."""
    parser.add_argument(
        "--backend", metavar="NAME", help="where to compute ('tensorken backends' lists them)"
    )
    parser.add_argument("--device", metavar="DEVICE", help="one of the backend's devices")


def _parser() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="tensorken train",
        usage="%(prog)s JOB [options]",
        description="Train a model on any backend.",
        epilog="\n".join(["jobs:", *[f"  {name:<12}{job.summary}" for name, job in JOBS.items()]])
        + "\n\n'tensorken train JOB --help' tells a job's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _job_parser(name: str, job: Job) -> argparse.ArgumentParser:
    prog = f"tensorken train {name}"
    parser = argparse.ArgumentParser(prog=prog, description=job.summary, allow_abbrev=False)
    add_options(parser, job.settings)
    add_backend(parser)
    add = parser.add_argument
    add("--out", type=Path, metavar="FOLDER", help=f"for the results (default: a new runs/{name}-N)")
    add("--force", action="store_true", help="replace the results of an earlier run in FOLDER")
    add("--resume", type=Path, metavar="FOLDER", help="go on with the run in FOLDER, with its settings")
    add(
        "--patience",
        type=count,
        metavar="COUNT",
        help="stop, with the best, after so many periods without a better one",
    )
    add(
        "--checkpoint-every",
        type=count,
        metavar="COUNT",
        help="save after each so many steps too, not only each period",
    )
    add("--quiet", action="store_true", help="print the last line alone")
    return parser
