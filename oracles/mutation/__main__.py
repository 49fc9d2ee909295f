"""Draw mutants, examine each by the conformance kit, and print the share that it finds.

python -m oracles.mutation --target numpy --mutants 40 --seed 1 --depth smoke
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from oracles.mutation import record
from oracles.mutation.journal import Entry, Journal
from oracles.mutation.outcomes import FaultyError, Judge, Rate
from oracles.mutation.processes import end_all
from oracles.mutation.sites import Mutant, difference
from oracles.mutation.targets import TARGETS, Target


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 if the original fails a case, else 0."""
    parser = argparse.ArgumentParser(prog="python -m oracles.mutation", description=__doc__)
    parser.add_argument("--target", choices=list(TARGETS), default="numpy", help="the modules to mutate")
    parser.add_argument("--mutants", type=int, default=40, help="how many mutants to draw; default: 40")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the draw; default: 0")
    parser.add_argument("--depth", choices=("smoke", "default", "deep"), default="smoke", help="of the kit")
    parser.add_argument("--processes", type=int, default=1, help="how many mutants are examined at a time")
    parser.add_argument("--folder", type=Path, help="for the outcomes so far, with which a later run goes on")
    parser.add_argument("--seconds", type=float, default=math.inf, help="examine no more mutants after these")
    parser.add_argument("--record", action="store_true", help=f"write the counts into {record.FILE.name}")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, end_all)
    target = TARGETS[options.target]
    mutants = target.drawn(options.mutants, options.seed)
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        journal = Journal(folder / f"{options.target}-{options.depth}.jsonl")
        try:
            examine(target, mutants, journal, options.depth, folder, options.processes, options.seconds)
        except FaultyError as error:
            print(error, file=sys.stderr)
            return 1
    entries = [journal.entries[mutant.key] for mutant in mutants if mutant.key in journal.entries]
    held_out, others = (
        Rate.of([entry.kind for entry in entries if entry.held_out is which]) for which in (True, False)
    )
    print(f"held out: {held_out}\nothers: {others}\nall: {held_out + others}")
    if len(entries) < len(mutants):
        print(f"{len(mutants) - len(entries)} of {len(mutants)} mutants are left")
    elif options.record:
        record.write(options.target, options.depth, options.seed, held_out, others)
    return 0


def examine(
    target: Target,
    mutants: Sequence[Mutant],
    journal: Journal,
    depth: str,
    folder: Path,
    processes: int,
    seconds: float,
) -> None:
    """Examine the mutants that are not in the journal, and print each that is not held out.

    No further one begins after these seconds.
    """
    rest = [mutant for mutant in mutants if mutant.key not in journal.entries]
    if not rest:
        return
    last = time.monotonic() + seconds
    judge = Judge(target, depth, folder)
    print(
        f"{len(target.mutants()):,} mutants; {judge.cases:,} cases take {judge.seconds:.0f} s"
        f" at {depth} depth; {len(rest)} of {len(mutants)} are to be examined",
        flush=True,
    )

    def entry(mutant: Mutant) -> Entry | None:
        if time.monotonic() > last:
            return None
        change = difference(mutant, target.files()[mutant.module].read_text("utf-8"))
        return Entry.of(mutant, judge.outcome(mutant), change)

    with ThreadPoolExecutor(processes) as pool:
        for found in pool.map(entry, rest):
            if found is not None:
                journal.add(found)
                print(found, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
