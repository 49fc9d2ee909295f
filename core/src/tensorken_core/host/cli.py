"""The command `tensorken`: what is installed, what is wrong with it, and the subcommands that plugins bring.

Users see no traceback (TENSORKEN_TRACE_PLUGINS=1 shows it), and plain ASCII, whatever their console can do.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import platform
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from tensorken_core.errors import BackendError, TensorkenError
from tensorken_core.host.backend_choice import VARIABLES, Choice
from tensorken_core.host.discovery import (
    OURS,
    Group,
    PluginRecord,
    close_matches,
    core_version,
    describe,
    normalized,
    suggested,
    trace_enabled,
)
from tensorken_core.host.load_monitor import to_ascii, write_message
from tensorken_core.host.plugin import SPEC_VERSION
from tensorken_core.host.probing import LIMIT, Probe, probe_all, probe_default
from tensorken_core.host.registry import REGISTRY, SELECTION

COMMANDS = OURS["commands"]
"""The distributions of our own subcommands; no other distribution's is selected by these names alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `tensorken` with these arguments (None: those of the process); returns its exit status.

    >>> main(["backends", "--colour"])
    Traceback (most recent call last):
    SystemExit: 2
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        write_message("interrupted")
        return 130
    except Exception as error:  # noqa: BLE001, users see no traceback
        if _reader_is_gone(error):
            _abandon_output()
        else:
            _report(error, arguments[0] if arguments else "help")
        return 1


