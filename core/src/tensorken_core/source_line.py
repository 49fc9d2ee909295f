"""Origin: the line of the user's program that led to where the program is now, for messages."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from types import FrameType

_EXAMPLE = "<doctest "


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of a program; `str` gives `FILE:LINE: SOURCE`."""

    file: str
    line: int

    @property
    def is_example(self) -> bool:
        """Whether it stands in a docstring."""
        return self.file.startswith(_EXAMPLE)

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}: {source}" if source else f"{self.file}:{self.line}"


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of Tensorken or of one of its plugins, whose packages are named tensorken_..."""
    if frame.f_code.co_filename.startswith(_EXAMPLE):  # examples borrow the names of our modules
        return False
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package == "tensorken" or package.startswith("tensorken_")


def origin_of(frame: FrameType) -> Origin:
    """The line that a frame is at."""
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def users_line() -> Origin | None:
    """The innermost line on the stack that is not ours; None if all are."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return None if frame is None else origin_of(frame)
