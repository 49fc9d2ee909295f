"""The pages: their Python runs and prints the stated output, their commands run and their links are valid."""

from __future__ import annotations

import doctest
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tools import pages
from tools.pages import blocks
from tools.workspace import ROOT

PAGES = [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages.pages()]


@pytest.mark.parametrize("page", PAGES)
def test_python_prints_what_the_page_says(page: Path) -> None:
    assert pages.run(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()) == []


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if "README.md" not in page.id])
def test_commands_run(page: Path, tmp_path: Path) -> None:
    """The `console` commands, in one folder; without nox sessions and the README, which `nox -s readme` runs.

    They print what the page shows below them, if anything.  `echo $?` shows the status of the command before it; any
    other status is 0.
    """
    sessions = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for block in blocks(page.read_text(encoding="utf-8")):
        status = 0
        for command, expected in block.session if block.language == "console" else ():
            program, *arguments = shlex.split(command)
            if (program, *arguments[:1]) == ("python", "run.py"):
                assert f"| `{arguments[1]}` |" in sessions, command
                continue
            if command == "echo $?":
                assert status == int(expected), command
                status = 0
                continue
            assert status == 0, command
            assert program == "tensorken", f"no test can run this; show it as a block of sh: {command}"
            status, printed = _run(arguments, tmp_path)
            assert not expected or matches(expected, printed), f"{command}: prints {printed!r}"
        assert status == 0, page


def _run(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit status and output of `tensorken` in a folder, on a plain terminal of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "tensorken", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


def matches(expected: str, printed: str) -> bool:
    """Whether an output is as a page shows it.

    `...` in the page is any text, a line `...` any number of lines, and blanks may be more or fewer.
    """
    expected = expected.replace("\n...\n", "...\n")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_is_valid(page: Path) -> None:
    targets = [part.split(")")[0] for part in page.read_text(encoding="utf-8").split("](")[1:]]
    for target in targets:
        file, _, heading = target.partition("#")
        if file.startswith("https:"):
            continue
        place = page.parent / file if file else page
        assert place.exists(), target
        text = place.read_text(encoding="utf-8") if heading else ""
        headings = [
            line.lstrip("# ").lower().replace("`", "").replace(" ", "-")
            for line in text.splitlines()
            if line[:1] == "#"
        ]
        assert not heading or heading in headings, target


# ---- running pages -------------------------------------------------------------------------------------


def test_blocks_share_their_variables() -> None:
    page = "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n"
    assert pages.run(page + "\n```pycon\n>>> x + 1\n2\n>>> y = x\n```\n\n```python\ny\n```\n", "page") == []


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\n```\n\n```text\n2\n```\n",
        "```pycon\n>>> 1\n2\n```\n",
    ],
)
def test_wrong_output_is_reported_with_its_line(page: str) -> None:
    (wrong,) = pages.run(f"# Title\n\n{page}", "page.md")
    assert wrong.startswith("page.md:4: ")


def test_elsewhere_and_figure_blocks_are_compiled_but_not_run() -> None:
    assert pages.run("```python elsewhere\n    def f(self): return missing\n```\n", "page") == []
    assert pages.run('```python figure\n"""A line."""\nimport missing\n```\n', "page") == []
    with pytest.raises(SyntaxError):
        pages.run("```python elsewhere\ndef def\n```\n", "page")
