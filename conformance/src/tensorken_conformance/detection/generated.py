"""Generated faults: the recorded share of mutants that the kit finds, which its laws were not written for."""

from __future__ import annotations

import functools
from typing import Any

from tensorken_conformance.detection.recorded import read

FILE = "generated.json"


@functools.cache
def recorded() -> dict[str, dict[str, Any]]:
    """The counts of the last runs, by target and depth.

    >>> found = recorded()["numpy smoke"]
    >>> found["found"] <= found["mutants"]
    True
    """
    found: dict[str, dict[str, Any]] = read(FILE)
    return found


def rate(digest: str, depth: str) -> tuple[int, int]:
    """The number of found mutants and of all, of all targets at a depth, for a digest of ops, laws and faults.

    Zeros if none was measured.

    >>> rate("another table", "smoke")
    (0, 0)
    """
    found = [
        row for name, row in recorded().items() if name.endswith(f" {depth}") and row["fingerprint"] == digest
    ]
    return sum(row["found"] for row in found), sum(row["mutants"] for row in found)
