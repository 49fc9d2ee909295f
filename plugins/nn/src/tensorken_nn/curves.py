"""Learning curves: a plot of the metrics of a training run by period."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorken_nn import metrics
from tensorken_nn.plots import COLOURS, canvas
from tensorken_nn.training import Record


def draw(records: Sequence[Record], period: int, unit: str, file: Path, title: str) -> None:
    """Save the curves as a PNG: a panel for each metric, a line for each data set.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.ticker import MaxNLocator

    panels: dict[str, list[str]] = {}
    for name in records[-1].metrics:
        panels.setdefault(metrics.split_name(name)[1], []).append(name)
    steps = [record.step if unit == "step" else -(-record.step // period) for record in records]
    figure = canvas(max(4.5 * len(panels), 7.0), 3.6)  # wide enough for the title
    figure.suptitle(title)
    for axes, (kind, names) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        percent = 100 if kind == "accuracy" else 1
        for name, colour in zip(names, COLOURS, strict=False):
            values = [percent * record.metrics[name] for record in records]
            axes.plot(steps, values, color=colour, marker=".", label=metrics.split_name(name)[0])
        axes.set_xlabel(unit)
        axes.set_ylabel(f"{kind}, %" if percent == 100 else kind)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(file, dpi=120)
