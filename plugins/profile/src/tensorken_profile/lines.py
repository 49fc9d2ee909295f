"""Source lines: find the user's line that runs an op, also in programs and backward passes."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

from tensorken_core.levels.reverse import Reverse
from tensorken_core.program.program import Program
from tensorken_core.source_line import Origin, is_ours, origin_of

_PULL_BACK, _REPLAY = Reverse.pull_back.__code__, Program.replay.__code__

_is_internal: dict[CodeType, bool] = {}
_lines: WeakKeyDictionary[Reverse[Any], dict[int, Origin]] = WeakKeyDictionary()


def remember_line(tape: Reverse[Any], result: Any, line: Origin | None) -> None:
    """Remember the line that computed a value, as the line of the ops that pull its cotangent back."""
    if line is not None and result.index is not None:
        _lines.setdefault(tape, {})[result.index] = line


def clear_cache() -> None:
    """Clear the cache of code objects."""
    _is_internal.clear()


def current_line() -> tuple[Origin | None, str | None]:
    """The user's line of the running op and, in a backward pass, the name of the op whose cotangent is pulled back.

    The line of an equation is the line that it was traced from. The line of a derivative is the line that computed the
    value. Otherwise the line is the innermost line of the user on the stack.
    """
    frame: FrameType | None = sys._getframe(1)
    line: Origin | None = None
    derivative_of: str | None = None
    while frame is not None:
        code = frame.f_code
        if code is _REPLAY:
            equation = frame.f_locals.get("equation")
            line = line or (equation and equation.origin)
        elif code is _PULL_BACK:
            names = frame.f_locals
            derivative_of = derivative_of or names["op"].name
            line = line or _lines.get(names["self"], {}).get(names["index"])
        else:
            internal = _is_internal.get(code)
            if internal is None:
                internal = _is_internal[code] = is_ours(frame)
            if not internal:
                return line or origin_of(frame), derivative_of
        frame = frame.f_back
    return line, derivative_of
