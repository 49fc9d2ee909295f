"""Run the benchmarks: tables of ratios to peers in the same run, written to docs/performance.md.

`--check` exits with 1 if a figure is beyond its bound. Only complete suites are written to the page.
"""

from __future__ import annotations

import argparse
import io
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import environment

environment.configure()  # before the libraries are imported

import page  # noqa: E402, the environment comes first
from harness import DIFFERS, Row, pin  # noqa: E402
from suites import SUITES, Suite  # noqa: E402

BOUNDS = Path(__file__).parent / "bounds.toml"


def main(arguments: list[str]) -> int:
    """Run the suites; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a figure is beyond its bound")
    parser.add_argument("--suite", choices=SUITES, help="only this suite")
    parser.add_argument(
        "--select", default="", help="only workloads whose names contain this; does not write the page"
    )
    parser.add_argument("--peers", help="only these peers, as in jax,torch; does not write the page")
    options = parser.parse_args(arguments)
    bounds = tomllib.loads(BOUNDS.read_text(encoding="utf-8"))
    pin()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # some consoles lack µ
    print(page.machine())
    wrong = []
    for name, suite in SUITES.items():
        if options.suite in (None, name):
            chosen = suite.peers if options.peers is None else options.peers.split(",")
            wrong += _run(name, suite, chosen, options.select, bounds.get(name, {}), options.peers is None)
    if wrong:
        print(f"beyond their bounds: {', '.join(wrong)}")
    return 1 if options.check and wrong else 0


def _run(
    name: str, suite: Suite, peers: Sequence[str], select: str, bounds: dict[str, page.Bound], complete: bool
) -> list[str]:
    """Run a suite, print its rows, and write it if complete; returns the workloads beyond their bounds."""
    table = page.Table({peer: suite.titles.get(peer, peer) for peer in peers}, bounds)
    print(f"\n{name}\n{table.head()}", flush=True)
    rows: list[Row] = []
    for row in suite.rows(peers, select):
        rows.append(row)
        print(table.line(row), flush=True)
    if rows and complete and not select:
        page.write(name, f"{table.markdown(rows)}\n\n{suite.where()}".rstrip())
    missed = [row.name for row in rows if table.missed(row) or DIFFERS in row.ratios.values()]
    return [f"{name}/{workload}" for workload in missed]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
