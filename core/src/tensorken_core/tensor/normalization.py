"""Normalization of axes, shapes and pairs to the form that the language takes; errors name the function."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import ArgumentError, ConcretizationError, ShapeError, TensorkenError
from tensorken_core.language.shapes import Axes, Shape, normalize_axes, normalize_axis, short_repr

Axis = int | Sequence[int] | None


def axis_of(name: str, shape: Shape, axis: int) -> int:
    """One non-negative axis."""
    try:
        return normalize_axis(axis, len(shape), shape)
    except TensorkenError as error:
        raise type(error)(f"{name}: {error}") from None


def axes_of(name: str, shape: Shape, axis: Axis) -> Axes:
    """Sorted, unique, non-negative axes; None means all."""
    try:
        return normalize_axes(axis, shape)
    except TensorkenError as error:
        raise type(error)(f"{name}: {error}") from None


def integer_of(name: str, what: str, value: Any) -> int:
    """An int; `what` describes it in an error."""
    try:
        return operator.index(value)
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(f"{name}: {what} must be an int, got {short_repr(value)}") from None


def pairs_of(name: str, pairs: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """One pair of ints for each axis."""
    try:
        return tuple([(operator.index(first), operator.index(second)) for first, second in pairs])
    except ConcretizationError as error:
        raise error.at(name) from None
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: need one pair of ints for each axis, got {short_repr(pairs)}") from None


def sizes_of(name: str, shape: tuple[Any, ...]) -> Shape:
    """Sizes, given as several arguments or as one sequence."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    try:
        return tuple(map(operator.index, sizes))
    except ConcretizationError as error:
        raise error.at(name) from None
    except TypeError:
        raise ArgumentError(f"{name}: the sizes of a shape must be ints, got {short_repr(sizes)}") from None


def filled_in(shape: Shape, new: Shape) -> Shape:
    """The new shape, with -1 replaced by the size that the number of elements implies."""
    known = math.prod([n for n in new if n != -1])
    if new.count(-1) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {new}; give the others")
    if known == 0 or math.prod(shape) % known:
        raise ShapeError(
            f"reshape: cannot infer -1 in {new} for the {math.prod(shape)} elements of shape {shape}; change a size"
        )
    return tuple([math.prod(shape) // known if n == -1 else n for n in new])
