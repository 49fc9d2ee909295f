"""The subcommand `tensorken backends`: list the installed backends."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from typing import Any

from tensorken_cli.output import print_table, write
from tensorken_cli.parser import FAILURE, OK
from tensorken_cli.probing import Probe, add_limit, probe_all
from tensorken_core.errors import BackendError
from tensorken_core.host.backend_choice import BackendChoice
from tensorken_core.host.discovery import PluginRecord, core_version
from tensorken_core.host.plugin import SPEC_VERSION
from tensorken_core.host.registry import SELECTION

_COMPLETED = re.compile(r"[\w.@-]+", re.ASCII)
"""The names that are printed for shells, which expand others."""

CHOOSING = """\
To use another backend than the default, set TENSORKEN_BACKEND=NAME, call tk.use_backend("NAME"),
or pass --backend NAME to a subcommand. NAME:1 is the second device of a backend."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    parser.epilog = CHOOSING
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--names", action="store_true", help="print only the names, one on each line")
    parser.add_argument(
        "--probe",
        nargs="*",
        metavar="NAME",
        help="try to load each, or those of these names, in a process of its own",
    )
    add_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Run the subcommand; returns the exit status."""
    names, probed = options.probe or [], options.probe is not None
    records = SELECTION.backends() if not names else _named(names)
    if options.names:
        for record in records:
            if _COMPLETED.fullmatch(record.selector):
                write(record.selector)
        return OK
    probes = probe_all(records, options.limit) if probed else [Probe(record) for record in records]
    exit_status = FAILURE if names and not all([probe.loads for probe in probes]) else OK
    chosen, error = _default()
    if options.json:
        print(json.dumps(_as_data(probes, probed, chosen, error), indent=2))
        return exit_status
    default = chosen.record.key if chosen and chosen.record else None
    rows = [("name", "distribution", "version", "needs core", "status")]
    for probe in probes:
        record = probe.record
        status = f"{record.status}: {record.reason}" if record.reason else record.status
        if probed and probe.loads:
            status = f"loads; devices: {', '.join(probe.devices)}"
        name = f"{record.name} *" if record.key == default else record.name
        rows.append((name, record.distribution, record.version, record.needs or "any", status))
    print_table(rows, header=True)
    for probe in probes:
        for number, (device, facts) in enumerate(probe.facts.items()):
            if facts:
                write(f"\n{probe.record.selector}:{number} is {device}")
                print_table(facts.items())
    write(f"\n* default: {chosen}" if chosen else f"\nno default: {error}")
    return exit_status


def _named(names: Iterable[str]) -> list[PluginRecord]:
    """The backends of these names, each once.

    Raises:
        UnknownBackendError: if there is none of a name.
    """
    found: dict[tuple[str, str], PluginRecord] = {}
    for text in names:
        for record in SELECTION.named(text):
            found.setdefault(record.key, record)
    return list(found.values())


def _as_data(
    probes: Iterable[Probe], probed: bool, chosen: BackendChoice | None, error: str
) -> dict[str, Any]:
    """The output of `--json`; "schema" counts its changes."""
    columns = ("name", "distribution", "version", "needs", "status", "reason")
    return {
        "schema": 3,
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
