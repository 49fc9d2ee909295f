"""Write the manual pages of the command `tensorken` from its parsers: `python -m tools.manual`.

A distribution with a subcommand has its pages in its folder `man/`; its wheel installs them into `share/man/man1`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorken_cli import Parser
from tensorken_cli.parser import EXIT_STATUSES, HelpFormatter
from tensorken_cli.parsers import OWN_COMMANDS
from tensorken_cli.plugin_commands import first_line
from tensorken_core.host.backend_choice import VARIABLES
from tools.workspace import ROOT

SUBCOMMANDS = {
    "conformance": ("conformance", "tensorken_conformance.cli"),
    "gpu-report": ("backends/wgpu", "tensorken_wgpu.report.cli"),
    "new": ("conformance", "tensorken_conformance.new"),
    "sample": ("plugins/nn", "tensorken_nn.sample"),
    "train": ("plugins/nn", "tensorken_nn.cli"),
}
"""The folders of the distributions with our subcommands, and the modules of these."""

ENVIRONMENT = {
    **VARIABLES,
    "NO_COLOR": "not empty: no colours",
    "FORCE_COLOR": "not empty: colours, even if the output is no terminal",
}


def pages() -> dict[Path, str]:
    """The text of each page by its file."""
    texts = {ROOT / "core" / "man" / "tensorken.1": _command_page()}
    for name, (folder, module_name) in SUBCOMMANDS.items():
        module = importlib.import_module(module_name)
        parser = Parser(f"tensorken {name}", description=first_line(f'"""{module.__doc__}"""'))
        module.add_arguments(parser)
        texts[ROOT / folder / "man" / f"tensorken-{name}.1"] = _page(parser, ["tensorken"])
    return texts


def _command_page() -> str:
    parser = Parser(
        "tensorken", description="List and check installed backends and plugins, and run subcommands."
    )
    parser.add_argument("--version", action="store_true", help="print the versions")
    parser.add_argument("--json", action="store_true", help="with --version: print all versions as JSON")
    subparsers = parser.add_subparsers(metavar="SUBCOMMAND", title="subcommands")
    for name in OWN_COMMANDS:
        subparser = subparsers.add_parser(name, description=OWN_COMMANDS[name])
        importlib.import_module(f"tensorken_cli.{name}").add_arguments(subparser)
    return _page(parser, [f"tensorken-{name}" for name in SUBCOMMANDS])


def _page(parser: argparse.ArgumentParser, others: list[str]) -> str:
    """The page of a parser in the language of troff, with its subparsers as sections.

    Args:
        parser: the parser.
        others: the pages to see.
    """
    name = parser.prog.replace(" ", "-")
    about = (parser.description or "").rstrip(".")
    lines = [f'.TH {name.upper()} 1 "" "" "Tensorken for Python"']
    lines += [".SH NAME", f"{_text(name)} \\- {_text(about[:1].lower() + about[1:])}"]
    lines += [".SH SYNOPSIS", *_synopsis(parser), ".SH DESCRIPTION", _text(f"{about}.")]
    options = [*_arguments(parser)]
    lines += [".SH OPTIONS", *options] if options else []
    sections = [*_subparsers(parser)]
    if sections:
        lines.append(".SH SUBCOMMANDS")
    for subparser in sections:
        described = (subparser.description or "").rstrip(".")
        lines += [f".SS {_text(subparser.prog)}", _text(f"{described[:1].upper()}{described[1:]}.")]
        lines += [".PP", *_synopsis(subparser), *_arguments(subparser)]
        lines += [".PP", _text(subparser.epilog)] if subparser.epilog else []
    lines.append(".SH ENVIRONMENT")
    for variable, meaning in ENVIRONMENT.items():
        lines += [".TP", f".B {_text(variable)}", _text(meaning)]
    lines.append(".SH EXIT STATUS")
    for status in EXIT_STATUSES.partition(": ")[2].split("; "):
        number, _, meaning = status.partition(" ")
        lines += [".TP", f".B {number}", _text(meaning)]
    lines += [".SH SEE ALSO", ", ".join([f"\\fB{_text(other)}\\fR(1)" for other in others])]
    return "\n".join([*lines, ""])


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _synopsis(parser: argparse.ArgumentParser) -> list[str]:
    positionals = [action for action in parser._actions if not action.option_strings]
    words = [_value(action) for action in positionals]
    return [f".B {_text(parser.prog)}", _text(" ".join(["[options]", *words]))]


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The lines about the arguments of a parser, except --help, subcommands and hidden ones."""
    for action in parser._actions:
        is_listed = not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
        if not is_listed or action.help == argparse.SUPPRESS:
            continue
        value = f" \\fI{_text(_value(action))}\\fR" if action.nargs != 0 else ""
        names = [f"\\fB{_text(option)}\\fR{value}" for option in action.option_strings]
        meaning = HelpFormatter(parser.prog)._expand_help(action) if action.help else ""
        yield from (".TP", ", ".join(names) or value.strip(), _text(meaning) or "\\&")


def _value(action: argparse.Action) -> str:
    """The name of an argument's value, such as `[COUNT ...]`."""
    formatter: Any = HelpFormatter("")
    text: str = formatter._format_args(action, action.dest)
    return text


def _text(text: str) -> str:
    """A text in the language of troff."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def main() -> int:
    """Write all pages; returns the exit status."""
    for file, text in pages().items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="ascii", newline="\n")
        print(file.relative_to(ROOT).as_posix())
    return 0


if __name__ == "__main__":
    sys.exit(main())
