"""Figures of the examples, which their function `draw` makes: `python -m tools.figures [FOLDER]`.

Such a function draws on a `matplotlib.figure.Figure`. Its docstring is the figure's alternative
text.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
from pathlib import Path
from typing import Any

import tensorken as tk
from tools.workspace import ROOT

STYLE = ROOT / "docs" / "matplotlibrc"


def description(example: Path) -> str:
    """The docstring of an example's function `draw`, in one line; empty if the example has no figure."""
    tree = ast.parse(example.read_text(encoding="utf-8"))
    found = [x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == "draw"]
    return " ".join((ast.get_docstring(found[0]) or "").split()) if found else ""


def draw(example: Path, file: Path) -> None:
    """Run an example and save its figure."""
    import matplotlib
    from matplotlib.figure import Figure

    names: dict[str, Any] = {"__name__": example.stem}
    with contextlib.redirect_stdout(io.StringIO()), tk.printoptions():
        exec(compile(example.read_text(encoding="utf-8"), str(example), "exec"), names)
    file.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(fname=STYLE):
        figure = Figure()
        names["draw"](figure)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def main(arguments: list[str] | None = None) -> None:
    """Draw the figures of all examples."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.figures", description="draw the figures of the examples"
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("figures"), help="where to save them")
    parser.add_argument("--format", default="svg")
    options = parser.parse_args(arguments)
    for example in sorted((ROOT / "examples").rglob("*.py")):
        if description(example):
            draw(example, options.folder / f"{example.stem}.{options.format}")


if __name__ == "__main__":
    main()
