"""Programs: each op alone is correct, and some of them together are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Arrays, Compile, Original, Run, State, fault, fault_in_calls
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Shape
from tensorken_core.program.program import Program
from tensorken_numpy.backend import Numpy


@fault("programs.meaning", "add", "sub", "maximum")
class OuterOperands(Numpy):
    """add, sub and maximum of a column and a row use the first element of the column for all its rows."""

    def add(self, a: Array, b: Array) -> Array:
        return super().add(_first(a, b), b)

    def sub(self, a: Array, b: Array) -> Array:
        return super().sub(_first(a, b), b)

    def maximum(self, a: Array, b: Array) -> Array:
        return super().maximum(_first(a, b), b)


def _first(a: Array, b: Array) -> Array:
    """`a`, or its first element repeated if both operands are broadcast."""
    crossed = a.size > 1 and np.broadcast_shapes(a.shape, b.shape) not in (a.shape, b.shape)
    return np.broadcast_to(a.reshape(-1)[:1].reshape((1,) * a.ndim), a.shape) if crossed else a


@fault("programs.meaning", "mul")
def repeated_factor_once(original: Original, a: Array, b: Array) -> Array:
    """mul by an operand of size 1 along the first axis uses the first row of the other for all."""
    repeated = a.ndim > 1 and a.shape != b.shape and b.shape[0] == 1 < a.shape[0]
    return original(np.broadcast_to(a[:1], a.shape), b) if repeated else original(a, b)


@fault("programs.closures", "sub")
def small_operands_exchanged(original: Original, a: Array, b: Array) -> Array:
    """sub of a small operand from a large one, where the backend broadcasts, exchanges the two."""
    return original(b, a) if a.size > b.size else original(a, b)


@fault("programs.stateful")
class CachedByAddress(Numpy):
    """neg and max cache their results by the address of the operand, where another may be stored later."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def neg(self, x: Array) -> Array:
        return self.known.setdefault(("neg", _place(x), x.shape, x.dtype), super().neg(x))

    def max(self, x: Array, axes: Axes) -> Array:
        return self.known.setdefault((axes, _place(x), x.shape, x.dtype), super().max(x, axes))


def _place(x: Array) -> int:
    """The address of an array; a scalar of numpy has none that lasts."""
    return id(object()) if np.isscalar(x) else x.ctypes.data


@fault("programs.stateful", method="reshape")
def lost_with_operand(original: Original, state: dict[str, list[Array]], x: Array, shape: Shape) -> Array:
    """The result of reshape is zero after eight more calls of it, as if its memory were used again."""
    made = state.setdefault("made", [])
    made.append(np.array(original(x, shape)))
    if len(made) > 8:
        made.pop(0)[...] = 0
    return made[-1]


@fault_in_calls("programs.compiled")
def results_in_one_buffer(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program returns its results in arrays that the next call overwrites."""
    ys = run(xs)
    buffers: list[Array] = state.setdefault("buffers", [np.array(y) for y in ys])
    for buffer, y in zip(buffers, ys, strict=True):
        buffer[...] = y
    return list(buffers)


@fault_in_calls("programs.compiled")
def compiled_for_the_first_numbers(run: Run, state: State, program: Program, xs: Arrays) -> Arrays:
    """A compiled program repeats the results of its first call if that had a negative number in its first operand."""
    if "first" not in state:
        state["first"] = run(xs) if xs and (xs[0] < 0).any() else None
    return run(xs) if state["first"] is None else state["first"]


@fault("programs.compiled", method="compile")
def exchanged_in_groups(original: Compile, program: Program) -> Run | None:
    """A compiled program exchanges the operands of a difference whose second it has just computed."""
    computed: set[Any] = set()
    equations = []
    for equation in program.equations:
        a, *rest = equation.operands
        if equation.op.name == "sub" and rest[0] in computed:
            equation = replace(equation, operands=(rest[0], a))
        computed.update(equation.results if equation.op.elementwise else ())
        equations.append(equation)
    return original(program.changed(equations=tuple(equations)))
