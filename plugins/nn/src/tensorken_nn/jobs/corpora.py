"""Training texts: the texts of this package (datasets/ names their sources), and the user's."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import tensorken as tk
from tensorken import Tensor
from tensorken_core.errors import ArgumentError
from tensorken_nn.text import Vocabulary, read_text

END = "."
"""The character before and after each name."""


def packaged(name: str) -> str:
    """Read a text of this package.

    >>> packaged("shakespeare")[:14]
    'First Citizen:'
    """
    file = resources.files("tensorken_nn") / "datasets" / f"{name}.txt.gz"
    with file.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8", newline="\n") as text:
        return text.read()


def text(name: str, file: Path | None) -> str:
    """The user's text, or the text of this name in this package."""
    return packaged(name) if file is None else read_text(file)


def names(file: Path | None = None) -> list[str]:
    """The non-empty lines of the user's file, or the 32 033 names of this package.

    Raises:
        ArgumentError: if there are no lines, or a line contains the end mark.

    >>> names()[:3], len(names())
    (['emma', 'olivia', 'ava'], 32033)
    """
    lines = [line.strip() for line in text("names", file).splitlines() if line.strip()]
    if not lines:
        raise ArgumentError(f"{file} has no lines; put one name on each line")
    marked = next((line for line in lines if END in line), None)
    if marked is not None:
        raise ArgumentError(
            f"{file}: the line {marked!r} contains {END!r}, which marks the end of a name; remove it"
        )
    return lines


def alphabet(words: Sequence[str]) -> Vocabulary:
    """The end mark, then the characters of the words in order.

    >>> alphabet(["emma"]).characters
    '.aem'
    """
    return Vocabulary(END + "".join(sorted(set("".join(words)))))


def pairs(words: Sequence[str], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Each character and the next character, with an end mark before and after each word; int32 of shape (n,)."""
    codes = vocabulary.encode(END + END.join(words) + END)
    return tk.tensor(codes[:-1], tk.int32), tk.tensor(codes[1:], tk.int32)


def spell(codes: Sequence[int], vocabulary: Vocabulary) -> str:
    """The characters up to the end mark.

    >>> spell([1, 2, 0, 1], Vocabulary(".ab"))
    'ab'
    """
    return vocabulary.decode(list(itertools.takewhile(bool, codes)))
