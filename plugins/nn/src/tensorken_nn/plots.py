"""Plots: PNG files drawn by matplotlib without a display."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BLUE, RED, GREEN, YELLOW = COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")
"""Safe for colour-blind readers (Paul Tol's bright scheme)."""


def canvas(width: float, height: float) -> Any:
    """An empty figure of this size in inches, which needs no display.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # pyplot would look for a display
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def try_draw(draw: Callable[[Path], object], file: Path) -> None:
    """Draw a plot into a file if matplotlib is installed."""
    with contextlib.suppress(ImportError):
        draw(file)


def missing_library() -> str:
    """Why matplotlib cannot be imported; empty if it can."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        return str(error)
    return ""


def heat_map(counts: Sequence[Sequence[float]], characters: str, file: Path) -> None:
    """Save a table of counts as a heat map, with a cell for each pair of characters.

    Raises:
        ImportError: without matplotlib.
    """
    size = len(characters)
    figure = canvas(0.55 * size, 0.55 * size)
    figure.set_layout_engine(None)  # the layout engine would measure each of the many texts
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(counts, cmap="Blues")
    most = max(max(row) for row in counts)
    for i, row in enumerate(counts):
        for j, number in enumerate(row):
            colour = "white" if number > 0.55 * most else "0.35"
            axes.text(
                j, i - 0.22, characters[i] + characters[j], ha="center", va="center", color=colour, fontsize=9
            )
            axes.text(j, i + 0.22, f"{number:.0f}", ha="center", va="center", color=colour, fontsize=7)
    axes.set_axis_off()
    figure.savefig(file, dpi=80)
