"""A worker: a process that examines cases for the runner, so that a crash or a hang is a result and not the end.

It reads jobs as lines of JSON, and writes what it starts and what came of it, as lines of JSON too.  What the backend
prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

from tensorken_conformance.case import Case
from tensorken_conformance.examine import examine, laws_for
from tensorken_conformance.law import LAWS, Law
from tensorken_conformance.subject import Subject


def cases_of(subject: Subject, law: Law, part: int, parts: int) -> list[Case]:
    """One of several parts of a law's cases; those about one op are together."""
    places: dict[str, int] = {}
    return [case for case in law.cases(subject) if places.setdefault(case.op, len(places)) % parts == part]


def serve(jobs: IO[str], results: IO[str]) -> None:
    """Do jobs until there are no more."""

    def tell(message: dict[str, Any]) -> None:
        results.write(json.dumps(message) + "\n")
        results.flush()

    first = json.loads(jobs.readline())
    subject = Subject.select(first["backend"], first["seed"], first["depth"])
    laws = [(law.id, law.stage) for law in laws_for(subject, first["select"])]
    tell({"laws": laws, "capabilities": described(subject), "about": about(subject)})
    for line in jobs:
        job = json.loads(line)
        law = LAWS[job["law"]]
        cases = cases_of(subject, law, job["part"], job["parts"])
        for case in cases[job["skip"] :]:
            tell({"start": case.id})
            tell({"result": examine(subject, law, case, job["failed"]).as_data()})
        tell({"done": len(cases)})


def described(subject: Subject) -> dict[str, Any]:
    """What the backend declares, for the report."""
    declared = subject.capabilities
    return {
        "dtypes": list(declared.dtypes),
        "unsupported": dict(declared.unsupported),
        "ulp": dict(declared.ulp),
        "flushes_subnormals": list(declared.flushes_subnormals),
        "nondeterministic": list(declared.nondeterministic),
        "shares_memory": declared.shares_memory,
        "symbolic": declared.symbolic,
    }


def about(subject: Subject) -> dict[str, Any]:
    """What the backend is, for the report."""
    kind = type(subject.backend)
    return {"interpreter": f"{kind.__module__}.{kind.__qualname__}", "stack": repr(subject.stack)}


def main() -> None:
    """Serve the process that started this one."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, results)


if __name__ == "__main__":
    main()
