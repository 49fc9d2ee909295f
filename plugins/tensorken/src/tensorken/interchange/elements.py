"""The elements of tensors as bytes, in the byte order of the machine, and back.

The flat values of bfloat16 are float32, which have all its numbers; its bytes are their upper halves.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

from tensorken_core.language.dtypes import DType, bfloat16, real_dtype

_UPPER = 2 if sys.byteorder == "little" else 0
"""The first byte of the upper half of a float32."""


_TRUTH = bytes([0] + [1] * 255)


def packed(flat: Any, dtype: DType) -> bytes:
    """Flat values, a list or a buffer of the dtype's format, as bytes; those of complex dtypes are a list.

    >>> from tensorken_core.language.dtypes import int16
    >>> len(packed([1.0, 2.0], bfloat16)), packed([1, -1], int16) == struct.pack("2h", 1, -1)
    (4, True)
    """
    if dtype.kind == "complex":
        return packed([part for number in flat for part in (number.real, number.imag)], real_dtype(dtype))
    data = (
        struct.pack(f"{len(flat)}{dtype.format}", *flat)
        if isinstance(flat, list)
        else memoryview(flat).tobytes()
    )
    if dtype is not bfloat16:
        return data
    halves = bytearray(len(data) // 2)
    for byte in (0, 1):
        halves[byte::2] = data[_UPPER + byte :: 4]
    return bytes(halves)


def unpacked(data: bytes | memoryview, dtype: DType) -> Any:
    """Bytes as flat values of a dtype; a list for complex numbers and float16.

    memoryview does not support float16 before Python 3.12.

    >>> unpacked(packed([0.5, -2.0], bfloat16), bfloat16).tolist()
    [0.5, -2.0]
    """
    if dtype.kind == "complex":
        parts = unpacked(data, real_dtype(dtype)).tolist()
        return list(map(complex, parts[::2], parts[1::2]))
    if dtype.format == "e":
        return list(struct.unpack(f"{len(data) // dtype.itemsize}e", data))
    if dtype is bfloat16:
        floats = bytearray(2 * len(data))
        for byte in (0, 1):
            floats[_UPPER + byte :: 4] = data[byte::2]
        return memoryview(floats).cast("f")
    if dtype.kind == "bool":  # a byte of others may be neither 0 nor 1
        data = bytes(data).translate(_TRUTH)
    return memoryview(data).cast(dtype.format)  # type: ignore[call-overload]
