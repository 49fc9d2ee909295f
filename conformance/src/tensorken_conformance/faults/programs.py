"""Programs: each op by itself is right, and some of them together are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken.spec.shapes import Shape
from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_numpy.backend import Numpy


@fault("programs.meaning", "add")
class OuterSumOfOne(Numpy):
    """add of a column and a row, which the backend says it broadcasts, takes the first of the column for all."""

    def add(self, a: Array, b: Array) -> Array:
        y = super().add(a, b)
        crossed = a.shape != y.shape != b.shape and a.ndim == 2 and a.shape[1] == 1
        return np.array(np.broadcast_to(a[:1] + b, y.shape)) if crossed else y


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
    """neg keeps its results by the address of the operand, at which another may be later."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}

    def neg(self, x: Array) -> Array:
        return self.known.setdefault((id(x), x.shape, x.dtype), super().neg(x))


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
