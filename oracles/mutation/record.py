"""Record: the counts that reports print, in a file of the kit."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import tensorken_conformance.detection
from oracles.mutation.outcomes import Rate
from tensorken_conformance.detection.counts import fingerprint
from tensorken_conformance.detection.generated import FILE as NAME

FILE = Path(tensorken_conformance.detection.__path__[0]) / NAME


def write(target: str, depth: str, seed: int, held_out: Rate, others: Rate, file: Path = FILE) -> None:
    """Write the counts of a run in place of those of the same target and depth."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    found[f"{target} {depth}"] = {
        "fingerprint": fingerprint(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seed": seed,
        "found": (held_out + others).found,
        "mutants": (held_out + others).faults,
        "held out": dict(held_out.counts),
        "others": dict(others.counts),
    }
    file.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")
