"""Tables of figures, for the terminal and for docs/performance.md, which has a pair of marks for each suite."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Row

import tensorken as tk

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
LIBRARIES = ("tensorken-core", "numpy", "jax", "torch", "tinygrad", "autograd")

Bound = dict[str, Any]
"""`peer` and `at_most`, the ratio to that peer, or to the fastest if it is "best".

Without a peer, `at_most` is in the unit of the figure.
"""

BEST = "best"


@dataclass(frozen=True, slots=True)
class Table:
    """A suite's columns (the title of each peer) and its bounds by workload."""

    titles: Mapping[str, str]
    bounds: Mapping[str, Bound]

    def head(self) -> str:
        """The head of the table, for the terminal."""
        return _aligned(self._head())

    def line(self, row: Row) -> str:
        """A row, for the terminal."""
        return _aligned(self._cells(row))

    def markdown(self, rows: Sequence[Row]) -> str:
        """The whole table, for the page."""
        head = self._head()
        cells = [head, *(self._cells(row) for row in rows)]
        used = [any(row[i] for row in cells[1:]) for i in range(len(head))]  # absent libraries have no column
        cells = [[cell for cell, is_used in zip(row, used, strict=True) if is_used] for row in cells]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        return "\n".join(
            f"| {' | '.join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])} |"
            for row in [cells[0], rule, *cells[1:]]
        )

    def missed(self, row: Row) -> bool:
        """Whether the figure exceeds its bound, or a bounded figure is missing."""
        bound = self._held_against(row)
        if bound is None:
            return False
        measured = self._measured(row, bound)
        return isinstance(measured, str) or measured > bound["at_most"]

    def _measured(self, row: Row, bound: Bound) -> float | str:
        """What is compared with the bound: a figure, or a word if there is none."""
        if "peer" not in bound:
            return row.ours
        if bound["peer"] == BEST:
            return max([ratio for ratio in row.ratios.values() if not isinstance(ratio, str)], default="")
        return row.ratios.get(bound["peer"], "")

    def _head(self) -> list[str]:
        return ["workload", "ours", *(f"/ {title}" for title in self.titles.values()), "bound"]

    def _cells(self, row: Row) -> list[str]:
        ratios = [row.ratios.get(peer, "") for peer in self.titles]
        shown = [ratio if isinstance(ratio, str) else f"{ratio:.2f}" for ratio in ratios]
        return [row.name, _figure(row.ours, row.unit), *shown, self._bound(row)]

    def _held_against(self, row: Row) -> Bound | None:
        """The row's bound, if its peer was measured."""
        bound = self.bounds.get(row.name, {})
        return bound if bound and ("peer" not in bound or bound["peer"] in (BEST, *self.titles)) else None

    def _bound(self, row: Row) -> str:
        bound = self._held_against(row)
        if bound is None:
            return ""
        most = bound["at_most"]
        peer = bound.get("peer")
        text = _figure(most, row.unit) if peer is None else f"{most:.2f} {self.titles.get(peer, peer)}"
        return f"{text}, missed" if self.missed(row) else text


def machine() -> str:
    """The versions of the libraries, the backend and its device, and the processor."""
    zero = tk.tensor(0.0)
    versions = [f"{name} {version}" for name in LIBRARIES if (version := _version(name))]
    system = f"Python {platform.python_version()} on {platform.system()}, {_processor()}"
    place = f"backend {zero.backend}, device {zero.device}"
    return f"{', '.join(versions)}; {place}; {system}; one thread, CPU time."


def write(suite: str, table: str) -> None:
    """Write a suite's table into the page, and the versions and the processor that it was measured with."""
    text = PAGE.read_text(encoding="utf-8")
    for mark, content in ((suite, table), ("machine", machine())):
        begin, end = f"<!-- figures: {mark} -->", f"<!-- end of {mark} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{content}\n\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text, encoding="utf-8", newline="\n")


def _aligned(cells: list[str]) -> str:
    name, *figures = cells
    return f"{name:<34}" + "".join(f"{cell:>16}" for cell in figures[:-1]) + f"  {figures[-1]}"


def _figure(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / 1e6:.0f} MB" if value >= 1e7 else f"{value / 1e6:.2f} MB"
    scale, prefix = (1e6, "µs") if value < 1e-3 else (1e3, "ms") if value < 1 else (1.0, "s")
    digits = f"{value * scale:.3g}" if value * scale < 1000 else f"{value * scale:.0f}"
    return f"{digits} {prefix}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    """The processor's name, as the system reports it."""
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text("ascii", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
