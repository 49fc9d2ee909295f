"""Reports with invented results, for the tests of the report formats."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tensorken_conformance import levels
from tensorken_conformance.case import Case, Result
from tensorken_conformance.report.model import Header, Report
from tensorken_core.host.plugin import Capabilities

LAWS = {
    "values.read-back": "Values are read back unchanged.",
    "values.sample": "Each op returns <the> & correct result.",
    "derivatives.consistency": "J and its transpose agree.",
    "performance.profile": "Each op is timed.",
}

HEADER = Header(
    kit="0.1.0",
    language="1.0",
    core="0.1.0",
    backend="mine",
    distribution="tensorken-mine",
    version="0.3.1",
    interpreter="tensorken_mine.backend.Mine",
    stack="Fuse(CallCounter(Mine()))",
    device="cpu",
    python="3.11.7",
    platform="Linux",
    numpy="2.4.6",
    seed=0,
    depth="default",
    date="2026-11-21T12:00:00+00:00",
    seconds=12.5,
    caught=78,
    faults=78,
)

SPECIAL_CHARACTERS = "snow \N{SNOWMAN} | <b>`x`</b> ]]> & \x00\x1b[31m \ud800 \"quoted\" 'twice'"


def result(id: str, status: Any = "passed", level: int = 2, says: str = "", **facts: Any) -> Result:
    return Result(Case.parse(id), status, level, says, calls=1, seconds=0.25, **facts)


PASSED = [
    result("values.read-back/new/float32/small", level=0),
    result("values.read-back/new/int32/small", level=1),
    result("values.sample/exp/float32/prime/normals", ulp=0.75, worst="exp(1.5)"),
    result("values.sample/exp/float32/prime/special", ulp=0.5, worst="exp(2.5)"),
    result("values.sample/add/float32/prime/normals", ulp=0.0),
    result("values.sample/add/int32/prime/normals", ulp=0.0),
    result("derivatives.consistency/exp/float32", level=3),
    result(
        "performance.profile/exp/float32/small",
        level=4,
        figures={
            "microseconds": 3.0,
            "numpy microseconds": 2.0,
            "ratio": 1.5,
            "gigabytes per second": 2.25,
        },
    ),
]

FAILED = [
    *PASSED,
    result(
        "values.sample/log/float32/prime/normals",
        "failed",
        says=f"log(2.0): expected 0.69, got 0.7 {SPECIAL_CHARACTERS}",
        ulp=float("inf"),
        worst="log(2.0)",
        script=("import tensorken as tk", "print(tk.log(2.0) < 3)  # <&>"),
    ),
    result(
        "values.sample/log/float32/prime/special", "failed", says="off", cause="OSError raised by m in line 1"
    ),
    result("values.sample/log/int64/prime/normals", "unsupported", says="no ints"),
    result("values.sample/neg/float32/prime/normals", "expected failure", says="known (https://x.y)"),
    result("values.sample/erf/float32/prime/normals", "crashed", says="crash: signal 11"),
    result(
        "derivatives.consistency/log/float32",
        "failed",
        3,
        "blocked by values.sample/log/float32/prime/normals",
    ),
    result(
        "derivatives.consistency/sum/float32", "failed", 3, "blocked by derivatives.consistency/log/float32"
    ),
]


def report(results: Sequence[Result] = PASSED, problems: Sequence[str] = (), **header: Any) -> Report:
    capabilities = header.pop("capabilities", Capabilities(dtypes=("int32", "float32"), ulp={"exp": 2}))
    head = dataclasses.replace(HEADER, **header)
    if head.complete and "level" not in header:
        level = levels.level_of(results, capabilities)
        head = dataclasses.replace(head, level=level.number if level else None)
    ops = list(dict.fromkeys(r.case.op for r in results))
    timed = [r.case.id for r in results if r.figures]
    return Report(head, capabilities, LAWS, list(results), tuple(ops), tuple(problems), tuple(timed))
