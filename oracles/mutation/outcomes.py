"""Outcomes: what became of a mutant, and the rate of many."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oracles.mutation.processes import CASE, Ended, run
from oracles.mutation.sites import Mutant
from oracles.mutation.targets import Target
from tools.workspace import distributions

Kind = Literal["found", "hung", "missed", "not covered", "rounding", "no difference", "never ran", "refused"]

MEANINGS: dict[Kind, str] = {
    "found": "a case failed",
    "hung": "a case did not end, which the kit reports as a failure",
    "missed": "every case passed, and other operands give other results",
    "not covered": "the same, and the changed code never ran in the kit",
    "rounding": "every case passed, and other operands give results that differ by rounding",
    "no difference": "every case passed, and no operands were found that give other results",
    "never ran": "the same, and the changed code never ran",
    "refused": "the backend cannot be loaded",
}
"""The kinds of outcomes."""

DETECTED: tuple[Kind, ...] = ("found", "hung")
UNDETECTED: tuple[Kind, ...] = ("missed", "not covered")


LONGEST = 7200
"""The seconds of computing that the original may take."""

FACTOR = 5
"""A mutant that computes so many times as long, and CASE, counts as hanging."""

PROGRAMS = 120
"""The random programs of the comparison."""


class FaultyError(Exception):
    """The original fails a case, or cannot be examined."""


def workspace_state() -> list[tuple[str, int, int]]:
    """The sizes and times of all source files, which the results of the original depend on."""
    files = sorted(file for home in distributions(optional=True) for file in (home / "src").rglob("*.py"))
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        kind: see MEANINGS.
        case: the case that failed or did not end.
        says: its message, or the difference.
        cases: the number of cases that were examined.
        seconds: the computing time.
    """

    kind: Kind
    case: str = ""
    says: str = ""
    cases: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Rate:
    """The number of mutants of each kind."""

    counts: Counter[str]

    @staticmethod
    def of(kinds: Sequence[str]) -> Rate:
        """The rate of the outcomes of these kinds.

        >>> print(Rate.of(["found", "found", "missed", "no difference"]))
        found 2 of 3 mutants (67 %): 2 found, 1 missed, 1 no difference
        """
        return Rate(Counter(kinds))

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.counts + other.counts)

    @property
    def found(self) -> int:
        """The number that the kit finds."""
        return sum(self.counts[kind] for kind in DETECTED)

    @property
    def faults(self) -> int:
        """The number that the kit finds or should find."""
        return self.found + sum(self.counts[kind] for kind in UNDETECTED)

    def __str__(self) -> str:
        share = f" ({100 * self.found / self.faults:.0f} %)" if self.faults else ""
        rest = ", ".join(f"{self.counts[kind]} {kind}" for kind in MEANINGS if self.counts[kind])
        return f"found {self.found} of {self.faults} mutants{share}: {rest or 'none drawn'}"


class Judge:
    """Examines mutants of a target: first by the kit, then those that it misses by comparison with the original.

    At another depth than smoke, which takes long where no case fails, a smoke run comes first: the law that finds the
    mutant there begins; a mutant that passes is compared first, and examined only if there is a difference.

    The constructor examines the original, unless the folder has its results.

    Args:
        target: the target.
        depth: of the kit.
        folder: for the results of the original.
        seed: of the kit's operands and of those of the comparison.

    Attributes:
        seconds: the computing time of the original.
        cases: the number of cases.

    Raises:
        FaultyError: if the original fails a case, or its results cannot be recorded.
    """

    def __init__(self, target: Target, depth: str, folder: Path, seed: int = 0) -> None:
        self.target, self.depth, self._seed = target, depth, seed
        stem = hashlib.sha256(repr((target, depth, seed, workspace_state())).encode()).hexdigest()[:16]
        self._file, known = folder / f"{stem}.results", folder / f"{stem}.json"
        if not known.exists():
            known.write_text(json.dumps(self._original()), "utf-8")
        self.seconds, self.cases, self._comparing = json.loads(known.read_text("utf-8"))

    def _original(self) -> tuple[float, int, float]:
        """The computing time of the kit, the number of its cases, and the computing time of the comparison."""
        ended = self._examine(None, LONGEST, self.depth)
        if ended.last.get("found") != "":
            raise FaultyError(f"the original fails: {ended.last or ended.errors}")
        arguments = [self.target.backend, str(self._seed), str(self.target.largest), str(PROGRAMS)]
        recorded = self._compare(None, ["record", str(self._file), *arguments], LONGEST)
        if "seconds" not in recorded.last:
            raise FaultyError(f"the results of the original cannot be recorded: {recorded.errors}")
        return ended.last["seconds"], ended.last["cases"], recorded.last["seconds"]

    def outcome(self, mutant: Mutant) -> Outcome:
        """What became of a mutant."""
        first = ""
        if self.depth != "smoke":
            quick = self._examine(mutant, CASE + FACTOR * self.seconds, "smoke")
            first = str(quick.last.get("found", "")).partition("/")[0]
            if quick.last.get("found") == "":
                compared = self._compared(mutant, quick)
                if compared.kind not in UNDETECTED:
                    return compared
        ended = self._examine(mutant, CASE + FACTOR * self.seconds, self.depth, first)
        last, started = ended.last, [m["start"] for m in ended.messages if "start" in m]
        case = started[-1] if started else ""
        if ended.ending == "hang":
            return Outcome("hung", case, "it does not end", len(started))
        if last.get("found") == "":
            return self._compared(mutant, ended)
        if "found" in last:
            return Outcome("found", last["found"], last["says"], last["cases"], last["seconds"])
        says = last.get("refused") or (ended.errors.strip().splitlines() or [""])[-1]
        kind: Kind = "found" if case else "refused"
        return Outcome(kind, case, f"{ended.ending}: {says}", len(started))

    def _compared(self, mutant: Mutant, examined: Ended) -> Outcome:
        """The outcome of a mutant that passed every case."""
        ended = self._compare(mutant, ["compare", str(self._file)], CASE + FACTOR * self._comparing)
        wrong = ended.last.get("wrong", "")
        if "seconds" not in ended.last:
            wrong = f"{ended.ending}: {(ended.errors.strip().splitlines() or [''])[-1]}"
        kind: Kind
        if wrong:
            kind = "missed" if examined.ran else "not covered"
        elif ended.last["rounding"]:
            kind, wrong = "rounding", ended.last["rounding"]
        else:
            kind = "no difference" if examined.ran or ended.ran else "never ran"
        return Outcome(kind, "", wrong, examined.last["cases"], examined.last["seconds"])

    def _examine(self, mutant: Mutant | None, seconds: float, depth: str, first: str = "") -> Ended:
        arguments = [self.target.backend, depth, str(self._seed), str(int(seconds)), *filter(None, [first])]
        return run(self.target, mutant, "examination", arguments, CASE)

    def _compare(self, mutant: Mutant | None, arguments: Sequence[str], seconds: float) -> Ended:
        return run(self.target, mutant, "comparison", arguments, seconds)
