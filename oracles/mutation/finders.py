"""Finders: search the case that finds each mutant of the kit's selftest, which a selftest tries first.

Run `python -m oracles.mutation.finders` after the reference backend, the laws, the faults or the mutants have changed.
It writes `finders.json` and `detection.json` into the kit. It searches for mutants without a known case, with `--all`
for all that are not listed as equivalent; with `--mutants` it does nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tensorken_conformance.detection import counts
from tensorken_conformance.detection.finders import finders
from tensorken_conformance.faults.fault import FAULTS
from tensorken_conformance.running.pool import Task, do_all
from tensorken_conformance.selftest import mutants, proof

LIMIT = 60.0
"""The seconds that a worker may compute on one case."""


def main() -> None:
    """Search for mutants, run a selftest, and write both results."""
    known = finders()
    found: dict[str, str] = {}

    def note(id: str, case: str) -> None:
        found[id] = case
        print(f"{len(found)} of {len(ids)}: {id}: {case or 'not found'}", flush=True)

    def task(id: str) -> Task:
        data = {"kind": "hunt", "id": id}
        return Task(data, lambda result: note(id, result["case"]), lambda case, _: note(id, case), LIMIT)

    unlisted = [id for id in mutants.mutants() if id not in mutants.equivalents()]
    ids = [id for id in unlisted if "--all" in sys.argv or id not in known]
    do_all(map(task, ids), "selftest.trials", 2)
    kept = {id: found.get(id) or known.get(id, "") for id in mutants.mutants()}
    _write("finders.json", {**{id: known[id] for id in FAULTS if id in known}, **kept})
    for id, case in kept.items():
        if not case and id not in mutants.equivalents():
            print(f"not found: {id} (line {mutants.mutants()[id].line})")
    if "--mutants" not in sys.argv:
        outcome = proof.run(tell=print)
        _write("finders.json", {**outcome.found, **kept})
        _write("detection.json", outcome.as_data())


def _write(name: str, data: dict[str, Any]) -> None:
    text = json.dumps({key: value for key, value in data.items() if value != ""}, indent=1)
    Path(counts.__file__).with_name(name).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
