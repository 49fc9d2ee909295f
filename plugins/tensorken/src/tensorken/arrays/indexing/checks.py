"""Checks on the known values of indices: whether they are in range, and whether they are negative."""

from __future__ import annotations

import math
from typing import Any

from tensorken_core.errors import ArgumentError, ConcretizationError, IndexingError
from tensorken_core.language.dtypes import integer_bounds, position_dtype
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS, run
from tensorken_core.language.raw import RawTensor
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.level import Level
from tensorken_core.tensor.tensor import Tensor

FEW = 64
"""The largest number of indices for which reading all is faster than a reduction on the backend."""

_MIN, _MAX = OPS["min"], OPS["max"]


def checked(name: str, indices: Tensor, axis: int, shape: Shape) -> Tensor:
    """Indices along an axis of a shape, with negative indices counted from the end: all in [0, size).

    The check reads the primal values under grad, and the values of every example under vmap.  While tracing, the values
    are unknown, and the indices are clamped: a conditional or a loop also computes examples whose results are unused,
    with arbitrary indices.  In a printed expression, indices are neither checked nor clamped.

    Args:
        name: the called function, for the message.

    Raises:
        IndexingError: if an index is known to be out of range.
    """
    size = shape[axis]
    indices = with_size(indices, size)
    limits = bounds(indices)
    if limits is not None:
        low, high = limits
        if low < -size or high >= size:
            what = f"indices from {low} to {high} are" if low != high else f"index {low} is"
            hint = f"they run from {-size} to {size - 1}" if size else "it has no elements"
            raise IndexingError(f"{name}: {what} out of range for axis {axis} of shape {shape}; {hint}")
        if low >= 0:
            return indices
    if not size and indices.size:
        raise IndexingError(f"{name}: axis {axis} of shape {shape} has no elements, so no index is in range")
    wrapped: Tensor = (indices < 0).where(indices + size, indices)
    base: Any = indices.interpreter.base
    if limits is not None or not indices.size or base.capabilities.symbolic:
        return wrapped
    clamped: Tensor = wrapped.maximum(0).minimum(size - 1)
    return clamped


def with_size(indices: Tensor, size: int) -> Tensor:
    """Integer indices in a dtype that has the size, to which negative ones are added."""
    return indices if size <= integer_bounds(indices.dtype)[1] else indices.astype(position_dtype(size))


def lower_with_batch_axes(representation: Any, interpreter: Interpreter[Any]) -> tuple[Interpreter[Any], Any]:
    """As `lower`, but a value that differs between the examples of a batch keeps its batch axis."""
    while isinstance(interpreter, Level):
        representation = interpreter.lower_with_batch_axis(representation)
        interpreter = interpreter.inner
    return interpreter, representation


def bounds(x: Tensor) -> tuple[int, int] | None:
    """The least and greatest element over all examples; None if there are no elements or their values are unknown."""
    try:
        base, value = lower_with_batch_axes(x.representation, x.interpreter)
        if not isinstance(base, RawTensor):
            return None
        shape: Shape = base.shape(value)
        count = math.prod(shape)
        if count == 0:
            return None
        if count <= FEW:
            elements = _to_list(base.ravel(value))
            return min(elements), max(elements)
        axes = tuple(range(len(shape)))
        return _read_int(base, run(base, _MIN, (value,), (axes,))), _read_int(
            base, run(base, _MAX, (value,), (axes,))
        )
    except ConcretizationError:
        return None


def known_all(condition: Tensor) -> bool:
    """Whether a bool tensor is known to be True everywhere, in every example."""
    limits = bounds(condition)
    return limits is not None and bool(limits[0])


def require(name: str, what: str, holds: Tensor, needed: str, x: Tensor | None = None) -> None:
    """Raise unless a condition holds for all known values; nothing is known while the function is traced.

    Args:
        name: the called function, for the message.
        what: the argument.
        holds: a bool tensor.
        needed: the text after "must be".
        x: the values of the argument, in the shape of the condition; the message names the first that is wrong.

    Raises:
        ArgumentError: if the condition is known to be False somewhere.
    """
    limits = bounds(holds)
    if limits is None or limits[0]:
        return
    got = ""
    if x is not None:
        flags, values = (
            list(_to_list(base.ravel(y)))  # type: ignore[attr-defined]
            for base, y in (lower_with_batch_axes(t.representation, t.interpreter) for t in (holds, x))
        )
        wrong = [v for flag, v in zip(flags, values, strict=False) if not flag]
        got = f", got {getattr(wrong[0], 'item', lambda: wrong[0])()}" if wrong else ""
    raise ArgumentError(f"{name}: {what} must be {needed}{got}")


def _to_list(flat: Any) -> list[Any]:
    return flat if isinstance(flat, list) else flat.tolist()


def _read_int(base: Interpreter[Any], value: Any) -> int:
    return int(base.ravel(value)[0])  # type: ignore[attr-defined]
