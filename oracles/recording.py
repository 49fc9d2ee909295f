"""Recorded results of other libraries: written to a file once, and compared with new results by `--check`."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOLERANCE = 1e-9


def record_or_check(file: Path, found: dict[str, Any], arguments: Sequence[str]) -> int:
    """Write results to the file or, with `--check`, compare them with the file; returns the exit status."""
    parser = argparse.ArgumentParser(description=f"Record results of other libraries in {file.name}.")
    parser.add_argument("--check", action="store_true", help="compare new results with the recorded ones")
    if not parser.parse_args(arguments).check:
        lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in found.items()]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
        return 0
    wrong = differences(found, json.loads(file.read_text(encoding="ascii")), "")
    print("\n".join(wrong) or f"{file.name}: all {len(found)} entries are as recorded")
    return 1 if wrong else 0


def differences(found: Any, recorded: Any, place: str) -> list[str]:
    """The differences between two trees of numbers, one line each.

    >>> differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}, "")
    [' a 1: found 2.0, recorded is 2.5']
    """
    if isinstance(found, dict) and isinstance(recorded, dict) and found.keys() == recorded.keys():
        return [d for key in found for d in differences(found[key], recorded[key], f"{place} {key}")]
    if isinstance(found, list | tuple) and isinstance(recorded, list) and len(found) == len(recorded):
        pairs = enumerate(zip(found, recorded, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{place} {i}")]
    numeric = isinstance(found, int | float) and isinstance(recorded, int | float)
    if numeric and math.isclose(found, recorded, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return []
    return [] if found == recorded else [f"{place}: found {found}, recorded is {recorded}"]
