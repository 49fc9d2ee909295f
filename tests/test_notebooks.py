"""Notebooks of docs/ print the saved output, and kernels keep working after failed or interrupted cells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools import notebook, site
from tools.workspace import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:Proactor event loop:RuntimeWarning")  # of pyzmq, on Windows
NOTEBOOKS = [pytest.param(file, id=file.stem) for file in notebook.notebooks()]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels write their files to the folder of the test."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")  # otherwise Jupyter warns about its folders


def codes(cells: Any) -> Iterator[Any]:
    return (cell for cell in cells if cell["cell_type"] == "code")


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS)
def test_cells_print_the_saved_output(file: Path, tmp_path: Path) -> None:
    said, found = nbformat.read(file, as_version=4), notebook.run(file, tmp_path)
    nbformat.validate(said)
    for before, after in zip(codes(said.cells), codes(found.cells), strict=True):
        assert notebook.output_of(after) == notebook.output_of(before), f"python -m tools.notebook {file}"
        assert after.execution_count == before.execution_count


@pytest.mark.parametrize("file", NOTEBOOKS)
def test_links_of_a_notebook_are_valid(file: Path) -> None:
    docs = ROOT / "docs"
    pages = {page: page.relative_to(docs) for page in [*docs.rglob("*.md"), file]}
    assert site.rewrite_links(notebook.page(file), file, pages).startswith("# ")


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    code = nbformat.v4.new_code_cell("x = 1\nprint(x)")
    code.outputs = [nbformat.v4.new_output("stream", text="1\n")]
    quiet = nbformat.v4.new_code_cell("y = 2")
    cells = [nbformat.v4.new_markdown_cell("# Title\n\nProse."), code, quiet]
    file = tmp_path / "a.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    blocks = "```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\n```python\ny = 2\n```"
    assert notebook.page(file) == f"# Title\n\nProse.\n\n{blocks}\n"


def test_a_page_with_figures_becomes_a_notebook() -> None:
    figure = '```python figure\n"""\nA line that\nrises.\n"""\nplot(x)\n```\n'
    page = notebook.with_cells(f"# Title\n\n```python\nx = 1\n```\n\n{figure}\n```text\n1\n```\n")
    assert page.startswith("---\nfile_format: mystnb\n")
    assert "```{code-cell} python\nx = 1\n```\n" in page
    assert '  image: {alt: "A line that rises."}\n---\nplot(x)\n```\n\n```text\n1\n```\n' in page
    assert notebook.with_cells("```python\nx = 1\n```\n") == "```python\nx = 1\n```\n"
    with pytest.raises(ValueError, match=r"a figure needs a string first, its alternative text: 'plot\(1\)"):
        notebook.with_cells("```python figure\nplot(1)\n```\n")


def test_figures_of_a_notebook_are_kept_but_not_run(tmp_path: Path) -> None:
    figure = nbformat.v4.new_code_cell('"""A line."""\nimport missing', metadata={"tags": ["figure"]})
    cells = [nbformat.v4.new_code_cell("x = 1"), figure, nbformat.v4.new_code_cell("x")]
    file = tmp_path / "a.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    found = notebook.run(file, tmp_path)
    assert [(cell.cell_type, cell.execution_count) for cell in found.cells] == [
        ("code", 1),
        ("code", None),
        ("code", 2),
    ]
    assert '```python figure\n"""A line."""\nimport missing\n```' in notebook.page(file)


def test_output_other_than_text_is_refused() -> None:
    cell = nbformat.v4.new_code_cell("raise ValueError", id="wrong")
    cell.outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[])]
    with pytest.raises(ValueError, match="cell wrong: need text output, got error"):
        notebook.output_of(cell)


# ---- kernels after errors --------------------------------------------------------------------------------------

SETUP = """
import time
import tensorken as tk

