"""Explanation: what each pass does to a program, and to the programs that its choices and loops run, as tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tensorken.programs.names import titles, within
from tensorken.programs.passes.inner_programs import inner_programs
from tensorken.programs.passes.pipeline import steps
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program

_LINES = 4
"""How many lines of the user's a row names."""

_Counts = Counter[tuple[str, str]]


def explanation(program: Program, backend: RawTensor[Any]) -> str:
    """A table for the program, then one for each that its choices and loops run, as it is when its turn comes.

    A row is a pass that changes something: equations before and after, with those of inner programs; ops that go and
    come; and their lines.
    """
    tables: dict[Program, list[str]] = {}
    _explain(program, backend, tables)
    names = titles(list(tables))
    whole = [(one, rows) for one, rows in tables.items() if one is program or len(rows) > 2]
    return "\n\n".join(["\n".join([f"{names[one]}: {rows[0]}", *rows[1:]]) for one, rows in whole])


def _explain(program: Program, backend: RawTensor[Any], tables: dict[Program, list[str]]) -> None:
    if program in tables:
        return
    told = tables[program] = []  # in its place among them
    rows = [("pass", "equations", "less", "more", "lines")]
    first = last = _counts(program)
    inner: list[Program] = []
    for name, after in steps(program, backend):
        if name == "inner programs":
            inner = inner_programs(program)
        now = _counts(after)
        gone, come = last - now, now - last
        if not gone and not come:  # but some may have moved from one program to another
            before, beyond = _counts(program, alone=True), _counts(after, alone=True)
            gone, come = before - beyond, beyond - before
        if gone or come:
            sizes = f"{last.total()} -> {now.total()}"
            rows.append((name, sizes, _ops(gone), _ops(come), _lines(gone + come)))
        program, last = after, now
    widths = [max([len(row[i]) for row in rows]) for i in range(4)]
    table = [
        "  ".join([*[cell.ljust(n) for cell, n in zip(row, widths, strict=False)], row[4]]).rstrip()
        for row in rows
    ]
    told += [f"{first.total()} equations, {last.total()} after all passes", *table]
    for one in inner:
        _explain(one, backend, tables)


def _counts(program: Program, alone: bool = False) -> _Counts:
    """How many equations of each op came from each line, in the program and, unless it is alone, those within it."""
    found: _Counts = Counter()
    for one in [program] if alone else within(program):
        for e in one.equations:
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
