"""The subcommand `tensorken sample`: what a model that was trained writes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tensorken as tk
from tensorken_core.errors import ArgumentError
from tensorken_nn import checkpoints, folder
from tensorken_nn.cli import INTERRUPTED, add_backend, backend_with_values
from tensorken_nn.jobs import JOBS
from tensorken_nn.options import count, quantity, seed, settings_from
from tensorken_nn.report import tell_error
from tensorken_nn.runs import Recorded


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tensorken sample` with these arguments (None: those of the process); returns its exit status."""
    options = _parser().parse_args(sys.argv[1:] if arguments is None else list(arguments))
    file: Path = options.checkpoint
    if file.is_dir():
        file = next(
            (file / name for name in (folder.BEST, folder.CHECKPOINT) if (file / name).exists()), file
        )
    try:
        with tk.use_backend(options.backend, options.device):
            backend_with_values()
            recorded = Recorded.of(file)
            job = JOBS.get(recorded.job)
            if job is None or job.sampler is None:
                able = ", ".join([name for name, other in JOBS.items() if other.sampler])
                raise ArgumentError(
                    f"sample: {file} is of the job {recorded.job!r}, which writes nothing; "
                    f"give a checkpoint of {able}"
                )
            settings = settings_from(argparse.Namespace(), job.settings, recorded.settings)
            write = job.sampler(settings, recorded.facts)
            state = checkpoints.load(file, write.state)
            drawn = write(
                state,
                tk.random.key(options.seed),
                options.prompt,
                options.count or job.count,
                options.temperature,
                options.top_k,
            )
    except KeyboardInterrupt:
        tell_error("interrupted")
        return INTERRUPTED
    _print(drawn)
    return 0


def _print(text: str) -> None:
    """Print, whatever the console can show."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorken sample",
        description="Let a model that was trained write.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("checkpoint", type=Path, help="a checkpoint, or the folder of a run")
    add("--prompt", default="", metavar="TEXT", help="what it begins with")
    add("--count", type=count, metavar="COUNT", help="how many characters, or names (default: the job's)")
    add(
        "--temperature",
        type=quantity,
        default=0.8,
        metavar="NUMBER",
        help="below 1 is surer, above 1 wilder; 0 the likeliest (default: 0.8)",
    )
    add("--top-k", type=count, metavar="COUNT", help="draw from so many of the likeliest alone")
    add("--seed", type=seed, default=0, metavar="SEED", help="for what is drawn (default: 0)")
    add_backend(parser)
    return parser
