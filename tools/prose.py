"""Check the English of the pages: `python -m tools.prose` prints doubtful words, and fails if there are any.

proselint knows phrases that good writers avoid.  TERMS has the words that this project writes in one way only.  Code,
links and quotations are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.workspace import ROOT

TERMS = {
    r"Num[Pp]y": "numpy",
    r"SciPy": "scipy",
    r"Py[- ]?torch|pytorch": "PyTorch",
    r"Jax": "JAX",
    r"Webgpu|Web GPU": "WebGPU",
    r"Cuda": "CUDA",
    r"Github": "GitHub",
    r"TensorKen|tensor ken": "Tensorken",
    r"back[- ]ends?": "backend",
    r"plug-?ins?(?<!plugin)(?<!plugins)": "plugin",
    r"front-ends?": "front end",
    r"meta-data": "metadata",
    r"data-sets?": "data set",
    r"(behavi|col|fav|neighb|hon)ors?": "the British spelling, with -our",
    r"(vector|optim|normal|initial|recogn|real|parallel|synchron|general|minim|maxim|summar)iz(e|es|ed|ing|ation|er)": (
        "the British spelling, with -is-"
    ),
    r"analyz(e|es|ed|ing)": "analyse",
    r"(labe|mode|cance)l(ed|ing)": "the British spelling, with -ll-",
    r"utili[sz]e(s|d)?": "use",
    r"leverag(e|es|ed|ing)": "use",
    r"obviously|basically|simply|of course|easily": "nothing: a reader who does not find it so is not helped",
    r"seamless(ly)?|blazing(ly)?|cutting[- ]edge|state[- ]of[- ]the[- ]art|effortless(ly)?": "a measured figure",
}
"""Patterns of words that the pages do not use, and what to write instead."""

KEPT = re.compile(r"[^\n]")
NOT_PROSE = [
    re.compile(r"^( *)(```|~~~|:::).*?^\1\2$", re.MULTILINE | re.DOTALL),  # code and directives
    re.compile(r"<!--.*?-->|<[^>\n]+>", re.DOTALL),
    re.compile(r"``[^`]+``|`[^`]*`"),
    re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL),
    re.compile(r"(?<=\])(\([^)\n]*\)|\[[^\]\n]*\])"),  # the target of a link
    re.compile(r"https?://\S+"),
    re.compile(r"^\|.*$", re.MULTILINE),  # tables are mostly names
    re.compile(r"“[^”]*”"),
    re.compile(r'(?<!\w)"(?:[^"\n]|\n(?!\n))*"(?!\w)'),
    re.compile(r"multiply-adds?"),  # which proselint takes for an adverb
]


def prose(page: str) -> str:
    """A page of Markdown with all that is no prose replaced by #, and each heading as a sentence; lines stay lines.

    >>> print(prose("A `tk.grad` of [numpy](https://numpy.org)."))
    A ######### of [numpy]###################.
    """
    for pattern in NOT_PROSE:
        page = pattern.sub(lambda match: KEPT.sub("#", match[0]), page)
    return re.sub(r"^(#+ .*\w)$", r"\1.\t", page, flags=re.MULTILINE)


def faults(page: str) -> Iterator[tuple[int, str]]:
    """The lines of a page with doubtful words, and advice."""
    from proselint.checks import __register__
    from proselint.config import DEFAULT
    from proselint.registry import CheckRegistry
    from proselint.tools import LintFile

    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(__register__)
    text = prose(page)
    checks = {**DEFAULT["checks"], "typography": False}  # quotation marks are often code, and x a name
    for found in LintFile("page", text).lint({**DEFAULT, "checks": checks}):
        start, end = found.check_result.span  # in the text after a line end
        if not re.search(r"[#\d]", text[max(start - 1, 0) : end]):  # such as two numbers
            yield text.count("\n", 0, start - 1) + 1, found.check_result.message
    for pattern, better in TERMS.items():
        for match in re.finditer(rf"(?<![\w./#-])(?:{pattern})(?![\w/#-]|\.\w)", text):
            yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}: write {better}"


def pages() -> list[Path]:
    """The pages that are checked."""
    texts = [file for pattern in ("*.md", "changelog.d/*.md", "docs/**/*.md") for file in ROOT.glob(pattern)]
    own = [file for pattern in ("*/README.md", "*/*/README.md") for file in ROOT.glob(pattern)]
    return sorted(file for file in {*texts, *own} if not file.relative_to(ROOT).as_posix().startswith("."))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check these files, or all pages; returns the exit status."""
    count = 0
    for file in [Path(one) for one in (sys.argv[1:] if arguments is None else arguments)] or pages():
        for line, advice in sorted(faults(file.read_text(encoding="utf-8"))):
            path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
            print(f"{path.as_posix()}:{line}: {advice}", file=sys.stderr)
            count += 1
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main())
