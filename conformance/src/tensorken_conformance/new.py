"""Write the project of a new backend, compiler, op or training task.

This is the subcommand `tensorken new`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tensorken_cli import Parser
from tensorken_conformance.cli import USAGE
from tensorken_conformance.output import say
from tensorken_conformance.template import KINDS, create


def main(arguments: list[str]) -> int:
    """Run the command with these arguments.

    Returns:
        The exit status: 0 for success, 2 if the name cannot be used or the folder is not empty.

    >>> main(["backend", "1bad"])
    2
    """
    parser = Parser(
        "tensorken new",
        description="Write a project that works, with code, tests and a workflow that certifies it.",
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        written = create(options.kind, options.name, options.folder, options.start)
    except (ValueError, OSError) as error:
        say(f"tensorken {error}", sys.stderr)
        return USAGE
    for path in written:
        say(str(path))
    folder = options.folder or f"tensorken-{options.name}"
    say(f'\nnow: cd {folder}, pip install --editable ".[test]", pytest; README.md describes the rest')
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a parser for each kind of project."""
    kinds = parser.add_subparsers(
        prog="tensorken new", dest="kind", required=True, metavar="KIND", title="kinds"
    )
    for name, kind in KINDS.items():
        command = kinds.add_parser(name, help=kind.summary, description=f"Write {kind.summary}.")
        command.set_defaults(start="")
        command.add_argument("name", metavar="NAME", help="its name; the distribution is tensorken-NAME")
        command.add_argument("--folder", metavar="FOLDER", help="default: tensorken-NAME", type=Path)
        if kind.starts:
            first = next(iter(kind.starts))
            help_ = "what its ops are written in or on (default: %(default)s)"
            command.add_argument("--from", dest="start", choices=kind.starts, default=first, help=help_)
