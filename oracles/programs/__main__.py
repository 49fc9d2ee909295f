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
    parser.add_argument("--whole", action="store_true", help="draw only small integers")
    parser.add_argument("--step", type=int, default=1, help="take every n-th seed")
    chosen = parser.parse_args(arguments)
    ways = {name: EVERY_WAY[name] for name in chosen.ways.split(",")}
    began, wrong = time.monotonic(), 0
    kinds: collections.Counter[str] = collections.Counter()
    for number, seed in enumerate(range(chosen.first, chosen.last, chosen.step), 1):
        draft = drawn(seed, whole=chosen.whole)
        kinds.update(step.row for step in draft.steps)
        found = check_draft(draft, seed, ways)
        if found is not None:
            wrong += 1
            print(f"---- seed {seed}: {found}", flush=True)
        if number % 100 == 0:
            print(f"{number} programs, {time.monotonic() - began:.0f} s, {wrong} disagree", flush=True)
    print(f"{sum(kinds.values())} steps of {len(kinds)} kinds; {wrong} programs disagree")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
