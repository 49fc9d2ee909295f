"""Finding the op that made the first NaN: every op is watched, at each level, while `debug_nans` is on.

What an op gives is looked at on the backend, so this works under any nesting of transforms.  An op at a level runs the
same op at the level below, and then perhaps ops of its derivative rule; so the chain of calls tells in which rule a
NaN came up.  Of a pullback the tape's record tells; the line that made it was noted when it was recorded.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from tensorken.programs.execution import PROGRAM
from tensorken_core.errors import ConcretizationError, NonFiniteError
from tensorken_core.language.observe import observe, unobserve
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.levels.reverse import Reverse
from tensorken_core.source_line import Origin, is_ours, origin_of
from tensorken_core.tensor.level import Level
from tensorken_core.tensor.tensor import Tensor

__all__ = [
    "debug_nans",
]

LARGE = 2**22
"""Beyond this many elements a product that is held back is not multiplied out only to be looked at."""


class _Call:
    """A call of an op that has not returned."""

    __slots__ = ("in_rule", "interpreter", "op", "operands", "outer", "primal_done", "program")
    primal_done: bool

    def __init__(
        self, interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...], outer: _Call | None
    ) -> None:
        self.interpreter, self.op, self.operands, self.outer = interpreter, op, operands, outer
        # A level runs the op itself below first; what it runs after that is a derivative rule's.
        self.in_rule = outer is not None and outer.primal_done
        self.primal_done = False
        self.program = params[0] if op is PROGRAM else None


ON = os.environ.get("TENSORKEN_DEBUG_NANS", "").strip().lower() not in ("", "0", "false", "no", "off")
"""Whether the environment turned it on for the whole program."""

_asked: ContextVar[tuple[str, ...]] = ContextVar("tensorken_debug_nans", default=("NaN",) if ON else ())
_running: ContextVar[_Call | None] = ContextVar("tensorken_debugged_call", default=None)
_origins: WeakKeyDictionary[Level[Any], dict[int, Origin]] = WeakKeyDictionary()
_lock, _users = threading.Lock(), 0


@contextmanager
def debug_nans(enabled: bool = True, *, infinities: bool = False) -> Iterator[None]:
    """Within the block, an op that makes a NaN of operands without one raises an error, in derivatives too.

    The error names the op, the shapes and dtypes of its operands, and your line: in the backward pass the one that made
    the value whose derivative is NaN.  Every result is looked at, which is slow; outside of the block nothing is.
    The variable TENSORKEN_DEBUG_NANS=1 turns it on for a whole program.  It can decorate a function too.

    Args:
        enabled: False turns it off within the block.
        infinities: whether an infinity that comes of finite operands is an error as well.

    Raises:
        NonFiniteError: at the first such op.

    >>> import tensorken as tk
    >>> with tk.debug_nans():
    ...     tk.log(tk.tensor([1.0, -1.0]))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NonFiniteError: log: gives NaN for float32 (2,); at model.py:12: y = tk.log(x)
    """
    token = _asked.set((("NaN", "infinity") if infinities else ("NaN",)) if enabled else ())
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _asked.reset(token)


def _count(change: int) -> None:
    """Watch while anyone, in whichever thread, has asked for it."""
    global _users
    with _lock:
        _users += change
        if _users == max(change, 0):  # the first has come, or the last has gone
            (observe if change > 0 else unobserve)(_look)


# ---- looking at every op -----------------------------------------------------------------------------------


def _look(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run an op; on a backend look at its result, on a tape note where it came from."""
    asked, outer = _asked.get(), _running.get()
    in_body = outer is not None and outer.interpreter.below is None  # a body, or what fusion makes of it
    if not asked or in_body or op.results == 0:  # the last: the tracing of a function
        return proceed(interpreter, op, operands, params)
    operands = tuple(
        operands
    )  # to be looked at afterwards, so that a call may not take what was donated to it
    call = _Call(interpreter, op, operands, params, outer)
    # A program that a backend runs op by op is looked at so, too.
    token = _running.set(None if "program" in op.params and interpreter.below is None else call)
    try:
        result = proceed(interpreter, op, operands, params)
        results = (result,) if op.results == 1 else result
        if isinstance(interpreter, RawTensor):
            _check(asked, call, results)
        elif isinstance(interpreter, Reverse) and results and results[0].index is not None:
            line = _where()[1]
            if line is not None:
                _origins.setdefault(interpreter, {})[results[0].index] = line
    finally:
        _running.reset(token)
        if outer is not None:
            outer.primal_done = True
    return result


def _check(asked: Sequence[str], call: _Call, results: Sequence[Any]) -> None:
    """Raise an error if the results have what no operand has."""
    backend = call.interpreter
    for flaw in asked:
        if any([_has(flaw, backend, y) for y in results]) and not any(
            [_has(kind, backend, x) for x in call.operands for kind in {flaw, "NaN"}]
        ):
            raise NonFiniteError(_message(flaw, call))


def _has(flaw: str, backend: Any, x: Any) -> bool:
    """Whether a value of a backend has a NaN, or an infinity; False where no value is known."""
    value = Tensor(backend, x)
    if value.dtype.kind != "float" or value.size == 0:
        return False
    if math.prod(value.shape) > LARGE:
        factors = backend.factors(x)
        if factors and not any([_has(kind, backend, v) for v in factors for kind in ("NaN", "infinity")]):
            return False
    try:
        if flaw == "NaN":
            return not value.eq(value).min().item()
        return bool(value.abs().max().eq(math.inf).item())
    except ConcretizationError:
        return False


# ---- what to tell ------------------------------------------------------------------------------------------


def _message(flaw: str, call: _Call) -> str:
    pulled, line, recorded = _where()
    top = call
    while top.outer is not None and not top.in_rule:  # as the user called it: with the shapes of one example
        top = top.outer
    shown = ", ".join([_shown(top.interpreter, x) for x in top.operands])
    if any([_has("infinity", call.interpreter, x) for x in call.operands]):
        shown += " with infinities"
    within, made = "", ""
    if top.in_rule and top.outer is not None:
        within = f", in the derivative of {top.outer.op.name}"
    elif pulled is not None:
        within = f", in the derivative of {pulled}"
        made = (
            "; the value was made"
            if recorded
            else "; the value was made before debug_nans was on, the pullback called"
        )
    at = "" if line is None else f"{made or ';'} at {line}"
    if call.program is not None:
        at += "; within tk.disable_jit() it is told in which op"
    name = call.op.name if call.program is None else call.program.name
    return f"{name}: gives {flaw} for {shown}{within}{at}"


def _shown(interpreter: Any, x: Any) -> str:
    return f"{interpreter.dtype(x)} {interpreter.shape(x)}"


_PULL_BACK = Reverse.pull_back.__code__


def _where() -> tuple[str | None, Origin | None, bool]:
    """The op whose cotangent is being pulled back, if one is; the user's line to blame; whether a tape told it."""
    frame: FrameType | None = sys._getframe(1)
    pulled = None
    while frame is not None:
        if frame.f_code is _PULL_BACK:
            known = frame.f_locals
            pulled = pulled or known["op"].name
            line = _origins.get(known["self"], {}).get(known["index"])
            if line is not None:
                return pulled, line, True
        elif not is_ours(frame):
            return pulled, origin_of(frame), False
        frame = frame.f_back
    return pulled, None, False


if ON:
    _count(1)
