"""Numbers of all dtypes: their kinds, their precision, their real parts; and Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorken as tk

Array = np.ndarray[Any, Any]

PYTHON = (bool, int, float, complex)
"""The types of Python numbers."""


def is_python(x: Any) -> bool:
    """Whether a value is a Python number, not a tensor or an array."""
    return type(x) in PYTHON


def kind(x: Any) -> str:
    """The kind of an array's dtype: b, i, u, f (also for bfloat16) or c."""
    dtype = np.asarray(x).dtype
    return "f" if dtype.name == "bfloat16" else str(dtype.kind)


def inexact(x: Any) -> bool:
    """Whether elements are rounded: floats and complex numbers."""
    return kind(x) in "fc"


def epsilon(x: Array) -> float:
    """The difference between 1 and the next larger number of the dtype, or of the dtype of the real parts."""
    return float(tk.finfo(x.dtype.name).eps)


def largest(x: Array) -> float:
    """The largest finite number of the dtype."""
    return float(tk.finfo(x.dtype.name).max)


def smallest_normal(x: Array) -> float:
    """The smallest positive number that has all digits."""
    return float(tk.finfo(x.dtype.name).smallest_normal)


def parts(x: Array) -> tuple[Array, ...]:
    """The real part and the imaginary part in float64, or all of a real array."""
    if kind(x) == "c":
        return x.real.astype("float64"), x.imag.astype("float64")
    with np.errstate(all="ignore"):
        return (x.astype("float64"),)


def magnitudes(x: Array) -> Array:
    """The absolute values in float64."""
    with np.errstate(all="ignore"):
        return np.asarray(np.hypot(*parts(x)) if kind(x) == "c" else np.abs(parts(x)[0]))


def joined(real: tuple[Array, ...], like: Array) -> Array:
    """Numbers of a dtype from their real parts."""
    with np.errstate(all="ignore"):
        if kind(like) != "c":
            return np.asarray(real[0]).astype(like.dtype)
        result = np.empty(np.shape(real[0]), like.dtype)  # 1j * inf would be NaN
        result.real, result.imag = real
        return result
