"""The README: its blocks run separately, and it is as short as it states."""

from __future__ import annotations

import itertools

import pytest

from tools import pages
from tools.pages import Block, blocks
from tools.workspace import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(README)
PYTHON = [block for block in BLOCKS if block.language == "python"]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"line{block.line}")
def test_each_block_runs_by_itself_and_prints_something(block: Block) -> None:
    """A reader may copy a single block; test_pages.py compares their output."""
    expected = dict(itertools.pairwise(BLOCKS))[block]
    assert expected.language == "text"
    assert pages.run(f"```python\n{block.text}```\n\n```text\n{expected.text}```\n", "README.md") == []


def test_the_examples_are_as_short_as_the_headings_say() -> None:
    derivative, _, _, _, _, backend = (block.text.strip().splitlines() for block in PYTHON)
    assert any("tk.grad" in line for line in derivative)
    assert len([line for line in derivative if line]) <= 10
    classes = [line for line in backend if line and not line.startswith(("import", "from", "x = ", "print"))]
    assert "class Mine(RawTensor" in classes[0]
    assert len(classes) <= 30


def test_it_is_read_in_two_minutes() -> None:
    """Some 400 words of prose, without code."""
    prose = README
    for block in BLOCKS:
        prose = prose.replace(block.text, "")
    assert len(prose.split()) <= 560
