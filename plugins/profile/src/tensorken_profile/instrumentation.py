"""Instrumentation: the observer of all ops, and an interpreter that makes the deferred work of wrappers observable.

Ops are recorded where a backend runs them. During a profile, `Instrumented` is inserted between a wrapper such as Fuse
and its backend, so that the ops that the wrapper runs later pass through `run`, with their actual operands.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, Protocol

from tensorken.programs.costs import MOVEMENT_OPS, ShapeDtype
from tensorken.programs.execution import PROGRAM, runner
from tensorken_core.host.registry import REGISTRY
from tensorken_core.language.dtypes import DType
from tensorken_core.language.observe import observe, unobserve
from tensorken_core.language.op import Op, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.levels.reverse import Reverse
from tensorken_core.rewriting.wrapper import Wrapper
from tensorken_core.source_line import Origin
from tensorken_profile.events import Category, EventFields
from tensorken_profile.lines import clear_cache, current_line, remember_line


class Recorder(Protocol):
    """Receives events."""

    def record(self, fields: EventFields, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Record an event; `results` are its results, unless a nested event recorded them."""


_recorders: tuple[Recorder, ...] = ()
_instrumented: list[Wrapper[Any]] = []
_lock = threading.Lock()


def start(recorder: Recorder) -> None:
    """Send all events of all threads to a recorder from now on."""
    global _recorders
    with _lock:
        if not _recorders:
            observe(_observe)
        _recorders = (*_recorders, recorder)
    for backend in REGISTRY.loaded():
        if isinstance(backend, Wrapper):
            _instrument(backend)


def stop(recorder: Recorder) -> None:
    """Stop sending events to a recorder."""
    global _recorders
    with _lock:
        _recorders = tuple([other for other in _recorders if other is not recorder])
        if _recorders:
            return
        unobserve(_observe)
        for wrapper in _instrumented:
            if isinstance(wrapper.raw, Instrumented):
                wrapper.raw = wrapper.raw.raw
        _instrumented.clear()
        clear_cache()


