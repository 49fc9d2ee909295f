"""Notebooks in docs/: as pages of the site, and as they run.

`python -m tools.notebook FILE` runs a notebook and keeps in it what its cells print; a test compares that with what
they print then.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.workspace import ROOT

PATIENCE = 300.0
"""Seconds that a cell may take."""


def notebooks() -> list[Path]:
    """Those that people read."""
    return sorted(ROOT.glob("docs/**/*.ipynb"))


def page(notebook: Path) -> str:
    """A notebook as Markdown: its prose, its code, and below each cell what it printed."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"]).strip("\n")
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        if cell["cell_type"] == "code" and cell["outputs"]:
            parts.append(f"```text\n{printed(cell).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def printed(cell: Mapping[str, Any]) -> str:
    """What a cell printed, or gave as its value.

    Raises:
        ValueError: if it is something else than text.
    """
    texts = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            text = output["text"]
        elif output["output_type"] == "execute_result" and set(output["data"]) == {"text/plain"}:
            text = output["data"]["text/plain"]
        else:
            raise ValueError(f"cell {cell['id']}: pages have text alone, and this is {output['output_type']}")
        texts.append(text if isinstance(text, str) else "".join(text))
    return "".join(texts)


def run(notebook: Path, folder: Path) -> Any:
    """The notebook with what its cells print when they run in a new kernel, whose working directory is the folder.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    import nbformat
    from nbclient import NotebookClient

    read = nbformat.read(notebook, as_version=4)
    metadata = read.metadata.copy()
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        read, timeout=PATIENCE, kernel_name="python3", record_timing=False, resources=resources
    )
    done = client.execute()
    done.metadata = metadata  # the kernel tells of its version of Python
    return done


def main(arguments: list[str] | None = None) -> None:
    """Run notebooks, and keep what their cells print."""
    import nbformat

    parser = argparse.ArgumentParser(
        prog="python -m tools.notebook", description="run notebooks and keep what they print"
    )
    parser.add_argument("files", nargs="*", type=Path, default=notebooks(), help="default: those of docs/")
    for file in parser.parse_args(arguments).files:
        nbformat.write(run(file, file.parent), file)


if __name__ == "__main__":
    main()
