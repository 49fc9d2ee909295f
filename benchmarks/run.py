"""Runs the benchmarks: a table of ratios to peers in the same run; `--check` exits with 1 beyond a bound."""

from __future__ import annotations

import argparse
import platform
import sys
import tomllib
from pathlib import Path

import eager
import jacobians
from harness import Figure, compare, pin

SUITES = {"eager": eager.workloads, "jacobians": jacobians.workloads}


def main(arguments: list[str]) -> int:
    """Run the suites; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a ratio is beyond its bound")
    parser.add_argument("--select", default="", help="run only workloads whose name contains this")
    options = parser.parse_args(arguments)
    bounds = tomllib.loads(Path(__file__).with_name("bounds.toml").read_text(encoding="utf-8"))
    pin()
    print(
        f"Python {platform.python_version()}, one thread, CPU time; ratio = ours / peer's, the median of paired rounds"
    )
    print(f"{'workload':<24}{'ours':>12}{'peer':>12}  {'':<10}{'ratio':>7}{'bound':>7}")
    beyond = []
    for suite, make in SUITES.items():
        for workload in make():
            if options.select in workload.name:
                figure = compare(workload)
                bound = bounds[suite].get(workload.name, {}).get("at_most")
                _print(figure, bound)
                if bound is not None and figure.ratio > bound:
                    beyond.append(workload.name)
    if beyond:
        print(f"beyond their bounds: {', '.join(beyond)}")
    return 1 if options.check and beyond else 0


def _print(figure: Figure, bound: float | None) -> None:
    shown = "" if bound is None else f"{bound:.2f}"
    times = f"{figure.ours * 1e6:>9.1f} us{figure.theirs * 1e6:>9.1f} us"
    print(f"{figure.name:<24}{times}  {figure.peer:<10}{figure.ratio:>7.2f}{shown:>7}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
