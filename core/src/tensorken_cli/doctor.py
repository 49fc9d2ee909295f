"""The subcommand `tensorken doctor`: load everything, and report faults and how to fix them."""

from __future__ import annotations

import argparse
import os
import platform
import sys

from tensorken_cli.output import print_table, write
from tensorken_cli.parser import FAILURE, OK
from tensorken_cli.probing import add_limit, probe_all, probe_default
from tensorken_core.host.backend_choice import VARIABLES
from tensorken_core.host.discovery import Group, core_version, suggested
from tensorken_core.host.plugin import SPEC_VERSION
from tensorken_core.host.registry import REGISTRY, SELECTION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    parser.epilog = (
        "The exit status is 1 if there is something to fix. A backend without a device here is no fault."
    )
    add_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Run the subcommand; returns the exit status, 1 if there is something to fix."""
    write(f"Python     {platform.python_version()} ({platform.python_implementation()}), {sys.executable}")
    write(f"platform   {platform.platform()}")
    write(f"core       {core_version() or 'not installed, runs from a folder'}, language {SPEC_VERSION}")
    write(f"variables  {', '.join(f'{v}={os.environ[v]!r}' for v in VARIABLES if v in os.environ) or 'none'}")
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
        write(f"\n{title}" if records else f"\n{title}: none")
        loaded = {"available": "available" if group == "commands" else "loads"}
        here = {r.key: f"unavailable: {r.reason}" for r in records if r.status == "unavailable"}
        statuses = [here.get(r.key) or loaded.get(r.status, r.status) for r in records]
        print_table([(r.name, r.distribution, r.version, s) for r, s in zip(records, statuses, strict=True)])
        notes += [
            f"{record}: {record.reason}" for record in records if record.reason and record.key not in here
        ]
    write("".join(f"\n  {line}" for line in headers))
    default = probe_default(options.limit)
    write(f"in use: {default.choice or 'nothing'}")
    notes += [*REGISTRY.problems, *default.notes, *([default.error] if default.error else [])]
    write("to fix:" if notes else "nothing to fix")
    for note in notes:
        write(f"  {note}".replace("\n", "\n  "))
    return FAILURE if notes or not default.choice else OK
