"""Watching: the watcher of all ops, and the interpreter through which what a wrapper holds back comes before it.

Ops are noted where a backend runs them.  Between a wrapper such as Fuse and its backend stands, while anyone profiles,
`Watched`: what the wrapper does in the end then passes `run`, too, under the op's name and with its true operands.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, Protocol

from tensorken.compilation.call_op import CALL
from tensorken.programs.execution import PROGRAM, runner
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.dtypes import DType
from tensorken_core.language.observe import observe, unobserve
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.reverse import Reverse
from tensorken_core.levels.trace import TRACING
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.source_line import Origin
from tensorken_profile.costs import MOVEMENT, Kind
from tensorken_profile.events import Category, Facts
from tensorken_profile.lines import forget, line_of, note_line


class Recorder(Protocol):
    """Who is told of events."""

    def record(self, facts: Facts, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Take the facts of an event; `results` are those of its results that were not told of before."""


_recorders: tuple[Recorder, ...] = ()
_interposed: list[Wrapper[Any]] = []
_lock = threading.Lock()


def begin(recorder: Recorder) -> None:
    """Tell a recorder of all events from now on, in whichever thread."""
    global _recorders
    with _lock:
        if not _recorders:
            observe(_note)
        _recorders = (*_recorders, recorder)
    for backend in REGISTRY.loaded():
        if isinstance(backend, Wrapper):
            _interpose(backend)


def end(recorder: Recorder) -> None:
    """End what `begin` began."""
    global _recorders
    with _lock:
        _recorders = tuple([one for one in _recorders if one is not recorder])
        if _recorders:
            return
        unobserve(_note)
        for wrapper in _interposed:
            if isinstance(wrapper.raw, Watched):
                wrapper.raw = wrapper.raw.raw
        _interposed.clear()
        forget()


