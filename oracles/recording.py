"""Write results of other libraries to a file, or compare the file with new results."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOLERANCE = 1e-9


def record_or_check(file: Path, results: dict[str, Any], arguments: Sequence[str]) -> int:
    """Write results to the file or, with `--check`, compare them with the file; returns the exit status."""
    parser = argparse.ArgumentParser(description=f"Record results of other libraries in {file.name}.")
    parser.add_argument("--check", action="store_true", help="compare new results with the recorded ones")
    if not parser.parse_args(arguments).check:
        lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in results.items()]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
        return 0
    different = differences(results, json.loads(file.read_text(encoding="ascii")), "")
    print("\n".join(different) or f"{file.name}: all {len(results)} entries equal the recorded ones")
    return 1 if different else 0


def differences(actual: Any, recorded: Any, path: str) -> list[str]:
    """The differences between two trees of numbers, one line for each.

    >>> differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}, "")
    [' a 1: expected 2.5, got 2.0']
    """
    if isinstance(actual, dict) and isinstance(recorded, dict) and actual.keys() == recorded.keys():
        return [d for key in actual for d in differences(actual[key], recorded[key], f"{path} {key}")]
    if isinstance(actual, list | tuple) and isinstance(recorded, list) and len(actual) == len(recorded):
        pairs = enumerate(zip(actual, recorded, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{path} {i}")]
    numeric = isinstance(actual, int | float) and isinstance(recorded, int | float)
    if numeric and math.isclose(actual, recorded, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        return []
    return [] if actual == recorded else [f"{path}: expected {recorded}, got {actual}"]
