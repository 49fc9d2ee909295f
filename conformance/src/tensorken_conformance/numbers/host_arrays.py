"""Host arrays: numpy's arrays in every dtype of the language; those of bfloat16 have the dtype of ml_dtypes.

To numpy, bfloat16 is no floating-point dtype: its kind is V, it has no buffer, and float64 is rounded to it twice.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tensorken_conformance.numbers.rounding import FORMATS

Array = np.ndarray[Any, Any]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

BITS: dict[str, Any] = {name: np.dtype(f"int{8 * np.dtype(name).itemsize}").type for name in FORMATS}
"""For each floating-point dtype the integers of its size."""


def is_float(values: Array) -> bool:
    """Whether the elements are floating-point numbers.

    >>> is_float(np.zeros(1, "bfloat16")), is_float(np.zeros(1, "int32"))
    (True, False)
    """
    return bool(values.dtype.kind == "f" or values.dtype == BFLOAT16)


def flat_buffer(values: Array) -> Any:
    """A buffer of the elements in row-major order, as backends take it: bfloat16 as float32."""
    flat: Any = np.ascontiguousarray(values).reshape(-1)
    return memoryview(flat.astype(np.float32) if flat.dtype == BFLOAT16 else flat)


def ascending(values: Array, axis: int) -> Array:
    """The elements in order, NaN last, where numpy's sort would leave bfloat16 with NaN in disorder.

    >>> ascending(np.array([2.0, np.nan, 1.0], "bfloat16"), 0).tolist()
    [1.0, 2.0, nan]
    """
    wide = np.asarray(values, np.float32) if values.dtype == BFLOAT16 else values
    return np.sort(wide, axis).astype(values.dtype)


def in_dtype(values: Array, dtype: str) -> Array:
    """float64 rounded to a floating-point dtype once.

    >>> in_dtype(np.array([1 + 2.0**-8 + 2.0**-40, 3.4e38, -1e-45]), "bfloat16").astype(float).tolist()
    [1.0078125, inf, -0.0]
    """
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return np.asarray(values.astype(dtype))
    form = FORMATS[dtype]
    _, exponents = np.frexp(values)
    last = np.maximum(exponents - form.precision, form.least)
    whole = np.where(np.isfinite(values), np.ldexp(np.rint(np.ldexp(values, -last)), last), values)
    largest = np.abs(whole) < 2.0**form.top
    return np.asarray(np.where(largest | np.isnan(whole), whole, np.copysign(np.inf, whole)).astype(BFLOAT16))
