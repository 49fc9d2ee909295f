"""The argument parser of the command and its subcommands, and their exit statuses."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tensorken_cli.output import colours, rich_console
from tensorken_core.host.discovery import close_matches, did_you_mean, suggested
from tensorken_core.host.load_monitor import to_ascii

OK = 0
"""The exit status of success."""
FAILURE = 1
"""The exit status if the command failed, or found a fault."""
USAGE = 2
"""The exit status if an argument is wrong; nothing was done."""
INTERRUPTED = 130
"""The exit status of a program ended by Ctrl-C, as in shells."""

EXIT_STATUSES = "exit status: 0 success; 1 failure, or a fault was found; 2 wrong argument; 130 interrupted"

STYLES = {
    "argparse.groups": "bold",
    "argparse.prog": "bold",
    "argparse.args": "cyan",
    "argparse.metavar": "green",
}
"""The colours of help."""


class _Subcommands:
    """Lists subcommands as options are listed, without a line for the argument that chooses one."""

    def add_argument(self, action: argparse.Action) -> None:
        subcommands: Any = isinstance(action, argparse._SubParsersAction) and action._get_subactions()
        for listed in subcommands or [action]:
            super().add_argument(listed)  # type: ignore[misc]


class HelpFormatter(_Subcommands, argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of the description and the epilog."""


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` with errors of two lines, which suggest the option or the word that was meant.

    The exit status of errors is 2.  Options cannot be abbreviated.  Help keeps the line breaks of the description and
    the epilog, and has colours if stdout is a terminal and rich-argparse is installed.  Subparsers have this class
    as well.

    >>> parser = Parser("tensorken toy")
    >>> _ = parser.add_argument("--backend")
    >>> parser.parse_args(["--backend", "numpy"]).backend
    'numpy'
    """

    def __init__(self, prog: str | None = None, **settings: Any) -> None:
        settings.setdefault("allow_abbrev", False)
        settings.setdefault("formatter_class", HelpFormatter)
        super().__init__(prog, **settings)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse all arguments; unknown ones are errors already here, since argparse calls this method of subparsers."""
        given = sys.argv[1:] if args is None else list(args)
        first = given[0].partition("=")[0] if given else ""
        if self._subparsers and first.startswith("-") and first not in self._option_string_actions:
            self._refuse(first)  # otherwise its value would be taken for a subcommand
        options, unknown = super().parse_known_args(given, namespace)
        if unknown:
            self._refuse(unknown[0].partition("=")[0])
        return options, unknown

    def _refuse(self, argument: str) -> NoReturn:
        if not argument.startswith("-"):
            self.error(f"unexpected argument {argument!r}")
        options = {option.lstrip("-"): option for option in self._option_string_actions}
        matches = close_matches(argument.lstrip("-").replace("_", "-"), options)
        self.error(f"there is no option {argument}{suggested([options[name] for name in matches])}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            meant = did_you_mean(str(value), names) or f"; choose from {', '.join(names)}"
            self.error(f"there is no {str(action.metavar or action.dest).lower()} {value!r}{meant}")

    def error(self, message: str) -> NoReturn:
        """Print the message and a line that names --help to stderr, and exit with status 2."""
        text = (
            f"{self.prog}: {message.removeprefix('argument ')}\n  '{self.prog} --help' lists the arguments\n"
        )
        self.exit(USAGE, to_ascii(text))

    def format_help(self) -> str:
        if colours(sys.stdout):
            self.formatter_class = _coloured_formatter() or self.formatter_class
        return super().format_help()


def _coloured_formatter() -> Any:
    """The formatter of rich-argparse; None if it is not installed."""
    try:
        from rich_argparse import RawDescriptionRichHelpFormatter
    except ImportError:
        return None

    styles = {**RawDescriptionRichHelpFormatter.styles, **STYLES}
    facts = {"styles": styles, "group_name_formatter": str}
    facts |= {"text_markup": False, "help_markup": False}  # the brackets in our texts are no markup
    formatter = type("Formatter", (_Subcommands, RawDescriptionRichHelpFormatter), facts)
    return functools.partial(formatter, console=rich_console())
