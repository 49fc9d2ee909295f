"""The faults that are open, in known.toml: each is a function, dtypes, modes, and the reason."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from oracles.sweep.cells import Cell

FILE = Path(__file__).with_name("known.toml")
HEAD = (
    "# Faults that are open: `python -m oracles.sweep --write` removes those that are mended, and adds new ones, "
    "which need a reason.\n"
)

Key = tuple[str, str, str]  # function, dtype, values or derivatives


@dataclass(frozen=True, slots=True)
class Known:
    """The open faults: the reason of each function, dtype and kind of mode."""

    reasons: Mapping[Key, str]

    def new(self, cells: Iterable[Cell]) -> list[Cell]:
        """The wrong cells that are not among the open faults."""
        return [cell for cell in cells if cell.verdict.kind == "wrong" and key(cell) not in self.reasons]

    def mended(self, cells: Iterable[Cell]) -> list[Key]:
        """The open faults of these cells' functions and dtypes of which no cell is wrong."""
        cells = list(cells)
        tried, wrong = {key(cell) for cell in cells}, {key(c) for c in cells if c.verdict.kind == "wrong"}
        return [k for k in self.reasons if k in tried - wrong]


def key(cell: Cell) -> Key:
    """What an open fault is found by."""
    return cell.function, cell.dtype, "derivatives" if cell.mode.startswith("grad") else "values"


def read() -> Known:
    """The open faults of known.toml."""
    faults = tomllib.loads(FILE.read_text(encoding="utf-8")).get("fault", [])
    return Known({(f["function"], dtype, f["in"]): f["reason"] for f in faults for dtype in f["dtypes"]})


def write(cells: Iterable[Cell]) -> None:
    """Write the open faults of these cells; reasons are kept, and new faults get what the sweep saw."""
    before, found = read(), {}
    for cell in cells:
        if cell.verdict.kind == "wrong":
            function, dtype, kind = key(cell)
            reason = before.reasons.get(key(cell)) or f"? {cell.case}: {cell.verdict.reason}"
            found.setdefault((function, kind, reason if reason[0] != "?" else "?"), []).append(
                (dtype, reason)
            )
    parts = [HEAD]
    for (function, kind, _), items in found.items():
        dtypes = list(dict.fromkeys(dtype for dtype, _ in items))
        lines = [
            f"function = {json.dumps(function)}",
            f"in = {json.dumps(kind)}",
            f"dtypes = {json.dumps(dtypes)}",
        ]
        parts.append(
            "\n".join(["[[fault]]", *lines, f"reason = {json.dumps(items[0][1], ensure_ascii=False)}"]) + "\n"
        )
    FILE.write_text("\n".join(parts), encoding="utf-8")
