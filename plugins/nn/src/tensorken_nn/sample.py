"""Draw text from a trained model.

This is the subcommand `tensorken sample`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tensorken as tk
from tensorken_cli import INTERRUPTED, Parser, write_message
from tensorken_core.errors import ArgumentError
from tensorken_nn import checkpoints, run_directory
from tensorken_nn.cli import add_backend_options, check_backend
from tensorken_nn.jobs import JOBS
from tensorken_nn.options import count, parse_settings, quantity, seed
from tensorken_nn.train_run import RunMetadata


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tensorken sample` with these arguments (None: those of the process); returns its exit status."""
    parser = Parser("tensorken sample", description="Draw text from a trained model.")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    file: Path = options.checkpoint
    if file.is_dir():
        file = next(
            (
                file / name
                for name in (run_directory.BEST, run_directory.CHECKPOINT)
                if (file / name).exists()
            ),
            file,
        )
    try:
        with tk.use_backend(options.backend, options.device):
            check_backend()
            saved = RunMetadata.read(file)
            job = JOBS.get(saved.job)
            if job is None or job.sampler is None:
                jobs = ", ".join([name for name, other in JOBS.items() if other.sampler])
                raise ArgumentError(
                    f"sample: {file} is from the job {saved.job!r}, which has no text to draw; "
                    f"pass a checkpoint of {jobs}"
                )
            settings = parse_settings(argparse.Namespace(), job.settings, saved.settings)
            sampler = job.sampler(settings, saved.facts)
            state = checkpoints.load(file, sampler.state)
            text = sampler(
                state,
                tk.random.key(options.seed),
                options.prompt,
                options.count or job.count,
                options.temperature,
                options.top_k,
            )
    except KeyboardInterrupt:
        write_message("interrupted")
        return INTERRUPTED
    _print(text)
    return 0


def _print(text: str) -> None:
    """Print; characters that the console cannot show are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    add = parser.add_argument
    add("checkpoint", type=Path, metavar="FILE", help="a checkpoint, or the folder of a run")
    add("--prompt", default="", metavar="TEXT", help="the beginning of the text")
    add("--count", type=count, metavar="COUNT", help="the number of characters or names (default: the job's)")
    add(
        "--temperature",
        type=quantity,
        default=0.8,
        metavar="NUMBER",
        help="below 1 more certain, above 1 more random; 0 takes the likeliest (default: 0.8)",
    )
    add("--top-k", type=count, metavar="COUNT", help="draw only from the COUNT likeliest")
    add("--seed", type=seed, default=0, metavar="SEED", help="of the random draws (default: 0)")
    add_backend_options(parser)
