"""The command `tensorken conformance`."""

from __future__ import annotations

import argparse
from collections import Counter

from tensorken_conformance.runner import Options, run


def main(arguments: list[str]) -> int:
    """Run the command with these arguments; returns its exit status."""
    parser = argparse.ArgumentParser(prog="tensorken conformance", description="Prove a backend right.")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="examine a backend")
    running.add_argument("backend")
    running.add_argument("--seed", type=int, default=0)
    running.add_argument("--smoke", dest="depth", action="store_const", const="smoke", default="default")
    running.add_argument("--deep", dest="depth", action="store_const", const="deep")
    running.add_argument("--select", action="append", default=[], metavar="LAW")
    options = parser.parse_args(arguments)
    found = run(Options(options.backend, options.seed, options.depth, tuple(options.select)))
    counts = Counter(result.status for result in found.results)
    for result in found.results:
        if result.status in ("failed", "crashed"):
            print(result.case.id, result.says, *result.script, sep="\n    ")
    print(dict(counts))
    return 1 if counts["failed"] + counts["crashed"] or not counts["passed"] else 0
