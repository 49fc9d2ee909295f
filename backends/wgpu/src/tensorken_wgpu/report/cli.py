"""Measure a GPU, and write a report that can be sent.

This is the subcommand `tensorken gpu-report`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tensorken as tk
from tensorken_cli import Parser
from tensorken_core.errors import BackendError
from tensorken_wgpu.device import adapters
from tensorken_wgpu.report.bench import Bench
from tensorken_wgpu.report.page import to_page
from tensorken_wgpu.report.sections import SECTIONS, Section, measured
from tensorken_wgpu.report.text import line

FORMAT = 1
"""The version of the layout of the JSON file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `tensorken gpu-report` with these arguments (None: those of the process); returns its exit status.

    The status is 0 if the device could be opened, also if measurements failed: the report contains the errors.
    """
    parser = Parser("tensorken gpu-report", description="Measure a GPU, and write a report that can be sent.")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    for file in (options.json, options.html):  # before the measurements, which take minutes
        if file is not None and (file.is_dir() or not file.resolve().parent.is_dir()):
            print(f"error: cannot write {file}: it is a folder, or in no folder", file=sys.stderr)
            return 2
    try:
        name = adapters.choice(adapters.adapter_of(options.device))
    except BackendError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    bench = Bench(name, options.quick, options.tiny)
    sections: dict[str, Section] = {}
    with tk.use_backend("wgpu", name):
        for section in options.sections:
            _print(f"\n{SECTIONS[section][0]}")
            sections[section] = measured(bench, section, lambda row: _print(f"  {line(row)}"))
    title = f"GPU report: {bench.device.name}"
    _write(options.json, json.dumps(_as_data(title, options.quick, sections), indent=1, default=str))
    _write(options.html, to_page(title, [*sections.values()]))
    _print(_how_to_send(options))
    return 0


def _as_data(title: str, quick: bool, sections: dict[str, Section]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "title": title,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "quick": quick,
        "sections": {name: asdict(section) for name, section in sections.items()},
    }


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")
        _print(f"\nwrote {path}")


def _how_to_send(options: argparse.Namespace) -> str:
    if options.json is None:
        return "\nto send this report, write it to a file: tensorken gpu-report --json report.json --html report.html"
    return (
        '\nto send this report, open an issue with the title "GPU report: <your GPU>" in the project\'s issue '
        f"tracker (pip show tensorken lists its address), and attach {options.json}; it names the device, the "
        "driver, the system and the versions, and nothing else of this machine"
    )


def _print(text: str) -> None:
    """Print; characters that the console cannot show are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    add = parser.add_argument
    add("device", nargs="?", help="the name or number of the device (tensorken backends --probe lists them)")
    add("--json", type=Path, metavar="FILE", help="write the report as data")
    add("--html", type=Path, metavar="FILE", help="write the report as a page")
    add("--quick", action="store_true", help="small sizes and short measurements: under a minute")
    add("--tiny", action="store_true", help=argparse.SUPPRESS)
    add(
        "--sections",
        nargs="+",
        choices=[*SECTIONS],
        default=[*SECTIONS],
        metavar="SECTION",
        help=f"only these: {', '.join(SECTIONS)}",
    )
