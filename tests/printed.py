"""Comparison of printed output: the same words, and numbers within a tolerance."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")


def words(line: str) -> list[str]:
    """A line without its numbers, and without blanks and rules, whose lengths depend on the numbers."""
    return re.sub(r"-{2,}", "--", NUMBER.sub("#", line)).replace("[", "[ ").replace("]", " ]").split()


def numbers(line: str) -> list[float]:
    """The numbers in a line."""
    return [float(number) for number in NUMBER.findall(line)]


def check_printed(
    found: str, wanted: str, relative: float, absolute: float, coarse: Mapping[str, float] | None = None
) -> None:
    """Fail unless two outputs agree.

    Args:
        found: the output.
        wanted: the expected output.
        relative: the tolerance of numbers, relative to them.
        absolute: the absolute tolerance of numbers.
        coarse: absolute tolerances of lines that begin with these texts.
    """
    printed, expected = found.splitlines(), wanted.splitlines()
    for line, like in zip(printed, expected, strict=False):
        assert words(line) == words(like)
        tolerance = next((t for label, t in (coarse or {}).items() if like.startswith(label)), absolute)
        assert numbers(line) == pytest.approx(numbers(like), rel=relative, abs=tolerance), line
    assert len(printed) == len(expected)
