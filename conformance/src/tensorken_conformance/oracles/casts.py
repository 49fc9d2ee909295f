"""Casts: convert every number to every dtype, with integers and fractions only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorken_conformance.numbers.rounding import FORMATS, nearest
from tensorken_conformance.oracles.elementwise import numbers
from tensorken_core.language.dtypes import DType

Array = np.ndarray[Any, Any]


def cast(values: Array, dtype: DType) -> Array:
    """Values in another dtype.

    To int: floats truncate and saturate, NaN becomes 0, ints wrap.  To float: the nearest number, ties to even,
    infinity beyond the range.  To bool: whether the value is not 0.

    >>> from tensorken_core.language.dtypes import float16, int32
    >>> cast(np.array([2.0**-25, 1.00048828125, 65520.0]), float16).tolist()
    [0.0, 1.0, inf]
    >>> cast(np.array([-1.5, 3e9, np.nan]), int32).tolist()
    [-1, 2147483647, 0]
    """
    if dtype.kind != "float" or values.dtype.kind == "b":
        return numbers(values.tolist(), dtype)
    form = FORMATS[dtype.name]
    results = []
    for value in values.tolist():
        if isinstance(value, int):
            results.append(nearest(value, 0, form))
        elif not math.isfinite(value) or value == 0.0:
            results.append(value)
        else:
            n, d = value.as_integer_ratio()
            results.append(nearest(n, 1 - d.bit_length(), form))
    return np.array(results, dtype.name)
