"""Notebooks in docs/: convert them to pages of the site, and run them.

`python -m tools.notebook FILE` runs a notebook and saves its output; a test compares the saved output with a new run.
Cells with the tag `figure` draw figures. Only the site runs them, and their output is not saved.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.workspace import ROOT

TIMEOUT = 300.0
"""The time limit of a cell in seconds."""


_PYTHON = re.compile(r"^```python(?P<figure> figure)?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

_HEAD = """---
file_format: mystnb
kernelspec: {name: python3}
mystnb: {remove_code_outputs: true}
---

"""
"""The page has the printed outputs, which tests compare; the run adds figures."""

_FIGURE_OPTIONS = """---
tags: [hide-input]
mystnb:
  code_prompt_show: Code of the figure
  code_prompt_hide: Code of the figure
  remove_code_outputs: false
  image: {alt: ALT}
---
"""


def notebooks() -> list[Path]:
    """The notebooks of docs/."""
    return sorted(ROOT.glob("docs/**/*.ipynb"))


def page(notebook: Path) -> str:
    """A notebook as Markdown: its prose and code, with the output below each cell."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"]).strip("\n")
        language = "python figure" if is_figure(cell) else "python"
        parts.append(source if cell["cell_type"] == "markdown" else f"```{language}\n{source}\n```")
        if cell["cell_type"] == "code" and cell["outputs"]:
            parts.append(f"```text\n{output_of(cell).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def with_cells(page: str) -> str:
    """A page with figures as a notebook that MyST-NB runs; other pages are returned unchanged.

    Every block of Python becomes a cell. The alternative text of a figure is the string with which its block begins.
    """

    def cell(block: re.Match[str]) -> str:
        code, options = block["code"], ""
        if block["figure"]:
            text, code = figure_of(code)
            options = _FIGURE_OPTIONS.replace("ALT", json.dumps(text))
        return f"```{{code-cell}} python\n{options}{code}```"

    has_figures = any(block["figure"] for block in _PYTHON.finditer(page))
    return _HEAD + _PYTHON.sub(cell, page) if has_figures else page


def figure_of(code: str) -> tuple[str, str]:
    """The alternative text of a figure, in one line, and the code that draws it.

    Raises:
        ValueError: if the code does not begin with a string.
    """
    tree = ast.parse(code)
    text = ast.get_docstring(tree)
    if not text:
        raise ValueError(f"a figure needs a string first, its alternative text: {code[:80]!r}")
    lines = code.splitlines(keepends=True)
    return " ".join(text.split()), "".join(lines[tree.body[0].end_lineno :])


def is_figure(cell: Mapping[str, Any]) -> bool:
    """Whether a cell draws a figure."""
    return "figure" in cell["metadata"].get("tags", ())


def output_of(cell: Mapping[str, Any]) -> str:
    """The text that a cell printed, and its value.

    Raises:
        ValueError: if the output is not text.
    """
    texts = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            text = output["text"]
        elif output["output_type"] == "execute_result" and set(output["data"]) == {"text/plain"}:
            text = output["data"]["text/plain"]
        else:
            raise ValueError(f"cell {cell['id']}: need text output, got {output['output_type']}")
        texts.append(text if isinstance(text, str) else "".join(text))
    return "".join(texts)


def run(notebook: Path, folder: Path) -> Any:
    """Run a notebook, but no figures, in a new kernel with this working directory; returns it with its output.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    import nbformat
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    metadata = content.metadata.copy()
    figures = [cell for cell in content.cells if is_figure(cell)]
    for cell in figures:
        cell.cell_type = "raw"  # which is not run
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        content, timeout=TIMEOUT, kernel_name="python3", record_timing=False, resources=resources
    )
    executed = client.execute()
    for cell in figures:
        cell.cell_type = "code"
    executed.metadata = metadata  # the kernel adds its Python version
    return executed


def main(arguments: list[str] | None = None) -> None:
    """Run notebooks and save their output."""
    import nbformat

    parser = argparse.ArgumentParser(
        prog="python -m tools.notebook", description="run notebooks and save their output"
    )
    parser.add_argument("files", nargs="*", type=Path, default=notebooks(), help="default: all of docs/")
    for file in parser.parse_args(arguments).files:
        nbformat.write(run(file, file.parent), file)


if __name__ == "__main__":
    main()
