"""Run the random programs of many seeds, and print a small program for each failure.

python -m oracles.programs 0 5000
"""

from __future__ import annotations

import argparse
import collections
import time
from collections.abc import Sequence

from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import check_draft
from oracles.programs.judging import EVERY_WAY


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the seeds from first to last (exclusive); returns 1 if any program disagrees, else 0."""
    parser = argparse.ArgumentParser(prog="python -m oracles.programs", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--ways", default=",".join(EVERY_WAY), help=f"a selection of {', '.join(EVERY_WAY)}")
    parser.add_argument("--whole", action="store_true", help="draw only small integers as values")
    parser.add_argument("--step", type=int, default=1, help="take every n-th seed")
    chosen = parser.parse_args(arguments)
    ways = {name: EVERY_WAY[name] for name in chosen.ways.split(",")}
    start, failures = time.monotonic(), 0
    steps: collections.Counter[str] = collections.Counter()
    for number, seed in enumerate(range(chosen.first, chosen.last, chosen.step), 1):
        draft = drawn(seed, whole=chosen.whole)
        steps.update(step.row for step in draft.steps)
        failure = check_draft(draft, seed, ways)
        if failure is not None:
            failures += 1
            print(f"---- seed {seed}: {failure}", flush=True)
        if number % 100 == 0:
            print(f"{number} programs, {time.monotonic() - start:.0f} s, {failures} disagree", flush=True)
    print(f"{sum(steps.values())} steps, of {len(steps)} different rows; {failures} programs disagree")
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
