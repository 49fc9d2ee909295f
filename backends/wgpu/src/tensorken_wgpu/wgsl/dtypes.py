"""The dtypes that a device supports, and their elements in memory."""

from __future__ import annotations

import array
import struct
from collections.abc import Collection, Iterable
from math import prod
from typing import Any, Protocol

from tensorken_core.language.dtypes import DTYPES, DType, round_float
from tensorken_core.language.shapes import Shape


class Value(Protocol):
    """Has a shape and a dtype: a variable of a program, an array."""

    @property
    def shape(self) -> Shape:
        """The size along each axis."""

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""


FORMATS = {
    "bool": "I",
    "int32": "i",
    "int64": "q",
    "uint32": "I",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
"""The format, of the struct module, of an element in memory."""

SIZES = {name: struct.calcsize(f"={format}") for name, format in FORMATS.items()}
"""The bytes of an element in memory."""

_NEEDED: dict[str, frozenset[str]] = {
    "bool": frozenset(),
    "int32": frozenset(),
    "int64": frozenset({"shader-int64"}),
    "uint32": frozenset(),
    "float16": frozenset({"shader-f16"}),
    "float32": frozenset(),
    "float64": frozenset({"shader-f64", "shader-int64"}),  # its bits are an int64
}
FEATURES = frozenset().union(*_NEEDED.values())
"""The features that a device should be opened with, if its adapter has them."""

_TRUTH = bytes([0, *[1] * 255])  # translates each byte except 0 to 1


def size_of(value: Value) -> int:
    """The bytes of a value in memory."""
    return prod(value.shape) * SIZES[value.dtype.name]


def supported_dtypes(features: Iterable[str]) -> tuple[str, ...]:
    """The names of the dtypes of a device with these features.

    >>> supported_dtypes({"shader-f16"})
    ('bool', 'int32', 'uint32', 'float16', 'float32')
    """
    return tuple([name for name in DTYPES if name in _NEEDED and _NEEDED[name] <= set(features)])


def packed(values: Collection[Any], dtype: str) -> bytes:
    """Python numbers as elements in memory.

    >>> packed([1.0, 1e6], "float16").hex(" ", 2)
    '003c 007c'
    """
    if dtype == "bool":
        return widened(bytes(map(bool, values)))
    if dtype == "float16":
        try:
            return struct.pack(f"<{len(values)}e", *values)
        except OverflowError:  # a number is out of range and becomes infinite
            rounded = [round_float(float(v), DTYPES[dtype]) for v in values]
            return struct.pack(f"<{len(rounded)}e", *rounded)
    return array.array(FORMATS[dtype], [*values]).tobytes()


def widened(flags: bytes) -> bytes:
    """Elements of bool, each in a byte, as elements in memory; any byte but 0 is true.

    >>> widened(bytes([0, 1, 2])).hex(" ", 4)
    '00000000 01000000 01000000'
    """
    size = SIZES["bool"]
    wide = bytearray(size * len(flags))
    wide[::size] = flags.translate(_TRUTH)
    return bytes(wide)


def narrowed(elements: memoryview) -> bytes:
    """Elements of bool in memory, as one byte each."""
    return bytes(elements)[:: SIZES["bool"]]  # slicing bytes is faster than slicing a memoryview
