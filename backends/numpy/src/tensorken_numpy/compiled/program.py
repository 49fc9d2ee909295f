"""A compiled program: one Python function for each layout of its inputs."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_core.language.raw import RawTensor
from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.compact_shapes import compact_shapes
from tensorken_numpy.compiled.emitter import Emitter
from tensorken_numpy.compiled.function import write_function
from tensorken_numpy.compiled.memory import aligned_memory
from tensorken_numpy.compiled.predicates import is_literal
from tensorken_numpy.compiled.schedule import REDUCTIONS, ROW_OPS, Unit, schedule
from tensorken_numpy.compiled.templates import template
from tensorken_numpy.compiled.values import NUMPY_DTYPES

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

MAX_LAYOUTS = 8
"""Layouts of inputs for which a program keeps functions; inputs with further layouts are copied first."""

MAX_IDLE = 4
"""Idle instances kept per function; up to this many threads can call it at once without creating an instance."""

METHOD_OPS = frozenset({"where", "erf", "erfinv", "gaussian", "log10", "pow", "nextafter", "integer_pow"})
"""Elementwise ops without a template that may run on blocks: the backend's method allocates the result."""


def compiled(
    program: Program, backend: RawTensor[Array]
) -> Callable[[Sequence[Array]], Sequence[Array]] | None:
    """Compile the program; None if an op has neither a method nor a body."""
    for equation in program.equations:
        op = equation.op
        if op.body is None and not (op.method and backend.has(op)):
            return None
    return Compiled(program, backend)


class Compiled:
    """Call the program on a sequence of arrays.

    Results are new arrays, or inputs and constants themselves, or views of these.  Each call uses its own memory,
    so calls may run in several threads and may be nested.
    """

    def __init__(self, program: Program, backend: RawTensor[Array]) -> None:
        self.program = program
        self.backend = backend
        self._functions: dict[Any, _Function] = {}

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        key: Any = tuple([(x.strides, x.shape, x.dtype) for x in inputs])
        function = self._functions.get(key)
        if function is None:
            self.program.check_inputs(self.backend, inputs, repeats=True)
            if len(self._functions) >= MAX_LAYOUTS:
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
        """The text of the function for inputs with these layouts."""
        return _Function(self.program, self.backend, inputs).text


class _Function:
    """The function for inputs of one layout, and its idle instances."""

    def __init__(self, program: Program, backend: RawTensor[Array], inputs: Sequence[Array]) -> None:
        compact, units = planned(program, backend, inputs)
        emitter = Emitter(backend, program, units, compact)
        write_function(emitter, inputs)
        self.size = emitter.planner.size
        self.text = emitter.source.text()
        self.source = emitter.source
        self.code = emitter.source.code()
        self.idle: deque[Any] = deque(maxlen=MAX_IDLE)

    def instance(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The function bound to new memory, and `Context.run` of a context where numpy ignores floating-point
        errors.
        """
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        return context.run, self.source.instance(self.code, aligned_memory(self.size))


def planned(
    program: Program, backend: RawTensor[Array], inputs: Sequence[Array]
) -> tuple[dict[Variable, Sizes], list[Unit]]:
    """The compact shapes of the values, and the schedule, for inputs with these layouts."""
    sizes = [layouts.compact(layouts.strided(x.shape, x.strides, x.dtype)).shape for x in inputs]
    constants: dict[Variable, Sizes] = {
        v: layouts.compact(np.asarray(x.representation)).shape for v, x in program.constants.items()
    }
    compact = compact_shapes(program, sizes, constants)
    return compact, schedule(program, compact, lambda equation: _groupable(equation, backend))


def _groupable(equation: Equation, backend: RawTensor[Array]) -> bool:
    """Whether an equation can run block by block."""
    op = equation.op
    if op.name in REDUCTIONS or op.name in ROW_OPS:
        return backend.has(op)
    if op.name == "expand":
        return True
    if not (op.elementwise or op.name == "cast") or not op.method or not backend.has(op):
        return False
    numbers = [v.value if is_literal(v) else None for v in equation.operands]
    return (
        op.name in METHOD_OPS
        or op.name == "cast"
        or template(op.name, [NUMPY_DTYPES[v.dtype.name] for v in equation.operands], numbers) is not None
    )
