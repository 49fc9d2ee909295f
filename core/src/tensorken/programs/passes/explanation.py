"""Explanation: what each pass does to a program, as a table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tensorken.programs.passes.pipeline import steps
from tensorken.programs.program import Program
from tensorken.spec.raw import RawTensor

_LINES = 4
"""How many lines of the user's a row names."""

_Counts = Counter[tuple[str, str]]


def explanation(program: Program, backend: RawTensor[Any]) -> str:
    """A row for each pass that changes something: equations before and after, ops that go and come, and their lines."""
    rows = [("pass", "equations", "less", "more", "lines")]
    first = len(program.equations)
    for name, after in steps(program, backend):
        before, now = _counts(program), _counts(after)
        gone, come = before - now, now - before
        if gone or come:
            sizes = f"{len(program.equations)} -> {len(after.equations)}"
            rows.append((name, sizes, _ops(gone), _ops(come), _lines(gone + come)))
        program = after
    widths = [max([len(row[i]) for row in rows]) for i in range(4)]
    table = [
        "  ".join([*[cell.ljust(n) for cell, n in zip(row, widths, strict=False)], row[4]]).rstrip()
        for row in rows
    ]
    return "\n".join(
        [f"{program.name}: {first} equations, {len(program.equations)} after all passes", *table]
    )


def _counts(program: Program) -> _Counts:
    """How many equations of each op came from each line."""
    found: _Counts = Counter()
    for e in program.equations:
        found[e.op.name, "" if e.origin is None else f"{Path(e.origin.file).name}:{e.origin.line}"] += 1
    return found


def _ops(counts: _Counts) -> str:
    """Such as `3 mul, sum`: what there is more of in all, the most first."""
    total: Counter[str] = Counter()
    for (op, _), n in counts.items():
        total[op] += n
    return ", ".join([op if n == 1 else f"{n} {op}" for op, n in total.most_common()])


def _lines(counts: _Counts) -> str:
    """Such as `model.py:12, model.py:15`: the first few."""
    names = list(dict.fromkeys([line for _, line in counts if line]))
    return ", ".join(names[:_LINES]) + (", ..." if len(names) > _LINES else "")
