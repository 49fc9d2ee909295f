"""Runs the benchmarks: a table of ratios to peers in the same run; `--check` exits with 1 beyond a bound."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
CPU = Path("/proc/cpuinfo")
if CPU.exists() and {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= set(
    CPU.read_text("ascii", "replace").split()
):
    os.environ.setdefault(
        "OPENBLAS_CORETYPE", "SkylakeX"
    )  # as `tensorken doctor` advises where it is not chosen

from harness import Figure, Workload, compare, pin  # noqa: E402, the environment must be set before numpy loads

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
HEAD = f"{'workload':<34}{'ours':>14}{'peer':>14}  {'':<11}{'ratio':>7}{'bound':>7}"


def suites(peers: list[str]) -> dict[str, Callable[[], Iterable[Workload]]]:
    """By name what makes a suite's workloads; each imports what it needs when it is asked."""

    def eager() -> Iterable[Workload]:
        import eager

        return eager.workloads()

    def jacobians() -> Iterable[Workload]:
        import jacobians

        return jacobians.workloads()

    def traced() -> Iterable[Workload]:
        import traced

        return traced.workloads(peers)

    return {"eager": eager, "jacobians": jacobians, "traced": traced}


def main(arguments: list[str]) -> int:
    """Run the suites; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a ratio is beyond its bound")
    parser.add_argument("--suite", default="", help="only this suite: eager, jacobians or traced")
    parser.add_argument("--select", default="", help="run only workloads whose name contains this")
    parser.add_argument("--peers", default="jax", help="of the traced suite, with commas: jax, autograd")
    parser.add_argument("--write", action="store_true", help=f"write the table into docs/{PAGE.name}")
    options = parser.parse_args(arguments)
    bounds = tomllib.loads((HERE / "bounds.toml").read_text(encoding="utf-8"))
    pin()
    print(
        f"Python {platform.python_version()}, one thread, CPU time; ratio = ours / peer's, the median of paired rounds"
    )
    print(HEAD)
    beyond, lines = [], []
    for suite, make in suites(options.peers.split(",")).items():
        if options.suite not in ("", suite):
            continue
        for workload in make():
            if options.select not in workload.name:
                continue
            figure = compare(workload)
            fact = bounds.get(suite, {}).get(workload.name, {})
            bound = fact.get("at_most") if fact.get("peer") == workload.peer else None
            lines.append(_line(figure, bound))
            print(lines[-1], flush=True)
            if bound is not None and figure.ratio > bound:
                beyond.append(workload.name)
    if beyond:
        print(f"beyond their bounds: {', '.join(beyond)}")
    if options.write:
        _write(lines)
    return 1 if options.check and beyond else 0


def _line(figure: Figure, bound: float | None) -> str:
    shown = "" if bound is None else f"{bound:.2f}"
    times = f"{figure.ours * 1e6:>11.1f} us{figure.theirs * 1e6:>11.1f} us"
    return f"{figure.name:<34}{times}  {figure.peer:<11}{figure.ratio:>7.2f}{shown:>7}"


def _write(lines: list[str]) -> None:
    """Put the table between the marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- figures -->", "<!-- end of figures -->"
    before, rest = text.split(begin)
    table = "\n".join(["```text", HEAD, *lines, "```"])
    PAGE.write_text(f"{before}{begin}\n\n{table}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
