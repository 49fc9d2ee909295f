"""The subcommands of plugins: their descriptions, found without importing them, and their run."""

from __future__ import annotations

import ast
import importlib.util
import io
import tokenize
from collections.abc import Iterable
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import Any

from tensorken_cli.parser import USAGE
from tensorken_core.host.discovery import OURS, PluginRecord, close_matches, normalized, suggested
from tensorken_core.host.load_monitor import to_ascii, write_message
from tensorken_core.host.registry import REGISTRY

COMMANDS = OURS["commands"]
"""The distributions of our own subcommands; these names alone select no other distribution's subcommand."""


def run(command: str, arguments: list[str], own: Iterable[str]) -> int:
    """Run the subcommand of a plugin, `name` or `name@distribution`; returns its exit status.

    Args:
        command: the subcommand.
        arguments: its arguments.
        own: the names of the subcommands that are no plugins, for suggestions.
    """
    name, _, distribution = command.partition("@")
    records = REGISTRY.find("commands", name, distribution)
    if len(records) > 1:
        write_message(
            f"{name} comes from {len(records)} distributions; write {' or '.join(r.selector for r in records)}"
        )
        return USAGE
    if records:
        return REGISTRY.load_object(records[0])(arguments) or 0
    owner = COMMANDS.get(normalized(name))
    if owner:
        write_message(f"{name} is a subcommand of {owner}, which is not installed: pip install {owner}")
        return USAGE
    names = {*own, *COMMANDS, *(record.name for record in REGISTRY.records("commands"))}
    matches = close_matches(normalized(name), names)
    write_message(f"there is no subcommand {command!r}{suggested(matches)} (tensorken --help lists them)")
    return USAGE


def descriptions() -> dict[str, str]:
    """The descriptions of the subcommands of plugins, by the texts that select them; imports no plugin."""
    found = {}
    for record in REGISTRY.records("commands"):
        origin = f"from {record.distribution} {record.version}"
        text = description(record) if record.status in ("available", "clash") else ""
        is_ours = COMMANDS.get(record.name) == normalized(record.distribution)
        found[to_ascii(record.selector)] = (
            text if text and is_ours else f"{text} ({origin})" if text else origin
        )
    return found


def description(record: PluginRecord) -> str:
    """The first line of the docstring of a subcommand's module, without its full stop; empty if there is none.

    The module is found and read, not imported.
    """
    if record.entry_point is None:
        return ""
    with suppress(Exception):  # an import system of a plugin may raise anything
        package, *rest = record.entry_point.module.split(".")
        spec: Any = importlib.util.find_spec(package)
        for name in rest:
            spec = PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
        line = first_line(spec.loader.get_source(spec.name)).rstrip(".")
        return to_ascii(line[:1].lower() + line[1:] if line[1:2].islower() else line)
    return ""


def first_line(source: str) -> str:
    """The first line of the docstring of a module's source; empty if it has none.

    >>> first_line("'Greet somebody.'")
    'Greet somebody.'
    """
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            text = ast.literal_eval(token.string)
            return text.strip().partition("\n")[0].strip() if isinstance(text, str) else ""
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            break
    return ""
