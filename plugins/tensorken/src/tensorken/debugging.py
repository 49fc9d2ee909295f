"""Find the op that made the first NaN: while `debug_nans` is on, every op is checked at each level.

The results are checked on the backend, so this works under any nesting of transforms.  An op at a level runs the same
op at the level below, and then ops of its derivative rule if needed; so the chain of calls shows which rule returned
the NaN.  In a pullback the tape shows it; the line of user code was stored when the op was recorded.
"""

from __future__ import annotations

import math
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
from tensorken_core.host.variables import switch
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

MAX_CHECKED_SIZE = 2**22
"""The largest number of elements for which a deferred product is computed only to check it."""


class _Call:
    """A call of an op that has not returned."""

    __slots__ = ("in_rule", "interpreter", "op", "operands", "outer", "primal_done", "program")
    primal_done: bool

    def __init__(
        self, interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...], outer: _Call | None
    ) -> None:
        self.interpreter, self.op, self.operands, self.outer = interpreter, op, operands, outer
        # A level first runs the op itself below; all later ops belong to a derivative rule.
        self.in_rule = outer is not None and outer.primal_done
        self.primal_done = False
        self.program = params[0] if op is PROGRAM else None


ENABLED = switch("TENSORKEN_DEBUG_NANS")
"""Whether the environment variable enables the check for the whole process."""

_flaws: ContextVar[tuple[str, ...]] = ContextVar("tensorken_debug_nans", default=("NaN",) if ENABLED else ())
_current_call: ContextVar[_Call | None] = ContextVar("tensorken_debugged_call", default=None)
_origins: WeakKeyDictionary[Level[Any], dict[int, Origin]] = WeakKeyDictionary()
_lock, _users = threading.Lock(), 0


@contextmanager
def debug_nans(enabled: bool = True, *, infinities: bool = False) -> Iterator[None]:
    """Within the block, an op that returns a NaN for operands without NaN raises an error, in derivatives too.

    The error names the op, the shapes and dtypes of its operands, and the line of user code; in the backward pass, the
    line that made the value whose derivative is NaN.  Every result is checked, which is slow; outside of the block
    there is no cost.  The environment variable TENSORKEN_DEBUG_NANS=1 enables the check for a whole process.
    `debug_nans` can also decorate a function.

    Args:
        enabled: False disables the check within the block.
        infinities: whether an infinity from finite operands is an error too.

    Raises:
        NonFiniteError: at the first such op.

    >>> import tensorken as tk
    >>> with tk.debug_nans():
    ...     tk.log(tk.tensor([1.0, -1.0]))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NonFiniteError: log: gives NaN for float32 (2,); at model.py:12: y = tk.log(x)
    """
    token = _flaws.set((("NaN", "infinity") if infinities else ("NaN",)) if enabled else ())
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _flaws.reset(token)


def _count(change: int) -> None:
    """Observe ops while any thread is within a block."""
    global _users
    with _lock:
        _users += change
        if _users == max(change, 0):  # the first block begins, or the last ends
            (observe if change > 0 else unobserve)(_observe)


# ---- checking every op -------------------------------------------------------------------------------------


def _observe(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run an op; on a backend check its results, on a tape note the line of user code."""
    flaws, outer = _flaws.get(), _current_call.get()
    in_body = outer is not None and outer.interpreter.below is None  # within a body, or within a fused op
    if not flaws or in_body or op.results == 0:  # ops without results: the tracing of a function
        return proceed(interpreter, op, operands, params)
    operands = tuple(
        operands
    )  # a tuple, as the call must not consume donated operands, which are checked afterwards
    call = _Call(interpreter, op, operands, params, outer)
    # The ops of a program that a backend runs op by op are checked too.
    token = _current_call.set(None if "program" in op.params and interpreter.below is None else call)
    try:
        result = proceed(interpreter, op, operands, params)
        results = (result,) if op.results == 1 else result
        if isinstance(interpreter, RawTensor):
            _check(flaws, call, results)
        elif isinstance(interpreter, Reverse) and results and results[0].index is not None:
            line = _where()[1]
            if line is not None:
                _origins.setdefault(interpreter, {})[results[0].index] = line
    finally:
        _current_call.reset(token)
        if outer is not None:
            outer.primal_done = True
    return result


def _check(flaws: Sequence[str], call: _Call, results: Sequence[Any]) -> None:
    """Raise an error if the results have a flaw that no operand has."""
    backend = call.interpreter
    for flaw in flaws:
        if any([_has(flaw, backend, y) for y in results]) and not any(
            [_has(kind, backend, x) for x in call.operands for kind in {flaw, "NaN"}]
        ):
            raise NonFiniteError(_message(flaw, call))


def _has(flaw: str, backend: Any, x: Any) -> bool:
    """Whether a value of a backend contains a NaN or an infinity; False if its elements are unknown."""
    value = Tensor(backend, x)
    if value.dtype.kind != "float" or value.size == 0:
        return False
    if math.prod(value.shape) > MAX_CHECKED_SIZE:
        factors = backend.deferred_operands(x)
        if factors and not any([_has(kind, backend, v) for v in factors for kind in ("NaN", "infinity")]):
            return False
    try:
        if flaw == "NaN":
            return not value.eq(value).min().item()
        return bool(value.abs().max().eq(math.inf).item())
    except ConcretizationError:
        return False


# ---- messages ----------------------------------------------------------------------------------------------


def _message(flaw: str, call: _Call) -> str:
    pulled_op, line, recorded = _where()
    user_call = call
    while (
        user_call.outer is not None and not user_call.in_rule
    ):  # the user's own call, with the shapes of one example
        user_call = user_call.outer
    shown = ", ".join([_describe(user_call.interpreter, x) for x in user_call.operands])
    if any([_has("infinity", call.interpreter, x) for x in call.operands]):
        shown += " with infinities"
    within, made_at = "", ""
    if user_call.in_rule and user_call.outer is not None:
        within = f", in the derivative of {user_call.outer.op.name}"
    elif pulled_op is not None:
        within = f", in the derivative of {pulled_op}"
        made_at = (
            "; the value was made"
            if recorded
            else "; the value was made before debug_nans was on, the pullback called"
        )
    location = "" if line is None else f"{made_at or ';'} at {line}"
    if call.program is not None:
        location += "; use tk.disable_jit() to find the op within it"
    name = call.op.name if call.program is None else call.program.name
    return f"{name}: gives {flaw} for {shown}{within}{location}"


def _describe(interpreter: Any, x: Any) -> str:
    return f"{interpreter.dtype(x)} {interpreter.shape(x)}"


_PULL_BACK = Reverse.pull_back.__code__


def _where() -> tuple[str | None, Origin | None, bool]:
    """The op whose cotangent is being pulled back, if any; the line of user code; whether the line comes from a
    tape.
    """
    frame: FrameType | None = sys._getframe(1)
    pulled_op = None
    while frame is not None:
        if frame.f_code is _PULL_BACK:
            variables = frame.f_locals
            pulled_op = pulled_op or variables["op"].name
            line = _origins.get(variables["self"], {}).get(variables["index"])
            if line is not None:
                return pulled_op, line, True
        elif not is_ours(frame):
            return pulled_op, origin_of(frame), False
        frame = frame.f_back
    return pulled_op, None, False


if ENABLED:
    _count(1)
