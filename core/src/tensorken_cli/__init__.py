"""The command `tensorken`, and the parts that subcommands of plugins share with it.

A subcommand is an entry point of the group `tensorken.commands`: a function from `list[str]` to an exit status.  The
first line of its module's docstring is its description.  If the module has a function `add_arguments(parser)`, shell
completion knows its arguments.
"""

from __future__ import annotations

from tensorken_cli.output import colours, print_table, write
from tensorken_cli.parser import FAILURE, INTERRUPTED, OK, USAGE, Parser
from tensorken_core.host.load_monitor import write_message

__all__ = [
    "FAILURE",
    "INTERRUPTED",
    "OK",
    "USAGE",
    "Parser",
    "colours",
    "print_table",
    "write",
    "write_message",
]
