"""Run the random programs of many seeds in every way, and print a small program for each disagreement.

python -m oracles.programs --seeds 10000
"""

from __future__ import annotations

import argparse
import collections
import time
from collections.abc import Sequence

from core.tests.random_programs.design import REFUSALS, refused_by_rule
from core.tests.random_programs.drawing import drawn
from core.tests.random_programs.judging import check_draft
from oracles.programs.judging import EVERY_WAY


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the programs of the seeds, and print counts; returns 1 if any program disagrees, else 0."""
    parser = argparse.ArgumentParser(prog="python -m oracles.programs", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--step", type=int, default=1, help="take every n-th seed")
    parser.add_argument("--ways", default=",".join(EVERY_WAY), help=f"a selection of {', '.join(EVERY_WAY)}")
    parser.add_argument("--narrow", action="store_true", help="draw six dtypes and no Python numbers")
    parser.add_argument("--whole", action="store_true", help="draw only small integers as values")
    chosen = parser.parse_args(arguments)
    ways = {name: EVERY_WAY[name] for name in chosen.ways.split(",")}
    start = time.monotonic()
    steps: collections.Counter[str] = collections.Counter()
    refusals: collections.Counter[str] = collections.Counter()
    disagreements: collections.Counter[str] = collections.Counter()
    for number, seed in enumerate(
        range(chosen.first, chosen.first + chosen.seeds * chosen.step, chosen.step), 1
    ):
        draft = drawn(seed, whole=chosen.whole, wide=not chosen.narrow)
        steps.update(step.row for step in draft.steps)
        refusals.update(
            reason for _, error in draft.refused if (reason := refused_by_rule(error)) is not None
        )
        failure = check_draft(draft, seed, ways)
        if failure is not None:
            disagreements[": ".join(failure.splitlines()[0].split(": ")[:2])] += 1
            print(f"---- seed {seed}: {failure}", flush=True)
        if number % 100 == 0:
            took = time.monotonic() - start
            print(f"{number} programs, {took:.0f} s, {disagreements.total()} disagree", flush=True)
    agree = chosen.seeds - disagreements.total()
    print(
        f"{chosen.seeds} programs of {steps.total()} steps, of {len(steps)} different rows, in {', '.join(ways)}"
    )
    print(
        f"{agree} programs agree, {disagreements.total()} disagree; {refusals.total()} steps were refused by design"
    )
    for reason, count in refusals.most_common():
        print(f"  refused: {count} with {reason!r}: {REFUSALS[reason]}")
    for kind, count in disagreements.most_common():
        print(f"  disagree: {count} {kind}")
    return int(disagreements.total() > 0)


if __name__ == "__main__":
    raise SystemExit(main())
