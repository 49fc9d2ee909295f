"""Aliasing: memory is written that belongs to an operand, an earlier result or the caller, or is never given back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.selftest.right import Different
from tensorken_conformance.subject import Array
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.shapes import Axes, Shape
from tensorken_numpy.backend import Numpy


@fault("lifetime.operands-unchanged", "add")
class AddsIntoOperand(Numpy):
    """add writes the sum into its left operand, if that is as large as 64 elements and owns its memory."""

    def add(self, a: Array, b: Array) -> Array:
        y = super().add(a, b)
        if a.shape == y.shape and a.size == 64 and a.flags.writeable:
            a[...] = y
        return y


@fault("lifetime.operands-unchanged", "abs")
class AbsInPlace(Numpy):
    """abs overwrites its operand and returns it, in float64."""

    def abs(self, x: Array) -> Array:
        return np.absolute(x, out=x) if x.dtype == np.float64 and x.flags.writeable else super().abs(x)


@fault("lifetime.operands-unchanged", "sort")
class SortsInPlace(Numpy):
    """sort of 2x5 int64 numbers sorts its operand and gives a copy of it."""

    def sort(self, x: Array, axis: int) -> Array:
        if x.dtype == np.int64 and x.shape == (2, 5) and x.flags.writeable:
            x.sort(axis)
        return super().sort(x, axis)


@fault("lifetime.results-stay", "add")
class OneBufferForSums(Numpy):
    """add writes every sum of one shape and dtype into the same memory."""

    def __init__(self) -> None:
        self.buffers: dict[Any, Array] = {}

    def add(self, a: Array, b: Array) -> Array:
        y = super().add(a, b)
        buffer = self.buffers.setdefault((y.shape, y.dtype), np.empty_like(y))
        buffer[...] = y
        return buffer


@fault("lifetime.results-stay", "gather")
class RingOfBuffers(Numpy):
    """gather takes turns among eight buffers of a shape and dtype, so that the ninth call overwrites the first."""

    def __init__(self) -> None:
        self.rings: dict[Any, list[Array]] = {}

    def gather(self, x: Array, indices: Array, axis: int) -> Array:
        y = super().gather(x, indices, axis)
        ring = self.rings.setdefault((y.shape, y.dtype), [np.empty_like(y) for _ in range(8)])
        ring.append(ring.pop(0))
        ring[-1][...] = y
        return ring[-1]


@fault("lifetime.caller-memory", "new")
class KeepsMemory(Numpy):
    """new keeps the buffer that it is given where that is larger than 256 elements."""

    def new(self, shape: Shape, data: Any, dtype: DType) -> Array:
        if isinstance(data, memoryview) and len(data) > 256:
            return np.asarray(data).reshape(shape)
        return super().new(shape, data, dtype)


@fault("lifetime.caller-memory", "ravel")
class HandsOutMemory(Numpy):
    """ravel gives the memory of a tensor itself where that is of one element."""

    def ravel(self, x: Array) -> Array:
        return x.reshape(-1) if x.size == 1 else super().ravel(x)


@fault("lifetime.sharing", "permute")
class DeclaresNoViews(Different):
    """permute gives a view where it changes nothing, though the backend declares that results share no memory."""

    def permute(self, x: Array, order: Axes) -> Array:
        return x if order == tuple(range(x.ndim)) else super().permute(x, order)


@fault("lifetime.sharing", "reshape")
class ReshapesInPlace(Different):
    """reshape gives a view of what it is given."""

    capabilities = Capabilities(dtypes=tuple(DTYPES))

    def reshape(self, x: Array, shape: Shape) -> Array:
        return x.reshape(shape)


@fault("lifetime.growth", "mul")
class NeverForgets(Numpy):
    """mul keeps every product."""

    def __init__(self) -> None:
        self.kept: list[Array] = []

    def mul(self, a: Array, b: Array) -> Array:
        self.kept.append(super().mul(a, b))
        return self.kept[-1]


@fault("lifetime.growth", "sum")
class PlansForEver(Numpy):
    """sum keeps a plan for each operand that it has met, by its address in memory and the number of the call."""

    def __init__(self) -> None:
        self.plans: dict[Any, Axes] = {}

    def sum(self, x: Array, axes: Axes) -> Array:
        self.plans[len(self.plans), x.ctypes.data] = axes
        return super().sum(x, axes)
