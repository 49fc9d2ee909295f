"""Notebooks in docs/: convert them to pages of the site, and run them.

`python -m tools.notebook FILE` runs a notebook and saves its output; a test compares the saved output with a new run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.workspace import ROOT

TIMEOUT = 300.0
"""The time limit of a cell in seconds."""


def notebooks() -> list[Path]:
    """The notebooks of docs/."""
    return sorted(ROOT.glob("docs/**/*.ipynb"))


def page(notebook: Path) -> str:
    """A notebook as Markdown: its prose and code, with the output below each cell."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"]).strip("\n")
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        if cell["cell_type"] == "code" and cell["outputs"]:
            parts.append(f"```text\n{output_of(cell).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


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
    """Run a notebook in a new kernel with this working directory; returns the notebook with its output.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    import nbformat
    from nbclient import NotebookClient

    content = nbformat.read(notebook, as_version=4)
    metadata = content.metadata.copy()
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        content, timeout=TIMEOUT, kernel_name="python3", record_timing=False, resources=resources
    )
    executed = client.execute()
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
