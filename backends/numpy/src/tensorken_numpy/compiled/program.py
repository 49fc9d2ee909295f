"""Compiled: a program that runs as one Python function, for each layout of its inputs another."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.emission import Emitter
from tensorken_numpy.compiled.memory import memory
from tensorken_numpy.compiled.schedule import REDUCTIONS, ROWS, Unit, schedule
from tensorken_numpy.compiled.smallness import is_literal, small_shapes
from tensorken_numpy.compiled.templates import template
from tensorken_numpy.compiled.values import OF
from tensorken_numpy.contraction import Array, Sizes

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

LAYOUTS = 8
"""For how many layouts of its inputs a program has functions; inputs laid out otherwise are copied first."""

IDLE = 4
"""How many pieces of memory are kept for calls to come: as many threads can run the function without making one."""

MADE = frozenset({"where", "erf", "erfinv", "gaussian", "log10", "pow", "nextafter", "integer_pow"})
"""Elementwise ops beside those with templates that may run on blocks: the backend's method makes the result."""


def compiled(
    program: Program, backend: RawTensor[Array]
) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
    """What runs the program on arrays; None if an op has neither a method nor a body."""
    for equation in program.equations:
        op = equation.op
        if op.body is None and not (op.method and backend.has(op)):
            return None
    return Compiled(program, backend)


class Compiled:
    """From a sequence of arrays to a list of arrays.

    Results are new arrays, or inputs and constants themselves, or views of these.  Each call has memory of its own, so
    threads do not meet, nor calls within calls.
    """

    def __init__(self, program: Program, backend: RawTensor[Array]) -> None:
        self.program = program
        self.backend = backend
        self._functions: dict[Any, _Function] = {}

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        key: Any = tuple([x.strides for x in inputs])
        function = self._functions.get(key)
        if function is None:
            if len(self._functions) >= LAYOUTS:
                inputs = [np.ascontiguousarray(x).reshape(x.shape) for x in inputs]
                key = None
            function = self._functions.get(key)
            if function is None:
                function = self._functions[key] = _Function(self.program, self.backend, inputs)
        idle = function.idle
        try:
            instance = idle.pop()
        except IndexError:
            instance = function.instance()
        enter, run = instance
        results: list[Array] = enter(run, inputs)
        idle.append(instance)
        return results

    def source(self, inputs: Sequence[Array]) -> str:
        """The text of the function for inputs laid out as these."""
        return _Function(self.program, self.backend, inputs).text


class _Function:
    """The function for inputs of one layout, and its instances that are not running."""

    def __init__(self, program: Program, backend: RawTensor[Array], inputs: Sequence[Array]) -> None:
        small, units = planned(program, backend, inputs)
        emitter = Emitter(backend, program, units, small)
        emitter.write(inputs)
        self.size = emitter.planner.size
        self.text = emitter.source.text()
        self.source = emitter.source
        self.code = emitter.source.code()
        self.idle: deque[Any] = deque(maxlen=IDLE)

    def instance(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The function on memory of its own, and what calls it where numpy ignores floating-point errors."""
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        return context.run, self.source.instance(self.code, memory(self.size))


def planned(
    program: Program, backend: RawTensor[Array], inputs: Sequence[Array]
) -> tuple[dict[Variable, Sizes], list[Unit]]:
    """The shapes that values are kept in, and what runs together in what order, for inputs laid out as these."""
    kept = [layouts.small(layouts.strided(x.shape, x.strides, x.dtype)).shape for x in inputs]
    constants = {v: _kept(x, backend) for v, x in program.constants.items()}
    small = small_shapes(program, kept, constants)
    return small, schedule(program, small, lambda equation: _groupable(equation, backend))


def _kept(x: Any, backend: Any) -> tuple[int, ...]:
    if x.interpreter is not backend:
        shape: tuple[int, ...] = x.shape
        return shape
    kept: tuple[int, ...] = layouts.small(np.asarray(x.representation)).shape
    return kept


def _groupable(equation: Equation, backend: RawTensor[Array]) -> bool:
    """Whether an equation may run on one block of its operands after the other."""
    op = equation.op
    if op.name in REDUCTIONS or op.name in ROWS:
        return backend.has(op)
    if op.name == "expand":
        return True
    if not (op.elementwise or op.name == "cast") or not op.method or not backend.has(op):
        return False
    numbers = [v.value if is_literal(v) else None for v in equation.operands]
    return (
        op.name in MADE
        or op.name == "cast"
        or template(op.name, [OF[v.dtype.name] for v in equation.operands], numbers) is not None
    )
