"""Examination: run the kit on a backend in this process until a case fails.

`python -m oracles.mutation.examination BACKEND DEPTH SEED SECONDS [LAW]` prints a line of JSON for each case that
starts, and one for the end.  It begins with a law, and ends after so many seconds of computing time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import IO, Any

from tensorken_conformance.backends.loading import load
from tensorken_conformance.running.plan import Plan
from tensorken_conformance.running.worker import examined
from tensorken_conformance.subject import Depth

MEMORY = 8 << 30
"""The bytes of address space that a mutant may take."""


def examine(backend: str, depth: Depth, seed: int, first: str, results: IO[str]) -> None:
    """Examine the cases in the kit's order, but those of one law first, and print the first that fails."""

    def tell(**message: Any) -> None:
        results.write(json.dumps(message) + "\n")
        results.flush()

    def end(found: str, says: str = "") -> None:
        tell(found=found, says=says[:300], cases=count, seconds=time.process_time())

    count = 0
    try:
        subject = load(backend, {}, seed, depth)
        plan = Plan(subject)
    except Exception as error:  # noqa: BLE001, whatever a mutant raises is a result
        tell(refused=f"{type(error).__name__}: {error}"[:300])
        return
    for law in sorted(plan.laws, key=lambda law: law.id != first):
        try:
            cases = plan.cases(law)
        except Exception as error:  # noqa: BLE001, whatever a mutant raises is a result
            end(law.id, f"its cases cannot be listed: {type(error).__name__}: {error}")
            return
        for case in cases:
            tell(start=case.id)
            count += 1
            result = examined(subject, law, case)
            if result.status in ("failed", "crashed"):
                end(case.id, result.says)
                return
    end("")


def limit(seconds: int) -> None:
    """Limit the computing time and the memory of this process, where the system can."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(arguments: list[str]) -> None:
    """Examine, and leave at once: a mutant may have left threads behind."""
    backend, depth, seed, seconds, *first = arguments
    results = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    limit(int(seconds))
    assert depth in ("smoke", "default", "deep")
    examine(backend, depth, int(seed), "".join(first), results)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
