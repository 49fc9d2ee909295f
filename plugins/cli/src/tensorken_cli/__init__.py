"""The command `tensorken`, and the parts that subcommands of plugins share with it.

A subcommand is an entry point of the group `tensorken.commands`: a function from `list[str]` to an exit status.  The first
line of its module's docstring is its description.  The module may have a function `add_arguments(parser)`, from which shell
completion knows its options.
"""

from __future__ import annotations

from tensorken_cli.output import colours, print_table, write
from tensorken_cli.parser import FAILURE, INTERRUPTED, OK, USAGE, Parser

__all__ = ["FAILURE", "INTERRUPTED", "OK", "USAGE", "Parser", "colours", "print_table", "write"]
