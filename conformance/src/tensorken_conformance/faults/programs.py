"""Programs: each op by itself is right, and some of them together are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Shape
from tensorken_numpy.backend import Numpy


@fault("programs.meaning", "add", "sub", "maximum")
class OuterOperands(Numpy):
    """Sums, differences and maxima of a column and a row, which the backend broadcasts, have its first for a column."""

    def add(self, a: Array, b: Array) -> Array:
        return super().add(_first(a, b), b)

    def sub(self, a: Array, b: Array) -> Array:
        return super().sub(_first(a, b), b)

    def maximum(self, a: Array, b: Array) -> Array:
        return super().maximum(_first(a, b), b)


def _first(a: Array, b: Array) -> Array:
    """The first along the axes that only `a` has, if `b` has some that `a` lacks."""
    crossed = a.size > 1 and np.broadcast_shapes(a.shape, b.shape) not in (a.shape, b.shape)
    return np.broadcast_to(a.reshape(-1)[:1].reshape((1,) * a.ndim), a.shape) if crossed else a


@fault("programs.meaning", "mul")
class RepeatedFactorOnce(Numpy):
    """mul by an operand of size 1 along the first axis takes the first row of the other alone."""

    def mul(self, a: Array, b: Array) -> Array:
        repeated = a.ndim > 1 and a.shape != b.shape and b.shape[0] == 1 < a.shape[0]
        return super().mul(np.broadcast_to(a[:1], a.shape), b) if repeated else super().mul(a, b)


@fault("programs.meaning", "sub")
class SmallOperandsExchanged(Numpy):
    """sub of a small operand from a large one, where the backend broadcasts, exchanges the two."""

    def sub(self, a: Array, b: Array) -> Array:
        return super().sub(b, a) if a.size > b.size else super().sub(a, b)


@fault("programs.stateful")
class CachedByAddress(Numpy):
    """neg and max keep their results by where the operand lies in memory, where another may lie later."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def neg(self, x: Array) -> Array:
        return self.known.setdefault(("neg", _place(x), x.shape, x.dtype), super().neg(x))

    def max(self, x: Array, axes: Axes) -> Array:
        return self.known.setdefault((axes, _place(x), x.shape, x.dtype), super().max(x, axes))


def _place(x: Array) -> int:
    """Where an array lies in memory; a scalar of numpy is nowhere for long."""
    return id(object()) if np.isscalar(x) else x.ctypes.data


@fault("programs.stateful")
class LostWithOperand(Numpy):
    """What reshape gave is zero once eight more have been made, as if its memory were used again."""

    def __init__(self) -> None:
        self.made: list[Array] = []

    def reshape(self, x: Array, shape: Shape) -> Array:
        y = np.array(x.reshape(shape))
        self.made.append(y)
        if len(self.made) > 8:
            self.made.pop(0)[...] = 0
        return y


@fault("programs.compiled")
class ResultsInOneBuffer(Numpy):
    """A compiled program gives its results in arrays that the next call fills again."""

    def compile(self, program: Any) -> Any:
        run = super().compile(program)
        if run is None:
            return None
        buffers: list[Array] = []

        def again(xs: Sequence[Array]) -> list[Array]:
            ys = run(xs)
            if not buffers:
                buffers.extend([np.array(y) for y in ys])
            for buffer, y in zip(buffers, ys, strict=True):
                buffer[...] = y
            return list(buffers)

        return again


@fault("programs.compiled")
class CompiledForTheFirstNumbers(Numpy):
    """A compiled program with a negative number among its first operands gives the first results ever after."""

    def compile(self, program: Any) -> Any:
        run = super().compile(program)
        if run is None:
            return None
        first: list[Any] = []

        def once(xs: Sequence[Array]) -> Any:
            if not first:
                first.append(run(xs) if xs and (xs[0] < 0).any() else None)
            return run(xs) if first[0] is None else first[0]

        return once


@fault("programs.compiled")
class ExchangedInGroups(Numpy):
    """A compiled program exchanges the operands of a difference whose second it has just computed."""

    def compile(self, program: Any) -> Any:
        computed: set[Any] = set()
        equations = []
        for equation in program.equations:
            a, *rest = equation.operands
            if equation.op.name == "sub" and rest[0] in computed:
                equation = replace(equation, operands=(rest[0], a))
            computed.update(equation.results if equation.op.elementwise else ())
            equations.append(equation)
        return super().compile(program.changed(equations=tuple(equations)))
