"""Aliasing: memory is written that belongs to an operand, an earlier result or the caller, or is never given back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.selftest.right import Different
from tensorken_conformance.subject import Array
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.shapes import Axes, Shape
from tensorken_numpy.backend import Numpy


@fault("lifetime.calls", "add")
def adds_into_operand(right: Right, a: Array, b: Array) -> Array:
    """add writes the sum into its left operand, if that is as large as 64 elements and owns its memory."""
    y = right(a, b)
    if a.shape == y.shape and a.size == 64 and a.flags.writeable:
        a[...] = y
    return y


@fault("lifetime.calls", "abs")
def abs_in_place(right: Right, x: Array) -> Array:
    """abs overwrites its operand and returns it, in float64."""
    return np.absolute(x, out=x) if x.dtype == np.float64 and x.flags.writeable else right(x)


@fault("lifetime.calls", "sort")
def sorts_in_place(right: Right, x: Array, axis: int) -> Array:
    """sort of 2x5 int64 numbers sorts its operand and gives a copy of it."""
    if x.dtype == np.int64 and x.shape == (2, 5) and x.flags.writeable:
        x.sort(axis)
    return right(x, axis)


@fault("lifetime.calls", "add")
def one_buffer_for_sums(right: Right, kept: dict[Any, Array], a: Array, b: Array) -> Array:
    """add writes every sum of one shape and dtype into the same memory."""
    y = right(a, b)
    buffer = kept.setdefault((y.shape, y.dtype), np.empty_like(y))
    buffer[...] = y
    return buffer


@fault("lifetime.results-stay", "gather")
def ring_of_buffers(right: Right, kept: dict[Any, list[Array]], x: Array, indices: Array, axis: int) -> Array:
    """gather takes turns among eight buffers of a shape and dtype, so that the ninth call overwrites the first."""
    y = right(x, indices, axis)
    ring = kept.setdefault((y.shape, y.dtype), [np.empty_like(y) for _ in range(8)])
    ring.append(ring.pop(0))
    ring[-1][...] = y
    return ring[-1]


@fault("lifetime.caller-memory", "new")
def keeps_memory(right: Right, shape: Shape, data: Any, dtype: DType) -> Array:
    """new keeps the buffer that it is given where that is larger than 256 elements."""
    if isinstance(data, memoryview) and len(data) > 256:
        return np.asarray(data).reshape(shape)
    return right(shape, data, dtype)


@fault("lifetime.caller-memory", "ravel")
def hands_out_memory(right: Right, x: Array) -> Array:
    """ravel gives the memory of a tensor itself where that is of one element."""
    return x.reshape(-1) if x.size == 1 else right(x)


@fault("lifetime.calls", "permute")
class DeclaresNoViews(Different):
    """permute gives a view where it changes nothing, though the backend declares that results share no memory."""

    def permute(self, x: Array, order: Axes) -> Array:
        return x if order == tuple(range(x.ndim)) else super().permute(x, order)


@fault("lifetime.calls", "reshape")
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
def plans_for_ever(right: Right, kept: dict[Any, Axes], x: Array, axes: Axes) -> Array:
    """sum keeps a plan for each operand that it has met, by its address in memory and the number of the call."""
    kept[len(kept), x.ctypes.data] = axes
    return right(x, axes)
