"""Charts of the tables in docs/performance.md: a dot for the ratio of each workload and library, on a logarithmic axis.

The site has a chart in the place of each `<!-- chart: NAME -->`, of the table below `<!-- figures: NAME -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.figures import STYLE

MARKERS = {
    "JAX": ("C0", "o"),
    "PyTorch": ("C1", "s"),
    "tinygrad": ("C2", "^"),
    "autograd": ("C3", "D"),
    "numpy": ("C4", "P"),
    "naive": ("C5", "v"),
}
"""The colour and the shape of a library's dots in all charts."""

LOWEST = 0.01
"""Smaller ratios, which the tables round to 0.00 or 0.01, are at the edge."""

_CHART = re.compile(r"^<!-- chart: (\w+) -->$", re.MULTILINE)
_TABLE = re.compile(r"^(?:\|.*\n)+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Table:
    """The workloads of a table, and for each library a ratio for each workload, or None without one."""

    workloads: list[str]
    ratios: dict[str, list[float | None]]

    def summary(self) -> str:
        """The number of workloads in which Tensorken is faster, for each library."""
        parts = []
        for library, ratios in self.ratios.items():
            known = [ratio for ratio in ratios if ratio is not None]
            parts.append(f"{library} in {sum(ratio < 1.0 for ratio in known)} of {len(known)}")
        return f"Tensorken is faster than {', than '.join(parts)} workloads."


def marked(page: str) -> list[str]:
    """The names of the charts of a page."""
    return list(dict.fromkeys(_CHART.findall(page)))


def table_of(page: str, name: str) -> Table:
    """The table between the marks of a suite.

    Raises:
        ValueError: if the page has no such table.
    """
    _, found, rest = page.partition(f"<!-- figures: {name} -->\n")
    table = _TABLE.search(rest.partition(f"<!-- end of {name} -->")[0])
    if not found or table is None:
        raise ValueError(f"chart {name}: the page has no table <!-- figures: {name} -->")
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in table[0].splitlines()
    ]
    workloads = [row[0] for row in rows]
    libraries = {i: cell.removeprefix("/ ") for i, cell in enumerate(head) if cell.startswith("/ ")}
    return Table(workloads, {name: [_ratio(row[i]) for row in rows] for i, name in libraries.items()})


def with_charts(page: str, folder: Path) -> str:
    """The page with images in place of the marks, and tables that scroll on a phone.

    Args:
        page: the Markdown.
        folder: the folder of the page, where the images are saved.
    """
    for name in marked(page):
        table = table_of(page, name)
        draw(table, folder / f"performance-{name}.svg")
        alt = (
            f"The ratios of {len(table.workloads)} workloads as dots on a logarithmic axis. {table.summary()}"
        )
        figure = f"```{{figure}} performance-{name}.svg\n:alt: {alt}\n\n{table.summary()}\n```"
        page = page.replace(f"<!-- chart: {name} -->", figure)
    return _TABLE.sub(lambda table: f"```{{table}}\n:class: figures\n\n{table[0]}```\n", page)


def draw(table: Table, file: Path) -> None:
    """Draw the ratios of a table: a row for each workload, a dot for each library."""
    import matplotlib
    from matplotlib.figure import Figure

    file.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(fname=STYLE):
        rows = len(table.workloads)
        figure = Figure(figsize=(5.2, 0.9 + 0.19 * rows))
        axes = figure.subplots()
        axes.axvline(1.0, color="#7a7a7a", linewidth=1)
        for library, ratios in table.ratios.items():
            color, marker = MARKERS[library]
            places = [i for i, ratio in enumerate(ratios) if ratio is not None]
            shown = [max(ratio, LOWEST) for ratio in ratios if ratio is not None]
            axes.scatter(shown, places, s=22, color=color, marker=marker, label=library, zorder=3)
        _finish(axes, table.workloads)
        figure.savefig(file, metadata={"Date": None})


def _finish(axes: Any, workloads: list[str]) -> None:
    """The labels of a chart."""
    axes.set_xscale("log")
    left, right = axes.get_xlim()
    left, right = min(left, 0.4), max(right, 2.5)
    steps = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0) if right / left > 10.0 else (0.25, 0.5, 1.0, 2.0, 4.0)
    ticks = [step for step in steps if left <= step <= right]
    axes.set_xlim(left, right)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(workloads)), workloads, fontsize=8.5)
    axes.set_ylim(len(workloads) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True)
    axes.spines.left.set_visible(False)
    axes.set_xlabel("Tensorken's time / the library's time")
    axes.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.3, 1.0), handletextpad=0.1, columnspacing=0.8)


def _ratio(cell: str) -> float | None:
    """The number in a cell; None if it has none."""
    return float(cell) if re.fullmatch(r"\d+(\.\d+)?", cell) else None
