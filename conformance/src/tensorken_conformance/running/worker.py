"""Worker: a process that examines cases for the runner, so that a crash or a hang is a result.

It reads jobs, and writes cases and results, as lines of JSON.  The backend's output goes to stderr, and its input is
empty.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, replace
from typing import IO, Any

from tensorken_conformance.backends.loading import OptionsError, load, origin
from tensorken_conformance.case import Case, Result
from tensorken_conformance.detection.counts import fingerprint
from tensorken_conformance.expectations import ExpectationError, expectations_of
from tensorken_conformance.law import LAWS, Law
from tensorken_conformance.running.examine import default_script, examine
from tensorken_conformance.running.plan import Plan, PlanError
from tensorken_conformance.subject import Subject
from tensorken_core.errors import BackendError, UnknownBackendError

LONGEST = 1_000
"""The number of characters of a message that are kept; a backend may put a whole tensor into one."""


def examined(subject: Subject, law: Law, case: Case, failed: Container[str] = ()) -> Result:
    """The result of a case, even if the backend calls sys.exit; long messages are cut."""
    try:
        result = examine(subject, law, case, failed)
    except SystemExit as end:
        says = f"it called sys.exit({end.code!r})"
        result = Result(case, "crashed", law.level(case), says, default_script(subject, case))
    except KeyboardInterrupt:
        if not _is_worker:
            raise
        result = Result(case, "crashed", law.level(case), "it raised KeyboardInterrupt")
    script = tuple(line for text in result.script for line in text.splitlines())
    return replace(result, says=_cut(result.says), worst=_cut(result.worst), script=tuple(map(_cut, script)))


def serve(jobs: IO[str], results: IO[str]) -> None:
    """Do jobs until there are no more."""

    def tell(**message: Any) -> None:
        results.write(json.dumps(message) + "\n")
        results.flush()

    first = json.loads(jobs.readline())
    try:
        subject = load(first["backend"], first["options"], first["seed"], first["depth"])
        plan = Plan(subject, first["select"], first["done"], first["turns"])
    except PlanError as error:
        tell(refused=str(error), usage=True)
        return
    except BackendError as error:
        tell(refused=str(error), usage=isinstance(error, UnknownBackendError | OptionsError))
        return
    tell(**introduction(plan, first["options"]))
    if first["counts"]:
        tell(planned=len(first["done"]) + plan.count())
    failed: set[str] = set()
    for line in jobs:
        job = json.loads(line)
        failed.update(job["failed"])
        law = LAWS[job["law"]]
        try:
            cases = plan.part(law, job["part"], job["parts"])
        except BaseException as error:  # noqa: BLE001, whatever comes of listing the cases is a result
            tell(unlisted=_cut(f"its cases cannot be listed: {type(error).__name__}: {error}"))
            continue
        todo = list(enumerate(cases))[job["skip"] :][: job["count"]]
        left: dict[str, list[str]] = {op: [] for op in job["without"]}
        for _, (_, case) in todo:
            if case.op in left:
                left[case.op].append(case.id)
        tell(begin=len(cases), level=min((law.level(case) for _, case in cases), default=0), left=left)
        for place, (index, case) in todo:
            if case.op not in left:
                tell(start=case.id, level=law.level(case), index=index, place=place)
                tell(result=examined(subject, law, case, failed).as_data(), place=place)
        tell(done=len(cases))


def introduction(plan: Plan, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first message to the runner: the laws, and the backend's description of itself."""
    subject = plan.subject
    try:
        expected, problems = expectations_of(subject.backend), []
    except ExpectationError as error:
        expected, problems = [], [str(error)]
    return {
        "laws": plan.described(),
        "capabilities": asdict(subject.capabilities),
        "about": {**origin(subject, options), "fingerprint": fingerprint()},
        "expectations": [line.as_data() for line in expected],
        "problems": problems,
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text)} characters)"


_is_worker = False


def main(arguments: Sequence[str] = ()) -> None:
    """Serve the process that started this one."""
    global _is_worker
    _is_worker = True
    jobs = os.fdopen(os.dup(0), encoding="ascii")
    results = os.fdopen(os.dup(1), "w", encoding="ascii")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123, no path is meant
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    faulthandler.enable()
    serve(jobs, results)
    sys.stderr.flush()
    os._exit(0)  # do not wait for threads of the backend


if __name__ == "__main__":
    main()
