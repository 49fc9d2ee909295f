"""The command `tensorken`: lists and checks the installed plugins, and runs the subcommands of plugins.

It prints no tracebacks (TENSORKEN_TRACE_PLUGINS=1 shows them), and only ASCII, which every console can show.
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
from collections.abc import Iterable, Sequence
from typing import Any

from tensorken_core.errors import BackendError, TensorkenError
from tensorken_core.host.backend_choice import VARIABLES, BackendChoice
from tensorken_core.host.discovery import (
    OURS,
    Group,
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
"""The distributions of our own subcommands; these names alone select no other distribution's subcommand."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `tensorken` with these arguments (None: the process's arguments); return its exit status.

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
        if _is_broken_pipe(error):
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
    doctor = commands.add_parser("doctor", help="load everything, and report faults and how to fix them")
    limit = "time for each to load (%(default)g)"
    for subparser in (backends, doctor):
        subparser.add_argument("--limit", type=_seconds, default=LIMIT, metavar="SECONDS", help=limit)
    return parser


def _seconds(text: str) -> float:
    """The value of an option in seconds.

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
    probes = probe_all(records, options.limit) if options.probe else [Probe(record) for record in records]
    chosen, error = _default()
    if options.json:
        print(json.dumps(_as_data(probes, options.probe, chosen, error), indent=2))
        return 0
    default = chosen.record.key if chosen and chosen.record else None
    rows = [("name", "distribution", "version", "needs core", "status")]
    for probe in probes:
        record = probe.record
        status = f"{record.status}: {record.reason}" if record.reason else record.status
        if options.probe and probe.loads:
            status = f"loads; devices: {', '.join(probe.devices)}"
        name = f"{record.name} *" if record.key == default else record.name
        rows.append((name, record.distribution, record.version, record.needs or "any", status))
    _print_table(rows)
    for probe in probes:
        for number, (device, facts) in enumerate(probe.facts.items()):
            if facts:
                _print(f"\n{probe.record.selector}:{number} is {device}")
                _print_table(facts.items())
    _print(f"\n* default: {chosen}" if chosen else f"\nno default: {error}")
    return 0


def _as_data(
    probes: Iterable[Probe], probed: bool, chosen: BackendChoice | None, error: str
) -> dict[str, Any]:
    """The output of `--json`; "schema" counts its changes."""
    columns = ("name", "distribution", "version", "needs", "status", "reason")
    return {
        "schema": 2,
        "core": core_version(),
        "language": SPEC_VERSION,
        "default": {"name": chosen.name, "device": chosen.device, "why": chosen.why} if chosen else None,
        "error": error or None,
        "backends": [
            {column: getattr(probe.record, column) for column in columns}
            | {
                column: getattr(probe, column) if probed and probe.loads else None
                for column in ("devices", "facts")
            }
            for probe in probes
        ],
    }


def _default() -> tuple[BackendChoice | None, str]:
    """The default backend, predicted from metadata, or why there is none."""
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
    headers: list[str] = []
    notes = [
        f"unknown variable {v}{suggested(matches)}" for v, matches in SELECTION.unknown_variables().items()
    ]
    titles: dict[Group, str] = {
        "backends": "backends",
        "plugins": "plugins",
        "namespace": "names",
        "commands": "subcommands",
    }
    for group, title in titles.items():
        records = REGISTRY.records(group)
        if group != "commands":
            probes = probe_all(records, options.limit)
            records = [probe.record for probe in probes]
            headers += [line for probe in probes for line in probe.header]
        _print(f"\n{title}" if records else f"\n{title}: none")
        loaded = {"available": "available" if group == "commands" else "loads"}
        _print_table([(r.name, r.distribution, r.version, loaded.get(r.status, r.status)) for r in records])
        notes += [f"{record}: {record.reason}" for record in records if record.reason]
    _print("".join(f"\n  {line}" for line in headers))
    default = probe_default(options.limit)
    _print(f"in use: {default.choice or 'nothing'}")
    notes += [*REGISTRY.problems, *default.notes, *([default.error] if default.error else [])]
    _print("to fix:" if notes else "nothing to fix")
    for note in notes:
        _print(f"  {note}".replace("\n", "\n  "))
    return 0 if default.choice else 1


# ---- subcommands of plugins --------------------------------------------------------------------------------


def _run_plugin(command: str, arguments: list[str]) -> int:
    name, _, distribution = command.partition("@")
    records = REGISTRY.find("commands", name, distribution)
    if len(records) > 1:
        write_message(
            f"{name} comes from {len(records)} distributions; write {' or '.join(r.selector for r in records)}"
        )
        return 2
    if records:
        return REGISTRY.load_object(records[0])(arguments) or 0
    owner = COMMANDS.get(normalized(name))
    if owner:
        write_message(f"{name} is a subcommand of {owner}, which is not installed: pip install {owner}")
        return 2
    names = {*OWN_COMMANDS, *COMMANDS, *(record.name for record in REGISTRY.records("commands"))}
    matches = close_matches(normalized(name), names)
    write_message(f"there is no subcommand {command!r}{suggested(matches)} (tensorken --help lists them)")
    return 2


OWN_COMMANDS = {"backends": _list_backends, "doctor": _examine}


# ---- output ------------------------------------------------------------------------------------------------


def _print(text: str) -> None:
    print(to_ascii(text))


def _print_table(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows in aligned columns."""
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


def _is_broken_pipe(error: Exception) -> bool:
    """Whether the reader of stdout has exited, as in `tensorken ... | head`; Windows reports EINVAL."""
    on_windows = sys.platform == "win32" and isinstance(error, OSError) and error.errno == errno.EINVAL
    return isinstance(error, BrokenPipeError) or on_windows


def _abandon_output() -> None:
    """Send later output, such as the flush at exit, to the null device."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