x, y = tk.tensor([-1.0, 0.0, 1.0]), tk.tensor([-3.0, 0.0, 3.0])
loss = lambda w: ((w * x - y) ** 2).mean()
step = tk.jit(lambda w: w - 0.5 * tk.grad(loss)(w))
"""

CHECK = """
assert abs(tk.grad(loss)(tk.scalar(0.0)).item() + 4.0) < 1e-5  # -2 mean(x * y)
w = tk.scalar(0.0)
for _ in range(20):
    w = step(w)
assert abs(w.item() - 3.0) < 1e-4, w
assert tk.vmap(tk.grad(tk.sin))(tk.zeros(3)).tolist() == [1.0, 1.0, 1.0]
assert tk.jit(lambda x: x + 1.0)(tk.scalar(1.0)).item() == 2.0
print("right")
"""

FAILURES = {  # a cell, and the name of its error
    "before any": ("1 / 0", "ZeroDivisionError"),
    "while a program is traced": (
        "tk.jit(lambda w: tk.grad(loss)(w) + tk.ones((2, 3)) @ tk.ones((2, 3)))(tk.scalar(0.0))",
        "ShapeError",
    ),
    "within a derivative and a batch": (
        "tk.jit(tk.vmap(tk.grad(lambda w: step(w) if w > 0 else w)))(tk.zeros(3))",
        "ConcretizationError",
    ),
    "of a user within all levels": (
        "tk.jit(tk.vmap(tk.grad(lambda w: step(w) / (1 // 0))))(tk.zeros(3))",
        "ZeroDivisionError",
    ),
}

TRAINING = """
w = tk.scalar(0.0)
print("begun", flush=True)
while True:
    w = step(w)
    tk.value_and_grad(loss)(w)
"""

TRACING = """
pause = 100.0

def slow(w):
    w = tk.sin(w)
    print("begun", flush=True)
    time.sleep(pause)
    return w

compiled = tk.jit(tk.grad(slow))
compiled(tk.scalar(1.0))
"""

TRACED_AGAIN = """
pause = 0.0
assert abs(compiled(tk.scalar(1.0)).item() - 0.5403023) < 1e-6  # cos(1)
"""


@pytest.mark.slow
def test_a_kernel_works_after_errors_and_interruptions() -> None:
    asyncio.run(_survive())


def printed(outputs: list[Any]) -> str:
    """The text that a cell printed; a kernel on a busy machine may send it in several outputs."""
    return "".join([output.get("text", "") for output in outputs])


async def _survive() -> None:
    from nbclient import NotebookClient

    cells = nbformat.v4.new_notebook()
    client = NotebookClient(cells, timeout=100.0, kernel_name="python3", allow_errors=True)

    async def run(source: str, *, interrupt_after: float | None = None) -> Any:
        """The outputs of a cell that is interrupted this many seconds after its first output."""
        cell = nbformat.v4.new_code_cell(source)
        cells.cells.append(cell)
        running = asyncio.create_task(client.async_execute_cell(cell, len(cells.cells) - 1))
        if interrupt_after is not None:
            while not cell.outputs and not running.done():
                await asyncio.sleep(0.01)
            await asyncio.sleep(interrupt_after)
            await client.km.interrupt_kernel()
        await running
        return cell.outputs

    async with client.async_setup_kernel():
        assert await run(SETUP) == []
        for name, (source, kind) in FAILURES.items():
            (error,) = await run(source)
            assert error.get("ename") == kind, (name, error)
            assert printed(await run(CHECK)) == "right\n", name
        for source, seconds in ((TRAINING, 0.0), (TRAINING, 0.1), (TRACING, 0.0)):
            outputs = await run(source, interrupt_after=seconds)
            shown = printed([x for x in outputs if x.get("name") == "stdout"])
            # IPython cannot print the traceback of a frame that is interrupted at an instruction without a line, and
            # says so.
            failed = "in format_record" in printed([x for x in outputs if x.get("name") == "stderr"])
            assert shown.startswith("begun\n") if failed else shown == "begun\n", (source, outputs)
            assert failed or outputs[-1].get("ename") == "KeyboardInterrupt", (source, outputs)
            assert printed(await run(CHECK)) == "right\n", source
        assert printed(await run(TRACED_AGAIN)) == "begun\n"
