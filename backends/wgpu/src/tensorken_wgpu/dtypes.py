"""DTypes: which ones a device has, and how their elements lie in its memory."""

from __future__ import annotations

import array
import struct
from collections.abc import Collection, Iterable
from math import prod
from typing import Any, Protocol

from tensorken_core.language.dtypes import DTYPES, DType, round_float
from tensorken_core.language.shapes import Shape


class Value(Protocol):
    """What has a shape and a dtype: a variable of a program, an array."""

    @property
    def shape(self) -> Shape:
        """How many elements there are along each axis."""

    @property
    def dtype(self) -> DType:
        """Of the elements."""


FORMATS = {"bool": "I", "int32": "i", "int64": "q", "float16": "e", "float32": "f", "float64": "d"}
"""The format, of the struct module, of an element in memory."""

SIZES = {name: struct.calcsize(f"={format}") for name, format in FORMATS.items()}
"""The bytes of an element in memory."""

_NEEDED: dict[str, frozenset[str]] = {
    "bool": frozenset(),
    "int32": frozenset(),
    "int64": frozenset({"shader-int64"}),
    "float16": frozenset({"shader-f16"}),
    "float32": frozenset(),
    "float64": frozenset({"shader-f64", "shader-int64"}),  # the latter for its bits
}
WISHED = frozenset().union(*_NEEDED.values())
"""The features that a device should be opened with, if its adapter has them."""

_TRUTH = bytes([0, *[1] * 255])  # for each byte that of a bool


def size_of(value: Value) -> int:
    """Bytes of a value in memory."""
    return prod(value.shape) * SIZES[value.dtype.name]


def declared(features: Iterable[str]) -> tuple[str, ...]:
    """The names of the dtypes that a device has which was opened with these features.

    >>> declared({"shader-f16"})
    ('bool', 'int32', 'float16', 'float32')
    """
    return tuple([name for name in DTYPES if _NEEDED[name] <= set(features)])


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
        except OverflowError:  # one is beyond its range: it becomes infinite
            near = [round_float(float(v), DTYPES[dtype]) for v in values]
            return struct.pack(f"<{len(near)}e", *near)
    return array.array(FORMATS[dtype], [*values]).tobytes()


def widened(flags: bytes) -> bytes:
    """Elements of bool, each in a byte, as they lie in memory; any byte but 0 is true.

    >>> widened(bytes([0, 1, 2])).hex(" ", 4)
    '00000000 01000000 01000000'
    """
    size = SIZES["bool"]
    wide = bytearray(size * len(flags))
    wide[::size] = flags.translate(_TRUTH)
    return bytes(wide)


def narrowed(elements: memoryview) -> bytes:
    """Elements of bool as they lie in memory, each in a byte."""
    return bytes(elements)[:: SIZES["bool"]]  # a memoryview takes each step by itself
