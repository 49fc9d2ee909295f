"""Code blocks of Markdown pages: parse and run them.

The blocks of a page run in order and share their variables.

* `python` is run; its output must equal the `text` block directly below it, or be empty if there is none.
* `pycon` is run as a doctest session.
* `python elsewhere` is run by another test; here it must only compile.
* `python drawing` is run; it must print the picture that the page shows below it, an SVG file.
  `python -m tools.pages PAGE` writes the pictures of a page.
* `python figure` draws a figure with matplotlib, and begins with a string, the figure's alternative text. The site
  runs it (tools/notebook.py); here it must only compile.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.workspace import ROOT, distributions

_FENCE = re.compile(r"^```(?P<language>\w+)(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"\s*!\[[^\]]+\]\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a Markdown file."""

    language: str
    text: str
    line: int  # of the first line of the text
    kind: str = ""  # the words after the language
    picture: str = ""  # the file of the picture directly below it

    @property
    def commands(self) -> list[str]:
        """The lines with a `$` prompt, without the prompt."""
        return [command for command, _ in self.session]

    @property
    def session(self) -> list[tuple[str, str]]:
        """The lines with a `$` prompt, without the prompt, each with the output below it; `...` is any text."""
        parts = re.split(r"^\$ (.*)\n?", self.text, flags=re.MULTILINE)
        return list(zip(parts[1::2], parts[2::2], strict=True))


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks with a language, in order."""
    return [
        Block(
            match["language"],
            match["text"],
            markdown.count("\n", 0, match.start("text")) + 1,
            match["kind"].strip(),
            picture[1] if (picture := _PICTURE.match(markdown, match.end())) else "",
        )
        for match in _FENCE.finditer(markdown)
    ]


def pages() -> list[Path]:
    """The pages at the top of the workspace, the README of each distribution, and all pages of docs/."""
    above = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    each = [folder / "README.md" for folder in distributions(optional=True)]
    return [*above, *each, *sorted(ROOT.glob("docs/**/*.md"))]


def run(page: str, name: str, *, draw: bool = False) -> list[str]:
    """Run the blocks of a page; returns the failures, each with the page's name and the line.

    Unexpected exceptions propagate, with the page's line in the traceback.

    Args:
        page: its text.
        name: its path from the root of the workspace.
        draw: write the pictures instead of comparing them.
    """
    page_blocks = blocks(page)
    failures: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    for block, below in itertools.zip_longest(page_blocks, page_blocks[1:]):
        location = f"{name}:{block.line}"
        if block.language == "pycon":
            failures += [f"{location}: {line}" for line in _session(block, names, name)]
        elif block.language == "python" and block.kind in ("elsewhere", "figure"):
            compile(textwrap.dedent(block.text), location, "exec")
        elif block.language == "python" and block.kind == "drawing":
            picture = ROOT / Path(name).parent / block.picture
            printed = _printed(block, names, name)
            if draw:
                picture.parent.mkdir(exist_ok=True)
                picture.write_text(printed, encoding="utf-8", newline="\n")
            elif not block.picture or printed != picture.read_text(encoding="utf-8"):
                failures.append(f"{location}: prints another picture; run: python -m tools.pages {name}")
        elif block.language == "python":
            expected = below.text if below is not None and below.language == "text" else ""
            printed = _printed(block, names, name)
            if printed != expected:
                failures.append(f"{location}: prints {printed!r}, but the page has {expected!r}")
    return failures


def _printed(block: Block, names: dict[str, Any], name: str) -> str:
    """Run a block; returns its output."""
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


def main(paths: Sequence[str]) -> int:
    """Write the pictures of these pages; returns the exit status."""
    failures = [f for path in paths for f in run(Path(path).read_text(encoding="utf-8"), path, draw=True)]
    print("".join([f"{failure}\n" for failure in failures]), end="", file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
