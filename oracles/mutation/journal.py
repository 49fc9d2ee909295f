"""Journal: a file of the outcomes so far; a later run with the same file goes on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from oracles.mutation.outcomes import Outcome
from oracles.mutation.sites import Mutant


@dataclass(frozen=True, slots=True)
class Entry(Outcome):
    """An outcome in the journal; of a mutant that is held out it has the kind alone.

    Attributes:
        key: the id of the mutant; of one that is held out a digest.
        held_out: whether it is.
        change: the changed line, before and after.
    """

    key: str = ""
    held_out: bool = False
    change: str = ""

    @staticmethod
    def of(mutant: Mutant, outcome: Outcome, change: str) -> Entry:
        """The entry of the outcome of a mutant."""
        if mutant.is_held_out:
            return Entry(outcome.kind, key=mutant.key, held_out=True)
        facts = asdict(outcome) | {"seconds": round(outcome.seconds, 2)}
        return Entry(**facts, key=mutant.key, change=change)

    def __str__(self) -> str:
        if self.held_out:
            return "held out"
        how = f"{self.kind:13} {self.seconds:5.1f} s {self.cases:5} cases  {self.key}"
        return f"{how}\n    {self.change}\n    {': '.join(filter(None, (self.case, self.says)))[:200]}"


class Journal:
    """The outcomes of the mutants of one target at one depth.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.entries = {entry.key: entry for entry in (Entry(**json.loads(line)) for line in lines)}

    def add(self, entry: Entry) -> None:
        """Add an outcome, and write it at once."""
        self.entries[entry.key] = entry
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")
