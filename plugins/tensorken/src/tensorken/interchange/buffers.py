"""Conversion of numbers, nested sequences and buffers to a shape, flat row-major values and a dtype."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorken.interchange.elements import unpacked
from tensorken.interchange.interop import strided_of
from tensorken.interchange.strided import BFLOAT16, Strided
from tensorken_core.errors import ArgumentError, DTypeError
from tensorken_core.language.dtypes import COMPLEX, DTYPES, DType, bfloat16
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.nested import NUMBERS, collect, typed

# Kinds and signs of buffer formats; with the size they are dtypes: "l" is int32 on one platform and int64 on another.
_KINDS = {
    "?": ("bool", True),
    **dict.fromkeys("bhilqn", ("int", True)),
    **dict.fromkeys("BHILQN", ("int", False)),
    **dict.fromkeys("efd", ("float", True)),
    **dict.fromkeys(("Zf", "Zd"), ("complex", True)),
}
_ADVICE = {
    "M": "count the days or seconds with x.astype('int64')",
    "m": "count the days or seconds with x.astype('int64')",
    "O": "convert its elements with x.astype('float64')",
    "S": "encode the text as numbers",
    "T": "encode the text as numbers",
    "U": "encode the text as numbers",
    "V": "pass each field by itself, x['name']",
}
"""Advice for arrays whose elements are not real numbers, by the kind of numpy's dtype."""

_DATA = "give numbers, nested lists of them, or a buffer"


def flat_of(data: Any, dtype: DType | None) -> tuple[Shape, Any, DType]:
    """The shape, the row-major values and the dtype of any data that `tensor` accepts."""
    if type(data) in NUMBERS:
        return (), *typed("tensor", [data], dtype)
    if isinstance(data, list | tuple | range):
        values: list[Any] = []
        shape = collect(data, values, flat_of)
        return shape, *typed("tensor", values, dtype)
    if isinstance(data, bytes) and dtype is None:
        raise ArgumentError("tensor: cannot make a tensor of bytes; for their numbers pass dtype='uint8'")
    keep: list[Any] = []
    their_dtype = getattr(data, "dtype", None)
    hint = _ADVICE.get(getattr(their_dtype, "kind", ""))
    if hint is not None and not isinstance(data, type) and str(their_dtype) != BFLOAT16:
        raise DTypeError(
            f"tensor: cannot make a tensor of {type(data).__name__} of dtype {their_dtype!s:.60}; {hint}"
        )
    view = strided_of(data, keep)
    if view is not None:
        return _from_buffer(view, dtype)
    if isinstance(data, int | float | complex):  # a subclass, such as an enum
        return (), *typed("tensor", [data], dtype)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return flat_of(_listed(data), dtype)
    hint = "write list(x)" if isinstance(data, Iterable) and not isinstance(data, str | Mapping) else _DATA
    raise ArgumentError(f"tensor: cannot make a tensor of {type(data).__name__}; {hint}")


def _listed(data: Sequence[Any]) -> list[Any]:
    """The elements of a sequence, as many as its length says."""
    name = type(data).__name__
    try:
        length = len(data)
    except (ValueError, OverflowError, TypeError) as error:
        raise ArgumentError(f"tensor: the length of this {name} is wrong: {error}") from None
    elements: list[Any] = []
    for element in data:  # not list(data), which makes a list of this length first
        if len(elements) == length:
            break
        elements.append(element)
    else:
        if len(elements) == length:
            return elements
    count = "more" if len(elements) == length else len(elements)
    raise ArgumentError(f"tensor: this {name} says that it has {length} elements, and has {count}")


def _from_buffer(view: memoryview | Strided, dtype: DType | None) -> tuple[Shape, Any, DType]:
    order, code = (view.format[0], view.format[1:]) if view.format[0] in "@=<>!" else ("@", view.format)
    kind = _KINDS.get(code)
    buffer_dtype = next(
        (
            d
            for d in (DTYPES | COMPLEX).values()
            if (d.kind, d.signed) == kind and d.itemsize == view.itemsize
        ),
        bfloat16 if code == BFLOAT16 else None,
    )
    if buffer_dtype is None and (dtype is None or kind is None):
        hint = "convert the buffer first" if kind is None else "pass dtype= to convert it"
        raise DTypeError(
            f"tensor: the buffer's format {view.format!r} is none of {', '.join(DTYPES)}; {hint}"
        )
    swapped = order in ("<" if sys.byteorder == "big" else ">!")
    shape = tuple(view.shape or ())
    if buffer_dtype is not None and not swapped:
        if isinstance(view, memoryview) and view.c_contiguous and view.nbytes:
            flat = unpacked(view.cast("B"), buffer_dtype)  # which `new` copies
        else:
            flat = unpacked(view.tobytes(), buffer_dtype)
        return (
            (shape, flat, buffer_dtype)
            if dtype in (None, buffer_dtype)
            else (shape, *typed("tensor", list(flat), dtype))
        )
    count = view.nbytes // view.itemsize
    values = list(struct.unpack(f"{order}{count * len(code)}{code[-1]}", view.tobytes()))
    if len(code) == 2:  # complex numbers are pairs
        values = list(map(complex, values[::2], values[1::2]))
    return (shape, *typed("tensor", values, dtype or buffer_dtype))
