"""Laws: whether the device computes right, by the conformance kit, where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from tensorken_wgpu.report.bench import Bench, Row, attempt

KIT = "tensorken_conformance"

LIMIT = 60.0
"""The most seconds of a group of laws: a driver that hangs costs one group."""

QUICK = ("values.read-back", "values.contractions", "values.sums")

GROUPS = (
    *QUICK,
    "values.elementwise",
    "values.cast",
    "values.movement",
    "values.indexing",
    "values.extrema",
    "values.products",
    "values.factorizations",
    "derivatives",
    "programs",
    "lifetime",
    "errors",
    "declarations",
)
"""The groups of laws, the most important first; a process of its own examines each."""


def laws(bench: Bench) -> Iterator[Row]:
    """Groups of laws, with one case for each op."""
    if find_spec(KIT) is None:
        yield Row("conformance kit", facts={"tensorken-conformance": "not installed"})
        return
    for group in QUICK[:1] if bench.tiny else QUICK if bench.quick else GROUPS:
        yield attempt(group, lambda: _examined(bench, group))  # noqa: B023


def _examined(bench: Bench, group: str) -> Row:
    command = [sys.executable, "-m", "tensorken", "conformance", "run", f"wgpu:{bench.name}", "--smoke"]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, "--budget", "0", "--select", group, "--json", "-"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    seconds = time.perf_counter() - start
    if not done.stdout.strip():
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()[-300:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    facts: dict[str, Any] = {name: count for name, count in report["counts"].items() if count}
    problems = [str(problem)[:200] for problem in report["problems"]]
    return Row(group, seconds, facts=facts | ({"problems": "; ".join(problems[:3])} if problems else {}))
