"""What tensors are made from, as a shape, flat row-major values and a dtype: numbers, nested sequences, buffers."""

from __future__ import annotations

import math
import struct
import sys
from typing import Any

from tensorken.errors import ArgumentError, DTypeError, ScalarRangeError, ShapeError
from tensorken.interop import strided_of
from tensorken.spec.dtypes import DTYPES, DType, bool_, check_scalar, float16, float32, int32
from tensorken.spec.shapes import Shape
from tensorken.strided import BFLOAT16, Strided, widened

NUMBERS = {bool, int, float}

# Buffer formats by kind and size: "l" is int32 on one platform and int64 on another.
_KINDS = {"?": "bool", **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("efd", "float")}
_WAYS_OUT = {
    "c": "there are no complex dtypes; pass x.real and x.imag",
    "M": "count the days or seconds with x.astype('int64')",
    "m": "count the days or seconds with x.astype('int64')",
    "O": "convert its elements with x.astype('float64')",
    "S": "encode the text as numbers",
    "T": "encode the text as numbers",
    "U": "encode the text as numbers",
    "V": "pass each field by itself, x['name']",
}
"""What to do about arrays whose elements are no real numbers, by the kinds of numpy's dtypes."""

_CONVERTED = (*_KINDS, *"BHILQN", BFLOAT16)


def flat_of(data: Any, dtype: DType | None) -> tuple[Shape, Any, DType]:
    """The shape, the row-major values and the dtype of anything that `tensor` takes."""
    if type(data) in (bool, int, float):
        return (), *typed("tensor", [data], dtype)
    if isinstance(data, list | tuple | range):
        values: list[Any] = []
        shape = _collect(data, values, ())
        return shape, *typed("tensor", values, dtype)
    keep: list[Any] = []
    theirs = getattr(data, "dtype", None)
    way_out = _WAYS_OUT.get(getattr(theirs, "kind", ""))
    if way_out is not None and not isinstance(data, type):
        raise DTypeError(
            f"tensor: cannot make a tensor of {type(data).__name__} of dtype {theirs!s:.60}; {way_out}"
        )
    view = strided_of(data, keep)
    if view is not None:
        return _from_buffer(view, dtype)
    if isinstance(data, int | float):  # an enum, say
        return (), *typed("tensor", [data], dtype)
    raise ArgumentError(
        f"tensor: cannot make a tensor of {type(data).__name__}; give numbers, nested lists of them, or a buffer"
    )


def _collect(data: Any, values: list[Any], path: tuple[int, ...]) -> Shape:
    """Append the numbers of nested sequences to `values`; their shape, which must be the same along each axis."""
    if not isinstance(data, list | tuple | range):
        if isinstance(data, int | float):
            values.append(data)
            return ()
        shape, flat, _ = flat_of(data, None)
        values.extend(flat if isinstance(flat, list) else flat.tolist())
        return shape
    if set(map(type, data)) <= NUMBERS and data:  # the innermost sequence, nearly always
        values.extend(data)
        return (len(data),)
    shapes = [_collect(item, values, (*path, i)) for i, item in enumerate(data)]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            place = "".join([f"[{k}]" for k in (*path, i)])
            first = "".join([f"[{k}]" for k in (*path, 0)])
            raise ShapeError(
                f"tensor: ragged: data{place} has shape {shape}, data{first} has {shapes[0]}; "
                f"pad the rows to one length"
            )
    return (len(shapes), *(shapes[0] if shapes else ()))


def typed(name: str, values: list[Any], dtype: DType | None) -> tuple[list[Any], DType]:
    """Numbers as bool, int or float, as their dtype demands; without one it follows from their types."""
    kinds = set(map(type, values))
    if dtype is None:
        whole_kinds = [issubclass(kind, int) for kind in kinds]
        dtype = bool_ if kinds == {bool} else int32 if kinds and all(whole_kinds) else float32
    if dtype is bool_:
        return [bool(value) for value in values], dtype
    try:
        if dtype.kind == "int":
            values = whole = values if kinds == {int} else [int(value) for value in values]
        else:
            whole = [] if kinds == {float} else [value for value in values if isinstance(value, int)]
    except (ValueError, OverflowError):
        odd = next(value for value in values if isinstance(value, float) and not math.isfinite(value))
        raise ScalarRangeError(f"{name}: {odd} does not fit {dtype}; use a floating-point dtype") from None
    if whole:
        try:
            check_scalar(max(whole), dtype)
            check_scalar(min(whole), dtype)
        except ScalarRangeError as error:
            raise ScalarRangeError(f"{name}: {error}") from None
    return values, dtype


def unpacked(data: bytes, dtype: DType) -> Any:
    """Bytes as flat values of a dtype; a list for float16, which memoryview cannot name before Python 3.12."""
    if dtype is float16:
        return list(struct.unpack(f"{len(data) // dtype.itemsize}e", data))
    return memoryview(data).cast(dtype.format)  # type: ignore[call-overload]


def _from_buffer(view: memoryview | Strided, dtype: DType | None) -> tuple[Shape, Any, DType]:
    order, code = (view.format[0], view.format[1:]) if view.format[0] in "@=<>!" else ("@", view.format)
    kind = _KINDS.get(code)
    own = next((d for d in DTYPES.values() if d.kind == kind and d.itemsize == view.itemsize), None)
    if own is None and (dtype is None or code not in _CONVERTED):
        way_out = "pass dtype= to convert it" if code in _CONVERTED else "convert it before"
        raise DTypeError(
            f"tensor: the buffer's format {view.format!r} is none of {', '.join(DTYPES)}; {way_out}"
        )
    swapped = order in ("<" if sys.byteorder == "big" else ">!")
    shape = tuple(view.shape or ())
    if own is not None and not swapped:
        flat = unpacked(view.tobytes(), own)
        return (shape, flat, own) if dtype in (None, own) else (shape, *typed("tensor", list(flat), dtype))
    if code == BFLOAT16:
        return (shape, *typed("tensor", widened(view.tobytes()), dtype))
    count = view.nbytes // view.itemsize
    values = list(struct.unpack(f"{order}{count}{code}", view.tobytes()))
    return (shape, *typed("tensor", values, dtype or own))
