"""Numbers of other libraries in files: written down once, and compared again with what the libraries give."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOLERANCE = 1e-9


def record_or_check(file: Path, found: dict[str, Any], arguments: Sequence[str]) -> int:
    """Write what was found into the file or, with `--check`, compare it with what is there; the exit status."""
    parser = argparse.ArgumentParser(description=f"Record what other libraries give, in {file.name}.")
    parser.add_argument("--check", action="store_true", help="compare with what is recorded")
    if not parser.parse_args(arguments).check:
        lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in found.items()]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
        return 0
    wrong = differences(found, json.loads(file.read_text(encoding="ascii")), "")
    print("\n".join(wrong) or f"{file.name}: all {len(found)} entries are as recorded")
    return 1 if wrong else 0


def differences(found: Any, recorded: Any, place: str) -> list[str]:
    """Where two trees of numbers differ.

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
