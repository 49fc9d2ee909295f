"""The subcommand `tensorken completion`: print the completion script of a shell.

shtab writes it from the parsers of all subcommands, so a shell that completes runs no Python, except for the names of
backends, which `tensorken backends --names` reads from metadata.
"""

from __future__ import annotations

import argparse

from tensorken_cli.parser import OK
from tensorken_cli.parsers import root_parser
from tensorken_core.errors import TensorkenError

SHELLS = ("bash", "zsh", "fish", "tcsh")

PLACES = {"FILE": "file", "PATH": "file", "FOLDER": "directory"}
"""The metavars of arguments that are completed by files or folders."""

NAMES = "tensorken backends --names 2>/dev/null"

BACKENDS = {
    "bash": "_tensorken_backends",
    "zsh": "_tensorken_backends",
    "fish": f"({NAMES})",
    "tcsh": f"`{NAMES}`",
    "preamble": {
        "bash": f'_tensorken_backends() {{ compgen -W "$({NAMES})" -- "$1"; }}',
        "zsh": f'_tensorken_backends() {{ compadd -- ${{(f)"$({NAMES})"}}; }}',
    },
}
"""How each shell completes the name of a backend: by a function, which runs only for such an argument."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="one of %(choices)s")


def run(options: argparse.Namespace) -> int:
    """Print the script; returns the exit status.

    Raises:
        TensorkenError: without shtab.
    """
    try:
        import shtab
    except ImportError:
        raise TensorkenError(
            'completion needs the package shtab, which is not installed: pip install "tensorken[completion]"'
        ) from None
    parser = root_parser(full=True)
    _mark(parser)
    print(shtab.complete(parser, options.shell))
    return OK


def _mark(parser: argparse.ArgumentParser) -> None:
    """Give the arguments of a parser and its subparsers the attribute by which shtab completes their values."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _mark(subparser)
        elif action.dest in ("backend", "probe"):
            action.complete = BACKENDS  # type: ignore[attr-defined]
        elif action.metavar in PLACES:
            action.complete = PLACES[action.metavar]  # type: ignore[attr-defined]
