"""Explanation: tables of what each pass changes in a program and in the programs of its branches and loops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tensorken.programs.names import all_programs, unique_names
from tensorken.programs.passes.inner_programs import inner_programs
from tensorken.programs.passes.pipeline import steps
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program

_LINES = 4
"""The largest number of lines of user code that a row names."""

_Counts = Counter[tuple[str, str]]


def explanation(program: Program, backend: RawTensor[Any]) -> str:
    """A table for the program, and a table for each program of its branches and loops, before the passes on it.

    A row is a pass that changes something: the numbers of equations before and after, inner programs included; the ops
    that the pass removes and adds; and the lines of user code of these ops.
    """
    tables: dict[Program, list[str]] = {}
    _explain(program, backend, tables)
    names = unique_names(list(tables))
    shown = [
        (inner_program, rows)
        for inner_program, rows in tables.items()
        if inner_program is program or len(rows) > 2
    ]
    return "\n\n".join(
        ["\n".join([f"{names[inner_program]}: {rows[0]}", *rows[1:]]) for inner_program, rows in shown]
    )


def _explain(program: Program, backend: RawTensor[Any], tables: dict[Program, list[str]]) -> None:
    if program in tables:
        return
    rows_of_program = tables[program] = []  # inserted first, before the inner programs
    rows = [("pass", "equations", "removed", "added", "lines")]
    first = last = _counts(program)
    inner: list[Program] = []
    for name, after in steps(program, backend):
        if name == "inner programs":
            inner = inner_programs(program)
        counts_after = _counts(after)
        removed, added = last - counts_after, counts_after - last
        if not removed and not added:  # but equations may have moved between programs
            before_alone, after_alone = _counts(program, alone=True), _counts(after, alone=True)
            removed, added = before_alone - after_alone, after_alone - before_alone
        if removed or added:
            sizes = f"{last.total()} -> {counts_after.total()}"
            rows.append((name, sizes, _ops(removed), _ops(added), _lines(removed + added)))
        program, last = after, counts_after
    widths = [max([len(row[i]) for row in rows]) for i in range(4)]
    table = [
        "  ".join([*[cell.ljust(n) for cell, n in zip(row, widths, strict=False)], row[4]]).rstrip()
        for row in rows
    ]
    rows_of_program += [f"{first.total()} equations, {last.total()} after all passes", *table]
    for inner_program in inner:
        _explain(inner_program, backend, tables)


def _counts(program: Program, alone: bool = False) -> _Counts:
    """How many equations of each op come from each line, in the program and, unless `alone`, in its inner programs."""
    counts: _Counts = Counter()
    for inner_program in [program] if alone else all_programs(program):
        for e in inner_program.equations:
            counts[e.op.name, "" if e.origin is None else f"{Path(e.origin.file).name}:{e.origin.line}"] += 1
    return counts


def _ops(counts: _Counts) -> str:
    """The ops by their total counts, the most frequent first, such as `3 mul, sum`."""
    total: Counter[str] = Counter()
    for (op, _), n in counts.items():
        total[op] += n
    return ", ".join([op if n == 1 else f"{n} {op}" for op, n in total.most_common()])


def _lines(counts: _Counts) -> str:
    """The first few lines, such as `model.py:12, model.py:15`."""
    names = list(dict.fromkeys([line for _, line in counts if line]))
    return ", ".join(names[:_LINES]) + (", ..." if len(names) > _LINES else "")
