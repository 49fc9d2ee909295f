"""The picture of a training: its figures from period to period."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorken_nn import figures
from tensorken_nn.pictures import COLOURS, canvas
from tensorken_nn.training import Record


def draw(records: Sequence[Record], period: int, unit: str, file: Path, title: str) -> None:
    """Save the curves as a PNG: a panel for each kind of figure, a line for each data that it is of.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.ticker import MaxNLocator

    panels: dict[str, list[str]] = {}
    for name in records[-1].figures:
        panels.setdefault(figures.of(name)[1], []).append(name)
    steps = [record.step if unit == "step" else -(-record.step // period) for record in records]
    figure = canvas(max(4.5 * len(panels), 7.0), 3.6)  # wide enough for the title
    figure.suptitle(title)
    for axes, (kind, names) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        percent = 100 if kind == "accuracy" else 1
        for name, colour in zip(names, COLOURS, strict=False):
            values = [percent * record.figures[name] for record in records]
            axes.plot(steps, values, color=colour, marker=".", label=figures.of(name)[0])
        axes.set_xlabel(unit)
        axes.set_ylabel(f"{kind}, %" if percent == 100 else kind)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(file, dpi=120)
