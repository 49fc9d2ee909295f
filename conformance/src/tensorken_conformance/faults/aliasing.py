"""Aliasing: memory of an operand, an earlier result or the caller is overwritten, or memory is never released."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.backends.correct import Different
from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.capabilities import Capabilities
from tensorken_core.language.dtypes import DTYPES, DType
from tensorken_core.language.shapes import Axes, Shape


@fault("lifetime.calls", "add")
def adds_into_operand(original: Original, a: Array, b: Array) -> Array:
    """add writes the sum into its left operand, if that has 64 elements and can be written."""
    y = original(a, b)
    if a.shape == y.shape and a.size == 64 and a.flags.writeable:
        a[...] = y
    return y


@fault("lifetime.calls", "abs", dtype="float64")
def abs_in_place(original: Original, x: Array) -> Array:
    """abs overwrites its operand and returns it, in float64."""
    return np.absolute(x, out=x) if x.flags.writeable else original(x)


@fault("lifetime.calls", "sort", dtype="int64", shape=(2, 5))
def sorts_in_place(original: Original, x: Array, axis: int) -> Array:
    """sort of 2x5 int64 numbers sorts its operand and returns a copy of it."""
    if x.flags.writeable:
        x.sort(axis)
    return original(x, axis)


@fault("lifetime.calls", "add")
def one_buffer_for_sums(original: Original, state: dict[Any, Array], a: Array, b: Array) -> Array:
    """add writes every sum of one shape and dtype into the same memory."""
    y = original(a, b)
    buffer = state.setdefault((y.shape, y.dtype), np.empty_like(y))
    buffer[...] = y
    return buffer


@fault("lifetime.results-stay", "gather")
def ring_of_buffers(
    original: Original, state: dict[Any, list[Array]], x: Array, indices: Array, axis: int
) -> Array:
    """gather uses eight buffers of a shape and dtype in turn, so that the ninth call overwrites the first."""
    y = original(x, indices, axis)
    ring = state.setdefault((y.shape, y.dtype), [np.empty_like(y) for _ in range(8)])
    ring.append(ring.pop(0))
    ring[-1][...] = y
    return ring[-1]


@fault("lifetime.caller-memory", "new")
def keeps_memory(original: Original, shape: Shape, data: Any, dtype: DType) -> Array:
    """new does not copy a buffer of more than 256 elements."""
    if isinstance(data, memoryview) and len(data) > 256:
        return np.asarray(data).reshape(shape)
    return original(shape, data, dtype)


@fault("lifetime.caller-memory", "ravel")
def hands_out_memory(original: Original, x: Array) -> Array:
    """ravel returns the memory of a tensor itself if the tensor has one element."""
    return x.reshape(-1) if x.size == 1 else original(x)


@fault("lifetime.calls", "permute", on=Different)
def declares_no_views(original: Original, x: Array, order: Axes) -> Array:
    """permute returns its operand if it changes nothing, though the backend declares that results share no memory."""
    return x if order == tuple(range(x.ndim)) else original(x, order)


@fault("lifetime.calls", "reshape")
class ReshapesInPlace(Different):
    """reshape returns a view of its operand, undeclared."""

    capabilities = Capabilities(dtypes=tuple(DTYPES))

    def reshape(self, x: Array, shape: Shape) -> Array:
        return x.reshape(shape)


@fault("lifetime.growth", "mul")
def never_forgets(original: Original, state: dict[int, Array], a: Array, b: Array) -> Array:
    """mul keeps every product."""
    return state.setdefault(len(state), original(a, b))


@fault("lifetime.growth", "sum")
def plans_for_ever(original: Original, state: dict[Any, Axes], x: Array, axes: Axes) -> Array:
    """sum keeps a plan for each call, by the address of the operand and the number of the call."""
    state[len(state), x.ctypes.data] = axes
    return original(x, axes)
