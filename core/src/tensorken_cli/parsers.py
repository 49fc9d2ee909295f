"""The parsers of the command: the one that lists the subcommands, and the one with all their arguments."""

from __future__ import annotations

import sys
from importlib import import_module

from tensorken_cli.parser import EXIT_STATUSES, Parser
from tensorken_cli.plugin_commands import descriptions
from tensorken_core.host.discovery import describe
from tensorken_core.host.load_monitor import to_ascii, write_message
from tensorken_core.host.registry import REGISTRY

OWN_COMMANDS = {
    "backends": "list the installed backends; nothing is imported",
    "completion": "print the script that completes this command in a shell",
    "doctor": "load everything, and report faults and how to fix them",
}
"""The subcommands of this distribution and their descriptions; the module of each has its name."""


def own_parser(name: str) -> Parser:
    """The parser of one of our own subcommands, whose namespace has the function to run, `run`."""
    parser = Parser(f"tensorken {name}", description=f"{OWN_COMMANDS[name].capitalize()}.")
    _fill(parser, f"tensorken_cli.{name}")
    return parser


def root_parser(*, full: bool = False) -> Parser:
    """The parser of the command.

    Args:
        full: whether the subcommands have their arguments, for which their modules are imported; otherwise they
            are only listed.
    """
    parser = Parser(
        "tensorken",
        usage="%(prog)s [-h] [--version [--json]] SUBCOMMAND ...",
        description="A small language of tensor operations with many interpreters.",
        epilog=f"'tensorken SUBCOMMAND --help' lists the arguments of a subcommand.\n{EXIT_STATUSES}",
    )
    parser.add_argument("--version", action="store_true", help="print the versions")
    parser.add_argument("--json", action="store_true", help="with --version: print all versions as JSON")
    listed = parser.add_subparsers(prog="tensorken", metavar="SUBCOMMAND", title="subcommands")
    plugins = {name: text for name, text in descriptions().items() if name not in OWN_COMMANDS}
    for name, text in {**plugins, **OWN_COMMANDS}.items():
        escaped = text.replace("%", "%%")
        subparser = listed.add_parser(name, help=escaped, description=text, add_help=full)
        if full and name in OWN_COMMANDS:
            _fill(subparser, f"tensorken_cli.{name}")
        elif full:
            _fill_from_plugin(subparser, name)
    return parser


def _fill(parser: Parser, module_name: str) -> None:
    """Add the arguments of a subcommand, if its module has a function for that."""
    module = sys.modules.get(module_name) or import_module(module_name)
    add_arguments = getattr(module, "add_arguments", None)
    if add_arguments is not None:
        add_arguments(parser)
        parser.set_defaults(run=getattr(module, "run", None))


def _fill_from_plugin(parser: Parser, selector: str) -> None:
    for record in REGISTRY.records("commands"):
        if to_ascii(record.selector) == selector and record.entry_point is not None:
            try:
                REGISTRY.load_object(record)
                _fill(parser, record.entry_point.module)
            except Exception as error:  # noqa: BLE001, a plugin may raise anything
                write_message(f"subcommand {selector} is left out: {describe(error)}")
