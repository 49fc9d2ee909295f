"""Conversion of nested sequences of Python numbers to a shape, flat row-major values and a dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorken_core.errors import ArgumentError, DTypeError, ScalarRangeError, ShapeError
from tensorken_core.language.dtypes import DType, bool_, check_scalar, complex64, float32, int32
from tensorken_core.language.shapes import Shape

MOST_NESTED = 256
"""The most sequences within each other; a deeper one contains itself."""

NUMBERS = {bool, int, float, complex}

Reader = Callable[[Any, "DType | None"], "tuple[Shape, Any, DType]"]


def flat_of_numbers(data: Any, dtype: DType | None) -> tuple[Shape, list[Any], DType]:
    """The shape, the row-major values and the dtype of a number, or of nested sequences of numbers.

    Raises:
        ArgumentError: if it is anything else.
        ShapeError: if the sequences are ragged.
        ScalarRangeError: if a number does not fit the dtype.
    """
    values: list[Any] = []
    shape = collect(data, values, _refused)
    return shape, *typed("tensor", values, dtype)


def _refused(data: Any, dtype: DType | None) -> tuple[Shape, Any, DType]:
    raise ArgumentError(
        f"tensor: cannot make a tensor of {type(data).__name__}; give numbers, or nested lists of them"
    )


def collect(data: Any, values: list[Any], read: Reader, path: tuple[int, ...] = ()) -> Shape:
    """Append the numbers of nested sequences to `values`.

    Args:
        data: a number, or a sequence of such data.
        values: takes the numbers in row-major order.
        read: returns the shape, the values and the dtype of an element of another type.
        path: the indices that lead to the data, for messages.

    Returns:
        The shape.

    Raises:
        ShapeError: if the sequences are ragged.
    """
    if not isinstance(data, list | tuple | range):
        if isinstance(data, int | float | complex):
            values.append(data)
            return ()
        shape, flat, _ = read(data, None)
        values.extend(flat if isinstance(flat, list) else flat.tolist())
        return shape
    if len(path) > MOST_NESTED:
        raise ShapeError(
            f"tensor: sequences nested more than {MOST_NESTED} deep; make sure that none contains itself"
        )
    if set(map(type, data)) <= NUMBERS and data:  # the common case: an innermost sequence
        before = len(values)
        values.extend(data)
        return (len(values) - before,)  # a subclass of list may have another length
    shapes = [collect(item, values, read, (*path, i)) for i, item in enumerate(data)]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            indices = "".join([f"[{k}]" for k in (*path, i)])
            first = "".join([f"[{k}]" for k in (*path, 0)])
            raise ShapeError(
                f"tensor: ragged: data{indices} has shape {shape}, data{first} has {shapes[0]}; "
                f"pad the rows to one length"
            )
    return (len(shapes), *(shapes[0] if shapes else ()))


def typed(name: str, values: list[Any], dtype: DType | None) -> tuple[list[Any], DType]:
    """Numbers converted for a dtype, and the dtype, which by default follows from their types."""
    kinds = set(map(type, values))
    if dtype is None:
        are_ints = [issubclass(kind, int) for kind in kinds]
        dtype = bool_ if kinds == {bool} else int32 if kinds and all(are_ints) else float32
        dtype = complex64 if complex in kinds else dtype
    if dtype is bool_:
        return [bool(value) for value in values], dtype
    if dtype.kind == "complex":
        return [complex(value) for value in values], dtype
    if complex in kinds:
        raise DTypeError(
            f"{name}: complex numbers do not fit {dtype}; use complex64, or pass their real parts"
        )
    try:
        if dtype.kind == "int":
            values = integers = values if kinds == {int} else [int(value) for value in values]
        else:
            integers = [] if kinds == {float} else [value for value in values if isinstance(value, int)]
    except (ValueError, OverflowError):
        bad = next(value for value in values if isinstance(value, float) and not math.isfinite(value))
        raise ScalarRangeError(f"{name}: {bad} does not fit {dtype}; use a floating-point dtype") from None
    if integers:
        try:
            check_scalar(max(integers), dtype)
            check_scalar(min(integers), dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{name}: {error}") from None
    return values, dtype
