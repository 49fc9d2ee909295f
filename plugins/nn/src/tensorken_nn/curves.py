"""The picture of a training: loss and accuracy from epoch to epoch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorken_nn.training import Epoch

TRAIN, TEST = "#4477aa", "#ee6677"  # told apart by colour-blind eyes too (Paul Tol's bright scheme)


def draw(epochs: Sequence[Epoch], file: Path, title: str) -> None:
    """Save the curves as a PNG.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # not pyplot: it looks for a display
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    numbers = [epoch.number for epoch in epochs]
    panels = (
        ("loss", [e.loss for e in epochs], [e.test_loss for e in epochs]),
        ("accuracy, %", [100 * e.accuracy for e in epochs], [100 * e.test_accuracy for e in epochs]),
    )
    for axes, (name, train, test) in zip(figure.subplots(1, 2), panels, strict=True):
        axes.plot(numbers, train, color=TRAIN, marker=".", label="train")
        axes.plot(numbers, test, color=TEST, marker=".", label="test")
        axes.set_xlabel("epoch")
        axes.set_ylabel(name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(file, dpi=120)