def _run(arguments: list[str]) -> int:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in OWN_COMMANDS:
        return _run_plugin(arguments[0], arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    return int(OWN_COMMANDS[options.command](options))


def _parser() -> argparse.ArgumentParser:
    from_plugins = [
        f"  {to_ascii(r.selector):<14} from {r.distribution} {r.version}"
        for r in REGISTRY.records("commands")
    ]
    parser = argparse.ArgumentParser(
        prog="tensorken",
        description="A small language of tensor operations with many interpreters.",
        epilog="\n".join(["subcommands of plugins:", *from_plugins]) if from_plugins else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"tensorken-core {core_version() or '(not installed)'}, language {SPEC_VERSION}"
    python = f"Python {platform.python_version()}"
    parser.add_argument("--version", action="version", version=f"{version}, {python}")
    commands = parser.add_subparsers(dest="command", metavar="subcommand")
    backends = commands.add_parser("backends", help="list the installed backends; nothing is imported")
    backends.add_argument("--json", action="store_true", help="print JSON")
    backends.add_argument("--probe", action="store_true", help="try to load each, in a process of its own")
    doctor = commands.add_parser("doctor", help="try everything, and say what is wrong and how to mend it")
    for parser_of_one in (backends, doctor):
        parser_of_one.add_argument(
            "--limit",
            type=_seconds,
            default=LIMIT,
            metavar="SECONDS",
            help="what each has to load (%(default)g)",
        )
    return parser


def _seconds(text: str) -> float:
    """A time for an option.

    >>> _seconds("2.5")
    2.5
    """
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise ValueError
    return seconds


# ---- tensorken backends ------------------------------------------------------------------------------------


def _list_backends(options: argparse.Namespace) -> int:
    records = SELECTION.backends()
    probes = probe_all(records, options.limit) if options.probe else []
    records = [probe.record for probe in probes] or records
    loaded = {probe.record.key: probe for probe in probes if probe.loads}
    chosen, why_not = _default()
    if options.json:
        print(json.dumps(_as_data(records, loaded, chosen, why_not), indent=2))
        return 0
    default = chosen.record.key if chosen and chosen.record else None
    rows = [
        (
            f"{record.name} *" if record.key == default else record.name,
            record.distribution,
            record.version,
            record.needs or "any",
            _status(record, loaded.get(record.key)),
        )
        for record in records
    ]
    _print_table([("name", "distribution", "version", "needs core", "status"), *rows])
    for probe in loaded.values():
        for number, (device, known) in enumerate(probe.facts.items()):
            if known:
                _print(f"\n{probe.record.selector}:{number} is {device}")
                _print_table(known.items())
    _print(f"\n* default: {chosen}" if chosen else f"\nno default: {why_not}")
    return 0


def _status(record: PluginRecord, probe: Probe | None) -> str:
    if probe is not None:
        return f"loads; devices: {', '.join(probe.devices)}"
    return f"{record.status}: {record.reason}" if record.reason else record.status


def _as_data(
    records: Iterable[PluginRecord],
    loaded: Mapping[Any, Probe],
    chosen: Choice | None,
    why_not: str,
) -> dict[str, Any]:
    """What `--json` prints; "schema" counts its changes."""
    told_of_all = ("name", "distribution", "version", "needs", "status", "reason")
    return {
        "schema": 2,
        "core": core_version(),
        "language": SPEC_VERSION,
        "default": {"name": chosen.name, "device": chosen.device, "why": chosen.why} if chosen else None,
        "error": why_not or None,
        "backends": [
            {fact: getattr(record, fact) for fact in told_of_all}
            | {fact: getattr(loaded.get(record.key), fact, None) for fact in ("devices", "facts")}
            for record in records
        ],
    }


def _default() -> tuple[Choice | None, str]:
    """The choice that metadata foretell, or why there is none."""
    try:
        return SELECTION.default_backend(), ""
    except BackendError as error:
        return None, str(error)


# ---- tensorken doctor --------------------------------------------------------------------------------------


def _examine(options: argparse.Namespace) -> int:
    _print(f"Python     {platform.python_version()} ({platform.python_implementation()}), {sys.executable}")
    _print(f"platform   {platform.platform()}")
    _print(f"core       {core_version() or 'not installed, runs from a folder'}, language {SPEC_VERSION}")
    _print(
        f"variables  {', '.join(f'{v}={os.environ[v]!r}' for v in VARIABLES if v in os.environ) or 'none'}"
    )
    titles: dict[Group, str] = {"backends": "backends", "plugins": "plugins", "namespace": "names"}
    probes = {title: probe_all(REGISTRY.records(group), options.limit) for group, title in titles.items()}
    found = {title: [probe.record for probe in rows] for title, rows in probes.items()}
    found["subcommands"] = REGISTRY.records("commands")
    for title, records in found.items():
        _print(f"\n{title}" if records else f"\n{title}: none")
        _print_table(map(_examined, records))
    _print("".join(f"\n  {line}" for probe in chain(*probes.values()) for line in probe.header))
    notes = [f"nobody reads {v}{suggested(likely)}" for v, likely in SELECTION.unknown_variables().items()]
    notes += [f"{record}: {record.reason}" for record in chain(*found.values()) if record.reason]
    notes += REGISTRY.problems
    used = probe_default(options.limit)
    _print(f"in use: {used.choice or 'nothing'}")
    notes += [*used.notes, *([used.error] if used.error else [])]
    _print("to mend:" if notes else "nothing to mend")
    for note in notes:
        _print(f"  {note}".replace("\n", "\n  "))
    return 0 if used.choice else 1


def _examined(record: PluginRecord) -> tuple[str, ...]:
    loaded = record.group != "commands" and record.status == "available"
    return record.name, record.distribution, record.version, "loads" if loaded else record.status


# ---- subcommands of plugins --------------------------------------------------------------------------------


def _run_plugin(command: str, arguments: list[str]) -> int:
    name, _, distribution = command.partition("@")
    found = REGISTRY.find("commands", name, distribution)
    if len(found) > 1:
        write_message(
            f"{name} comes from {len(found)} distributions; write {' or '.join(r.selector for r in found)}"
        )
        return 2
    if found:
        return REGISTRY.load_object(found[0])(arguments) or 0
    known = COMMANDS.get(normalized(name))
    if known:
        write_message(f"{name} is a subcommand of {known}, which is not installed: pip install {known}")
        return 2
    names = {*OWN_COMMANDS, *COMMANDS, *(record.name for record in REGISTRY.records("commands"))}
    likely = close_matches(normalized(name), names)
    write_message(f"there is no subcommand {command!r}{suggested(likely)} (tensorken --help lists them)")
    return 2


OWN_COMMANDS = {"backends": _list_backends, "doctor": _examine}


# ---- output ------------------------------------------------------------------------------------------------


def _print(text: str) -> None:
    print(to_ascii(text))


def _print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in columns as wide as need be; the last column is as it is."""
    lines = [tuple(map(to_ascii, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)]
        _print(f"  {'  '.join(cells)}")


def _report(error: Exception, command: str) -> None:
    if trace_enabled():
        traceback.print_exception(error)
    if isinstance(error, TensorkenError):
        write_message(str(error))
    else:
        hint = "" if trace_enabled() else "; TENSORKEN_TRACE_PLUGINS=1 shows where"
        write_message(f"{command}: {describe(error)}{hint}")


def _reader_is_gone(error: Exception) -> bool:
    """Whether the error is that of `tensorken ... | head`; Windows has no number of its own for it."""
    on_windows = sys.platform == "win32" and isinstance(error, OSError) and error.errno == errno.EINVAL
    return isinstance(error, BrokenPipeError) or on_windows


def _abandon_output() -> None:
    """Give the flush at exit somewhere to go."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
