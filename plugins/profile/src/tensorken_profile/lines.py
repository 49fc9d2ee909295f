"""Lines: which of the user's lines an op is run for, also within programs and backward passes."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

from tensorken_core.levels.reverse import Reverse
from tensorken_core.program.program import Program
from tensorken_core.source_line import Origin, is_ours, origin_of

_PULL_BACK, _REPLAY = Reverse.pull_back.__code__, Program.replay.__code__

_ours: dict[CodeType, bool] = {}
_made: WeakKeyDictionary[Reverse[Any], dict[int, Origin]] = WeakKeyDictionary()


def note_line(tape: Reverse[Any], result: Any, line: Origin | None) -> None:
    """Remember where a value was made, for the time when its cotangent is pulled back."""
    if line is not None and result.index is not None:
        _made.setdefault(tape, {})[result.index] = line


def forget() -> None:
    """Let go of what was only remembered to be faster."""
    _ours.clear()


def line_of() -> tuple[Origin | None, str | None]:
    """The user's line that the running op is for; in a backward pass, the op whose cotangent is pulled back.

    An equation of a program belongs to the line that it was traced from, and the derivative of a value to the line
    that made it; all else to the innermost line on the stack.
    """
    frame: FrameType | None = sys._getframe(1)
    line: Origin | None = None
    pulled: str | None = None
    while frame is not None:
        code = frame.f_code
        if code is _REPLAY:
            equation = frame.f_locals.get("equation")
            line = line or (equation and equation.origin)
        elif code is _PULL_BACK:
            known = frame.f_locals
            pulled = pulled or known["op"].name
            line = line or _made.get(known["self"], {}).get(known["place"])
        else:
            ours = _ours.get(code)
            if ours is None:
                ours = _ours[code] = is_ours(frame)
            if not ours:
                return line or origin_of(frame), pulled
        frame = frame.f_back
    return line, pulled