class Watched(Wrapper[Any]):
    """A backend whose every op passes `run`, and whose representations are the backend's own."""

    def __init__(self, raw: RawTensor[Any]) -> None:
        super().__init__(raw)
        self.broadcasts = raw.broadcasts

    def __repr__(self) -> str:
        return repr(self.raw)

    def __eq__(self, other: object) -> bool:
        """Whatever has been prepared for the backend serves here, and the other way round."""
        return other is self.raw or (type(other) is Watched and other.raw is self.raw)

    def __hash__(self) -> int:
        return hash(self.raw)

    def __getattr__(self, name: str) -> Any:
        """What the backend has besides."""
        if name == "raw":  # a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.raw, name)

    def hold(self, value: Any) -> Any:
        return value

    def value(self, x: Any) -> Any:
        return x

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        return run(self.raw, op, operands, params)

    def shape(self, x: Any) -> Shape:
        return self.raw.shape(x)

    def dtype(self, x: Any) -> DType:
        return self.raw.dtype(x)

    def number(self, x: Any) -> bool | int | float | None:
        return self.raw.number(x)

    def factors(self, x: Any) -> Sequence[Any]:
        return self.raw.factors(x)

    def settle(self, x: Any) -> Any:
        return self.raw.settle(x)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Any:
        return self._moved("new", lambda: self.raw.new(shape, data, dtype))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Any:
        return self._moved("full", lambda: self.raw.full(shape, value, dtype))

    def ravel(self, x: Any) -> Any:
        return self._moved("ravel", lambda: self.raw.ravel(x), x)

    def realize(self, x: Any) -> Any:
        return self._moved("realize", lambda: self.raw.realize(x), x)

    def compile(self, program: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
        return self.raw.compile(program)

    def _moved(self, name: str, call: Callable[[], Any], *operands: Any) -> Any:
        """Have values go to the backend, or come from it, as an event."""
        timing = _Timing()
        made: list[Any] = []
        try:
            result = call()
            made += [] if operands else [result]
            return result
        finally:
            timing.stop()
            timing.tell(name, "data", self.raw, operands, made)


def _interpose(wrapper: Wrapper[Any]) -> None:
    """Put `Watched` between a backend and the innermost of the wrappers around it."""
    while isinstance(wrapper.raw, Wrapper):
        if type(wrapper.raw) is Watched:
            return
        wrapper = wrapper.raw
    with _lock:
        if _recorders and not isinstance(wrapper.raw, Wrapper):
            wrapper.raw = Watched(wrapper.raw)
            _interposed.append(wrapper)


# ---- one event -----------------------------------------------------------------------------------------------


_threads = itertools.count(1)  # what Python calls its identifier serves again when a thread is over


class _Here(threading.local):
    """What runs in this thread."""

    def __init__(self) -> None:
        self.thread = next(_threads)
        self.running: list[_Timing] = []
        self.line: tuple[Origin | None, str | None] | None = None  # of the outermost op, where it is known


_here = _Here()


class _Timing:
    """An event that is not over."""

    __slots__ = ("duration", "inner", "own", "start", "whole")

    def __init__(self) -> None:
        self.inner = 0  # nanoseconds in events within this one
        self.whole = True  # as long as none of these computes anything
        _here.running.append(self)
        self.start = perf_counter_ns()

    def stop(self) -> None:
        """Here it is over; what follows is the profiler's time."""
        self.duration = perf_counter_ns() - self.start
        self.own = self.duration - self.inner
        _here.running.pop()

    def tell(
        self,
        name: str,
        category: Category,
        backend: RawTensor[Any],
        operands: Sequence[Any] = (),
        results: Sequence[Any] = (),
        op: Op | None = None,
        params: tuple[Any, ...] = (),
        kinds: tuple[Kind, ...] | None = None,
    ) -> None:
        """Tell the recorders.

        Args:
            kinds: of the operands; None if they tell themselves.
        """
        line, pulled = _here.line or line_of()
        shape, dtype = backend.shape, backend.dtype
        facts = (
            name,
            category,
            self.start,
            self.duration,
            self.own,
            _here.thread,
            line,
            pulled,
            tuple([(shape(x), dtype(x)) for x in operands]) if kinds is None else kinds,
            tuple([(shape(y), dtype(y)) for y in results]),
            op,
            params,
            self.whole,
            backend.capabilities.shares_memory,
        )
        made = results if self.whole else ()  # else they were told of as the results of others
        if isinstance(backend, Wrapper):
            made = [backend.value(y) for y in made]
            operands = [value for x in operands if (value := getattr(x, "value", None)) is not None]
        for recorder in _recorders:
            recorder.record(facts, operands, made)
        if _here.running:
            outer = _here.running[-1]
            outer.inner += perf_counter_ns() - self.start
            outer.whole = outer.whole and (category == "data" or name in MOVEMENT)


# ---- the watcher ---------------------------------------------------------------------------------------------


def _note(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run an op: if a backend does, as an event; at a level or wrapper, with the user's line known to what is below."""
    if op is TRACING:
        return _note_tracing(proceed, interpreter, op, operands, params)
    if type(interpreter) is Watched and op is not PROGRAM:
        return proceed(interpreter, op, operands, params)
    is_wrapper = isinstance(interpreter, Wrapper)
    if is_wrapper and type(interpreter) is not Watched:
        _interpose(interpreter)
    if op.name == CALL.name and isinstance(interpreter, RawTensor):  # it has PROGRAM run
        return proceed(interpreter, op, operands, params)
    if "program" in op.params:
        return _note_program(proceed, interpreter, op, operands, params)
    if isinstance(interpreter, RawTensor) and not is_wrapper:
        timing = _Timing()
        try:
            result = proceed(interpreter, op, operands, params)
        finally:
            timing.stop()
        results = (result,) if op.results == 1 else result
        timing.tell(op.name, "op", interpreter, operands, results, op, params)
        return result
    if _here.line is not None:
        return proceed(interpreter, op, operands, params)
    line = _here.line = line_of()
    try:
        result = proceed(interpreter, op, operands, params)
        if isinstance(interpreter, Reverse):
            note_line(interpreter, result if op.results == 1 else result[0], line[0])
        return result
    finally:
        _here.line = None


def _note_tracing(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Trace a function, as an event; the ops in it have lines of their own."""
    outer, _here.line = _here.line, None
    timing = _Timing()
    try:
        return proceed(interpreter, op, operands, params)
    finally:
        timing.stop()
        timing.tell(params[-1], "trace", interpreter.base)
        _here.line = outer


def _note_program(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run an op that has programs: its equations have lines of their own."""
    outer, _here.line = _here.line, None
    try:
        if not isinstance(interpreter, RawTensor):
            result = proceed(interpreter, op, operands, params)
            if isinstance(interpreter, Reverse) and result:
                note_line(interpreter, result[0], (outer or line_of())[0])
            return result
        name = op.name
        if op is PROGRAM:
            name = params[0].name
            if ("run", interpreter) not in params[0].derived:
                timing = _Timing()
                try:
                    runner(params[0], interpreter)
                finally:
                    timing.stop()
                timing.tell(name, "prepare", interpreter, op=op, params=params)
        kinds = tuple([(interpreter.shape(x), interpreter.dtype(x)) for x in operands])
        timing = _Timing()
        try:
            result = proceed(interpreter, op, operands, params)  # which may take donated operands out
        finally:
            timing.stop()
        left = [x for x in operands if x is not None]
        timing.tell(name, "program", interpreter, left, result, op, params, kinds)
        return result
    finally:
        _here.line = outer