class Instrumented(Wrapper[Any]):
    """A wrapper that runs every op of a backend through `run`, with the same representations."""

    def __init__(self, raw: RawTensor[Any]) -> None:
        super().__init__(raw)
        self.broadcasts = raw.broadcasts

    def __repr__(self) -> str:
        return repr(self.raw)

    def __eq__(self, other: object) -> bool:
        """Equal to the backend, so that prepared programs are shared with it."""
        return other is self.raw or (type(other) is Instrumented and other.raw is self.raw)

    def __hash__(self) -> int:
        return hash(self.raw)

    def __getattr__(self, name: str) -> Any:
        """Other attributes of the backend."""
        if name == "raw":  # an incomplete copy
            raise AttributeError(name)
        return getattr(self.raw, name)

    def wrap(self, value: Any) -> Any:
        return value

    def value(self, x: Any) -> Any:
        return x

    def interpret(self, op: Op, operands: Sequence[Any], params: tuple[Any, ...]) -> Any:
        return run(self.raw, op, operands, params)

    def shape(self, x: Any) -> Shape:
        return self.raw.shape(x)

    def dtype(self, x: Any) -> DType:
        return self.raw.dtype(x)

    def fill_value(self, x: Any) -> bool | int | float | None:
        return self.raw.fill_value(x)

    def deferred_operands(self, x: Any) -> Sequence[Any]:
        return self.raw.deferred_operands(x)

    def settle(self, x: Any) -> Any:
        return self.raw.settle(x)

    def new(self, shape: Shape, data: Any, dtype: DType) -> Any:
        return self._transfer("new", lambda: self.raw.new(shape, data, dtype))

    def full(self, shape: Shape, value: bool | int | float, dtype: DType) -> Any:
        return self._transfer("full", lambda: self.raw.full(shape, value, dtype))

    def ravel(self, x: Any) -> Any:
        return self._transfer("ravel", lambda: self.raw.ravel(x), x)

    def realize(self, x: Any) -> Any:
        return self._transfer("realize", lambda: self.raw.realize(x), x)

    def compile(self, program: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
        return self.raw.compile(program)

    def _transfer(self, name: str, call: Callable[[], Any], *operands: Any) -> Any:
        """Record a data transfer to or from the backend."""
        timing = _Timing()
        new: list[Any] = []
        try:
            result = call()
            new += [] if operands else [result]
            return result
        finally:
            timing.stop()
            timing.send(name, "data", self.raw, operands, new)


def _instrument(wrapper: Wrapper[Any]) -> None:
    """Insert `Instrumented` between a backend and its innermost wrapper."""
    while isinstance(wrapper.raw, Wrapper):
        if type(wrapper.raw) is Instrumented:
            return
        wrapper = wrapper.raw
    with _lock:
        if _recorders and not isinstance(wrapper.raw, Wrapper):
            wrapper.raw = Instrumented(wrapper.raw)
            _instrumented.append(wrapper)


# ---- one event -----------------------------------------------------------------------------------------------


_numbers = itertools.count(1)  # thread identifiers of Python are reused


class _ThreadState(threading.local):
    """The state of a thread."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.running: list[_Timing] = []
        self.line: tuple[Origin | None, str | None] | None = None  # of the outermost op, if known


_thread = _ThreadState()


class _Timing:
    """An event in progress."""

    __slots__ = ("duration", "inner", "is_leaf", "self_time", "start")

    def __init__(self) -> None:
        self.inner = 0  # nanoseconds in nested events
        self.is_leaf = True  # unless a nested event computes something
        _thread.running.append(self)
        self.start = perf_counter_ns()

    def stop(self) -> None:
        """End the event; later time belongs to the profiler."""
        self.duration = perf_counter_ns() - self.start
        self.self_time = self.duration - self.inner
        _thread.running.pop()

    def send(
        self,
        name: str,
        category: Category,
        backend: RawTensor[Any],
        operands: Sequence[Any] = (),
        results: Sequence[Any] = (),
        op: Op | None = None,
        params: tuple[Any, ...] = (),
        shape_dtypes: tuple[ShapeDtype, ...] | None = None,
    ) -> None:
        """Send the event to the recorders.

        Args:
            shape_dtypes: of the operands; None to read them from the operands.
        """
        line, derivative_of = _thread.line or current_line()
        shape, dtype = backend.shape, backend.dtype
        fields = (
            name,
            category,
            self.start,
            self.duration,
            self.self_time,
            _thread.number,
            line,
            derivative_of,
            tuple([(shape(x), dtype(x)) for x in operands]) if shape_dtypes is None else shape_dtypes,
            tuple([(shape(y), dtype(y)) for y in results]),
            op,
            params,
            self.is_leaf,
            backend.capabilities.shares_memory,
        )
        new = results if self.is_leaf else ()  # else nested events recorded them
        if isinstance(backend, Wrapper):
            new = [backend.value(y) for y in new]
            operands = [value for x in operands if (value := getattr(x, "value", None)) is not None]
        for recorder in _recorders:
            recorder.record(fields, operands, new)
        if _thread.running:
            outer = _thread.running[-1]
            outer.inner += perf_counter_ns() - self.start
            outer.is_leaf = outer.is_leaf and (category == "data" or name in MOVEMENT_OPS)


# ---- the observer --------------------------------------------------------------------------------------------


def _observe(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run an op. On a backend, record it; on a level or wrapper, find the user's line for the ops below it."""
    if op.name == "tracing":
        return _observe_tracing(proceed, interpreter, op, operands, params)
    if type(interpreter) is Instrumented and op is not PROGRAM:
        return proceed(interpreter, op, operands, params)
    is_wrapper = isinstance(interpreter, Wrapper)
    if is_wrapper and type(interpreter) is not Instrumented:
        _instrument(interpreter)
    if op.name == "call" and isinstance(interpreter, RawTensor):  # it runs PROGRAM
        return proceed(interpreter, op, operands, params)
    if "program" in op.params:
        return _observe_program(proceed, interpreter, op, operands, params)
    if isinstance(interpreter, RawTensor) and not is_wrapper:
        timing = _Timing()
        try:
            result = proceed(interpreter, op, operands, params)
        finally:
            timing.stop()
        results = (result,) if op.results == 1 else result
        timing.send(op.name, "op", interpreter, operands, results, op, params)
        return result
    if _thread.line is not None:
        return proceed(interpreter, op, operands, params)
    line = _thread.line = current_line()
    try:
        result = proceed(interpreter, op, operands, params)
        if isinstance(interpreter, Reverse):
            remember_line(interpreter, result if op.results == 1 else result[0], line[0])
        return result
    finally:
        _thread.line = None


def _observe_tracing(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Trace a function, and record it; the ops in it have their own lines."""
    outer, _thread.line = _thread.line, None
    timing = _Timing()
    try:
        return proceed(interpreter, op, operands, params)
    finally:
        timing.stop()
        timing.send(params[-1], "trace", interpreter.base)
        _thread.line = outer


def _observe_program(
    proceed: Callable[..., Any], interpreter: Any, op: Op, operands: Sequence[Any], params: tuple[Any, ...]
) -> Any:
    """Run an op with programs, whose equations have their own lines."""
    outer, _thread.line = _thread.line, None
    try:
        if not isinstance(interpreter, RawTensor):
            result = proceed(interpreter, op, operands, params)
            if isinstance(interpreter, Reverse) and result:
                remember_line(interpreter, result[0], (outer or current_line())[0])
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
                timing.send(name, "prepare", interpreter, op=op, params=params)
        shape_dtypes = tuple([(interpreter.shape(x), interpreter.dtype(x)) for x in operands])
        timing = _Timing()
        try:
            result = proceed(interpreter, op, operands, params)  # may remove donated operands
        finally:
            timing.stop()
        remaining = [x for x in operands if x is not None]
        timing.send(name, "program", interpreter, remaining, result, op, params, shape_dtypes)
        return result
    finally:
        _thread.line = outer
