"""Markdown pages and the blocks of code in them: what a block is, and how a page's blocks are run.

The blocks of a page run in their order and share their names.

* `python` is run; it prints what the block of `text` straight below it says, and nothing if there is none.
* `pycon` is run as doctest runs a session: each `>>>` gives what stands below it.
* `python elsewhere` belongs to some other place, where another test puts and runs it; here it must be Python.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.workspace import ROOT

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a Markdown file."""

    language: str
    text: str
    line: int  # of its first line of text
    kind: str = ""  # what stands after the language

    @property
    def commands(self) -> list[str]:
        """The lines that a prompt precedes, without the prompt."""
        return [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks that name a language, in their order."""
    return [
        Block(
            found["language"],
            found["text"],
            markdown.count("\n", 0, found.start("text")) + 1,
            found["kind"].strip(),
        )
        for found in _FENCE.finditer(markdown)
    ]


def pages() -> list[Path]:
    """The pages that people read: those at the top of the workspace, and all of docs/."""
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return above + sorted(ROOT.glob("docs/**/*.md"))


def run(page: str, name: str) -> list[str]:
    """Run the blocks of a page; what is wrong with them, each beginning with the page's name and the line.

    An error of a block that no example expects goes its way, with the page's line in its traceback.
    """
    found = blocks(page)
    wrong: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    for block, below in itertools.zip_longest(found, found[1:]):
        where = f"{name}:{block.line}"
        if block.language == "pycon":
            wrong += [f"{where}: {line}" for line in _session(block, names, name)]
        elif block.language == "python" and block.kind == "elsewhere":
            compile(textwrap.dedent(block.text), where, "exec")
        elif block.language == "python":
            expected = below.text if below is not None and below.language == "text" else ""
            printed = _printed(block, names, name)
            if printed != expected:
                wrong.append(f"{where}: prints {printed!r}, and the page says {expected!r}")
    return wrong


def _printed(block: Block, names: dict[str, Any], name: str) -> str:
    """What a block prints."""
    stream = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, name, "exec")
    with contextlib.redirect_stdout(stream):
        exec(code, names)
    return stream.getvalue()


def _session(block: Block, names: dict[str, Any], name: str) -> list[str]:
    """The failures of an interactive session."""
    stream = io.StringIO()
    session = doctest.DocTestParser().get_doctest(block.text, names, name, name, block.line - 1)
    doctest.DocTestRunner(verbose=False).run(session, out=stream.write, clear_globs=False)
    names |= session.globs
    return [stream.getvalue()] if stream.getvalue() else []
