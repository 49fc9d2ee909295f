"""From Python numbers and buffers to the elements of a dtype: bool, int in two's complement, or float."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from tensorken_core.language.dtypes import DType, integer_bounds
from tensorken_reference.rounding import round_doubles, round_integer


def unpack(data: Any) -> Sequence[bool | int | float]:
    """The numbers in a buffer, by its format, or the sequence itself.

    >>> import array
    >>> unpack(array.array("f", [0.5, 2.0]))
    (0.5, 2.0)
    """
    try:
        view = memoryview(data)
    except TypeError:
        numbers: Sequence[bool | int | float] = data
        return numbers
    return struct.unpack(f"{view.nbytes // view.itemsize}{view.format}", view)


def convert(values: Iterable[bool | int | float], dtype: DType) -> list[Any]:
    """Each number converted to the dtype.

    To bool: whether it is not 0. To int: a float is truncated and saturates, NaN becomes 0; an integer
    wraps. To float: the nearest number.

    >>> from tensorken_core.language.dtypes import float32, int32
    >>> convert([-1.9, 1e30, 2**31, True], int32)
    [-1, 2147483647, -2147483648, 1]
    >>> convert([0.1, 2**24 + 1], float32)
    [0.10000000149011612, 16777216.0]
    """
    if dtype.kind == "bool":
        return [v != 0 for v in values]
    if dtype.kind == "int":
        return wrap([v if isinstance(v, int) else _truncate(v, dtype) for v in values], dtype)
    return round_doubles([v if isinstance(v, float) else round_integer(v, dtype) for v in values], dtype)


def wrap(values: Iterable[int], dtype: DType) -> list[int]:
    """Each integer modulo 2**bits, in two's complement.

    >>> from tensorken_core.language.dtypes import int64
    >>> wrap([2**63, -1], int64)
    [-9223372036854775808, -1]
    """
    low, _ = integer_bounds(dtype)
    mask = (1 << 8 * dtype.itemsize) - 1
    return [((v - low) & mask) + low for v in values]


def fit(values: Iterable[Any], dtype: DType) -> list[Any]:
    """Results of arithmetic on elements of a dtype, in that dtype: floats are rounded, integers wrap."""
    return round_doubles(values, dtype) if dtype.kind == "float" else wrap(values, dtype)


def _truncate(value: float, dtype: DType) -> int:
    low, high = integer_bounds(dtype)
    if math.isfinite(value):
        return min(max(int(value), low), high)
    return 0 if math.isnan(value) else high if value > 0 else low
