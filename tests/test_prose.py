"""The check of the pages' English; `nox -s lint` runs it on all pages."""

from __future__ import annotations

from core.tests.each import each_of
from tools import prose

DOUBTFUL = {
    "It is is right.": "lexical illusion",
    "A very unique idea.": "uncomparable",
    "It uses NumPy.": "numpy",
    "It uses pytorch.": "PyTorch",
    "A back-end of its own.": "backend",
    "Two plug-ins.": "plugin",
    "It vectorizes loops.": "-is-",
    "The behavior of sums.": "-our",
    "The labeled axis.": "-ll-",
    "We utilise it.": "use",
    "It is simply added.": "nothing",
    "A seamless interface.": "figure",
    "A [Numpy](numpy.md) array.": "numpy",
}
"""A page with one fault, and a word of the advice."""

GOOD = [
    "It uses numpy, PyTorch, JAX and two plugins of one backend.",
    "`NumPy` is code, and\n\n```python\nNumPy behavior\n```\n",
    "See [the page](NumPy.md), https://example.org/NumPy, and <b>.",
    'They write "follow Python\nbehavior", and we do.',
    "| NumPy | behavior |",
    "# A backend\n\nA backend computes.",
    "Fused multiply-adds round once; 0 0 are two numbers, and so are `a` `a`.",
    "The size of the sized array; a prize; the horizon.",
]
"""Pages without a fault."""


@each_of(("page", "word"), DOUBTFUL.items())
def test_doubtful_words_are_found_in_their_lines(page: str, word: str) -> None:
    found = list(prose.faults(f"A page.\n\n{page}\n"))
    assert any(word in advice for _, advice in found), found
    assert {line for line, _ in found} == {3}


@each_of("page", GOOD)
def test_code_links_and_quotations_are_left_out(page: str) -> None:
    assert list(prose.faults(page)) == []
