"""What the README shows is so: its Python runs and prints what it says, its commands are those of the workshop."""

from __future__ import annotations

import contextlib
import io
import itertools
from pathlib import Path

import pytest

from tools.readme import Block, blocks
from tools.workspace import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(README)
PYTHON = [block for block in BLOCKS if block.language == "python"]


def printed(block: Block) -> str:
    """What a block of Python prints, run by itself."""
    stream = io.StringIO()
    code = compile(block.text, f"README.md:{block.line}", "exec")
    with contextlib.redirect_stdout(stream):
        exec(code, {"__name__": "__main__"})
    return stream.getvalue()


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"line{block.line}")
def test_python_prints_what_the_text_below_it_says(block: Block) -> None:
    expected = dict(itertools.pairwise(BLOCKS))[block]
    assert expected.language == "text"
    assert printed(block) == expected.text


def test_the_examples_are_as_short_as_the_headings_say() -> None:
    derivative, _, backend = (block.text.strip().splitlines() for block in PYTHON)
    assert any("tk.grad" in line for line in derivative)
    assert len([line for line in derivative if line]) <= 10
    classes = [line for line in backend if line and not line.startswith(("import", "from", "x = ", "print"))]
    assert "class Mine(RawTensor" in classes[0]
    assert len(classes) <= 30


def test_it_is_read_in_a_minute() -> None:
    """Some 300 words of prose, at the pace that people read; code is looked at, not read."""
    prose = README
    for block in BLOCKS:
        prose = prose.replace(block.text, "")
    assert len(prose.split()) <= 420


PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    ROOT.glob("docs/**/*.md")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = [part.split(")")[0] for part in page.read_text(encoding="utf-8").split("](")[1:]]
    for target in targets:
        file, _, heading = target.partition("#")
        if file.startswith("https:"):
            continue
        text = (page.parent / file).read_text(encoding="utf-8") if file else page.read_text(encoding="utf-8")
        headings = [
            line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines() if line[:1] == "#"
        ]
        assert not heading or heading in headings, target
