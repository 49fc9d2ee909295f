"""The lines of user code that pending ops come from, for messages when the ops run later."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType, FrameType

from tensorken_core.source_line import Origin, is_ours

Position = tuple[CodeType, int]
"""A function's code and the index of an instruction: all that is stored for an op, as finding the line takes longer."""

_ours: dict[str, bool] = {}
"""For each file whether it is the library's.  Code that was not read from a file, such as `<stdin>`, is not here."""

_running: ContextVar[Sequence[Position | None]] = ContextVar("tensorken_running_positions", default=())
"""The positions of the ops of the graph that is running in this context."""


def users_position(skipped: int) -> Position | None:
    """The position of the innermost call of user code; None if there is none.

    Args:
        skipped: the number of calls above this one that are known to be the library's; Python need not make frame
            objects for them.
    """
    frame: FrameType | None = sys._getframe(skipped + 1)
    while frame is not None:
        code = frame.f_code
        known = _ours.get(code.co_filename)
        if known is None:
            known = is_ours(frame)
            if not code.co_filename.startswith("<"):
                _ours[code.co_filename] = known
        if not known:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def origin_at(position: Position) -> Origin:
    """The line of a position.

    >>> origin_at((origin_at.__code__, 0)).line == origin_at.__code__.co_firstlineno
    True
    """
    code, instruction = position
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return Origin(code.co_filename, lines[0] if lines else code.co_firstlineno)


@dataclass(frozen=True, slots=True)
class StepOrigin(Origin):
    """The line of a step of a graph.

    Graphs of one structure share a program, and come from different lines: the text is the line of the graph that is
    running, or else that of the first graph.

    Attributes:
        step: the index of the step.
    """

    step: int

    def __str__(self) -> str:
        positions = _running.get()
        position = positions[self.step] if self.step < len(positions) else None
        return Origin.__str__(self if position is None else origin_at(position))


def step_origin(step: int, position: Position | None) -> StepOrigin | None:
    """The line of a step of the first graph of a structure."""
    if position is None:
        return None
    origin = origin_at(position)
    return StepOrigin(origin.file, origin.line, step)


@contextmanager
def running(positions: Sequence[Position | None]) -> Iterator[None]:
    """Run a graph whose steps have these positions."""
    token = _running.set(positions)
    try:
        yield
    finally:
        _running.reset(token)
