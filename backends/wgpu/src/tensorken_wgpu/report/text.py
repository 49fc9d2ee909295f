"""The report as lines of text."""

from __future__ import annotations

from typing import Any

from tensorken_wgpu.report import units
from tensorken_wgpu.report.bench import Row

COLUMNS = ("time", "rate", "of a copy", "torch")


def cells(row: Row) -> dict[str, str]:
    """The text of each column that a row has."""
    found = {}
    if row.seconds is not None:
        found["time"] = units.duration(row.seconds)
    if row.rate is not None:
        found["rate"] = units.rate(row.rate, row.unit)
    if row.share is not None:
        found["of a copy"] = f"{100 * row.share:.0f} %"
    if row.torch is not None:
        found["torch"] = units.duration(row.torch)
    return found


def notes(row: Row) -> str:
    """The facts and the error of a row."""
    facts = [f"{name} {_value(value)}" for name, value in row.facts.items()]
    return "; ".join([*facts, *([f"error: {row.error}"] if row.error else [])])


def _value(value: Any) -> str:
    return units.digits(value) if isinstance(value, float) else str(value)


def line(row: Row) -> str:
    """A row as a line.

    >>> line(Row("softmax", 0.002, 2e11, "B", 0.7, 0.0019))
    'softmax                                           2 ms      200 GB/s  70 % of a copy  torch 1.9 ms'
    """
    found = cells(row)
    text = f"{row.name:42} {found.get('time', ''):>11} {found.get('rate', ''):>13}"
    text += f"  {found['of a copy']} of a copy" if "of a copy" in found else ""
    text += f"  torch {found['torch']}" if "torch" in found else ""
    said = notes(row)
    return f"{text.rstrip()}  {said}" if said else text.rstrip()
